//===- memory.cpp - a case's tensors in memory, poisoned and guarded ------------------------------------===//

#include "memory.h"

#include "support/numbers.h"

#include <cstring>

namespace sluice::test {

namespace {

constexpr uint8_t canary = 0xa5;
// The capacity layout has this many further tokens, more than a KV tile, and so many elements before the
// tensor.
constexpr int64_t spare_tokens = 70;
constexpr int64_t lead_elements = 64;

struct Extents {
  int64_t batch, tokens, heads, d;
};

struct Placed {
  Placement placement;
  int64_t buffer_elements;
};

Placed place(const Extents &e, Layout layout) {
  const int64_t row = e.heads * e.d;
  switch (layout) {
  case Layout::bshd:
  case Layout::packed: // Q, K and V are placed by place_packed; O is like this
  case Layout::broadcast:
    return {{0, 0, {e.tokens * row, row, e.d}}, e.batch * e.tokens * row};
  case Layout::bhsd:
    return {{0, 0, {e.tokens * row, e.d, e.tokens * e.d}}, e.batch * e.tokens * row};
  case Layout::sbhd:
    return {{0, 0, {row, e.batch * row, e.d}}, e.batch * e.tokens * row};
  case Layout::padded: {
    const int64_t head = e.d + 8, token = e.heads * head + 16, batch = e.tokens * token + 24;
    return {{0, lead_elements, {batch, token, head}}, lead_elements + e.batch * batch + 128};
  }
  case Layout::capacity: {
    const int64_t batch = (e.tokens + spare_tokens) * row;
    return {{0, lead_elements, {batch, row, e.d}}, lead_elements + e.batch * batch};
  }
  }
  __builtin_unreachable();
}

/// The last elements of a tensor end the buffer exactly, except where the layout itself leaves space behind
/// them.
Placed place_lse(const Case &c) {
  const int64_t tokens = c.q_len, heads = c.q_heads;
  if (c.layout == Layout::sbhd) return {{0, 0, {tokens * heads, heads, 1}}, c.batch * tokens * heads};
  if (c.layout != Layout::padded) return {{0, 0, {heads * tokens, 1, tokens}}, c.batch * tokens * heads};
  const int64_t head = tokens + 3, batch = heads * head + 5;
  return {{0, 7, {batch, 1, head}}, 7 + c.batch * batch + 11};
}

template <typename Visit> void for_each_row(const Case &c, int tokens, int heads, Visit visit) {
  size_t row = 0;
  for (int b = 0; b < c.batch; ++b)
    for (int t = 0; t < tokens; ++t)
      for (int h = 0; h < heads; ++h)
        visit(row++, b, t, h);
}

int64_t row_offset(const Placement &p, int b, int t, int h) {
  return p.offset + b * p.stride[0] + t * p.stride[1] + h * p.stride[2];
}

uint16_t *elements(Memory &memory, const Placement &p) {
  return reinterpret_cast<uint16_t *>(memory.buffers[p.buffer].data());
}
const uint16_t *elements(const Memory &memory, const Placement &p) {
  return reinterpret_cast<const uint16_t *>(memory.buffers[p.buffer].data());
}

const NumberFormat &format_of(const Case &c) {
  return c.dtype == Dtype::f16 ? f16_format : bf16_format;
}

} // namespace

Memory make_memory(const Case &c, const Inputs &inputs) {
  Memory memory;
  const NumberFormat &format = format_of(c);
  auto add_input = [&](int64_t count) {
    std::vector<std::byte> &buffer = memory.buffers.emplace_back(size_t(count) * 2);
    auto *const values = reinterpret_cast<uint16_t *>(buffer.data());
    const uint16_t infinity = encode(format, std::numeric_limits<double>::infinity());
    for (int64_t i = 0; i < count; ++i)
      values[i] = i % 2 ? infinity : format.quiet_nan;
    return int(memory.buffers.size()) - 1;
  };
  auto add_output = [&](int64_t count, size_t element_bytes) {
    memory.buffers.emplace_back(size_t(count) * element_bytes, std::byte(canary));
    return int(memory.buffers.size()) - 1;
  };

  const Extents q{c.batch, c.q_len, c.q_heads, c.head_size};
  Extents kv{c.batch, c.kv_len, c.kv_heads, c.head_size};
  if (c.layout == Layout::packed) {
    const int64_t d = c.head_size, row = (c.q_heads + 2 * c.kv_heads) * d;
    const int buffer = add_input(c.batch * c.q_len * row);
    const std::array<int64_t, 3> stride = {c.q_len * row, row, d};
    memory.q = {buffer, 0, stride};
    memory.k = {buffer, c.q_heads * d, stride};
    memory.v = {buffer, (c.q_heads + c.kv_heads) * d, stride};
  } else {
    if (c.layout == Layout::broadcast) kv.batch = 1;
    for (auto [target, extents] : {std::pair{&memory.q, q}, {&memory.k, kv}, {&memory.v, kv}}) {
      const Placed placed = place(extents, c.layout);
      *target = placed.placement;
      target->buffer = add_input(placed.buffer_elements);
      if (c.layout == Layout::broadcast && target != &memory.q) target->stride[0] = 0;
    }
  }
  const Placed o = place(q, c.layout), lse = place_lse(c);
  memory.o = o.placement;
  memory.o.buffer = add_output(o.buffer_elements, 2);
  memory.lse = lse.placement;
  memory.lse.buffer = add_output(lse.buffer_elements, 4);

  auto store = [&](const Placement &p, const std::vector<double> &values, int tokens, int heads) {
    for_each_row(c, tokens, heads, [&](size_t row, int b, int t, int h) {
      uint16_t *const to = elements(memory, p) + row_offset(p, b, t, h);
      for (int i = 0; i < c.head_size; ++i)
        to[i] = encode(format, values[row * c.head_size + i]);
    });
  };
  store(memory.q, inputs.q, c.q_len, c.q_heads);
  store(memory.k, inputs.k, c.kv_len, c.kv_heads);
  store(memory.v, inputs.v, c.kv_len, c.kv_heads);
  return memory;
}

Outputs read_outputs(const Case &c, const Memory &memory) {
  Outputs out;
  const NumberFormat &format = format_of(c);
  for_each_row(c, c.q_len, c.q_heads, [&](size_t, int b, int t, int h) {
    const uint16_t *const from = elements(memory, memory.o) + row_offset(memory.o, b, t, h);
    for (int i = 0; i < c.head_size; ++i)
      out.o.push_back(decode(format, from[i]));
  });
  if (!c.lse) return out;
  const auto *const lse = reinterpret_cast<const float *>(memory.buffers[memory.lse.buffer].data());
  for (int b = 0; b < c.batch; ++b)
    for (int h = 0; h < c.q_heads; ++h)
      for (int t = 0; t < c.q_len; ++t)
        out.lse.push_back(lse[row_offset(memory.lse, b, t, h)]);
  return out;
}

std::string find_stray_write(const Case &c, const Memory &before, const Memory &after) {
  // The bytes that may differ.
  std::vector<std::vector<bool>> allowed;
  for (const std::vector<std::byte> &buffer : before.buffers)
    allowed.emplace_back(buffer.size(), false);
  for_each_row(c, c.q_len, c.q_heads, [&](size_t, int b, int t, int h) {
    const int64_t o = row_offset(before.o, b, t, h) * 2;
    for (int64_t i = 0; i < 2 * c.head_size; ++i)
      allowed[before.o.buffer][o + i] = true;
    const int64_t lse = row_offset(before.lse, b, t, h) * 4;
    if (c.lse)
      for (int i = 0; i < 4; ++i)
        allowed[before.lse.buffer][lse + i] = true;
  });
  for (size_t buffer = 0; buffer < before.buffers.size(); ++buffer)
    for (size_t i = 0; i < before.buffers[buffer].size(); ++i)
      if (!allowed[buffer][i] && before.buffers[buffer][i] != after.buffers[buffer][i]) {
        const bool is_o = int(buffer) == before.o.buffer, is_lse = int(buffer) == before.lse.buffer;
        return "byte " + std::to_string(i) + " of " + std::to_string(before.buffers[buffer].size()) + " of " +
               (is_o     ? "O's"
                : is_lse ? "LSE's"
                         : "an input's") +
               " buffer was overwritten, which is no element of " +
               (is_o     ? "O"
                : is_lse ? "LSE"
                         : "an output");
      }
  return "";
}

} // namespace sluice::test

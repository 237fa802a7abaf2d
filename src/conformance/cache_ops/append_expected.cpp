//===- append_expected.cpp - the caches that an append must leave ---------------------------------------===//

#include "conformance/cache_ops/append_case.h"

#include "conformance/cache_ops/append_groups.h"

#include <algorithm>
#include <cmath>
#include <span>

namespace sluice::conformance {

namespace {

/// K, V or Q.
struct Side {
  Scale scale;
  const std::vector<double> &scales;
  const Placement &scales_out, &zeros_out; // of scales that the append computes
  const std::vector<double> &rows, &norm;
  const Placement &out;
  Element type; // of `out`
  int heads, head_size;
  bool is_rotated;
};

/// A row after its norm and rotation.
std::vector<Computed> compute_row(const AppendCase &c, const AppendInputs &in, const Side &side, int t,
                                  int h) {
  const size_t size = size_t(side.head_size);
  const double *const row = &side.rows[size_t(t * side.heads + h) * size];
  std::vector<Computed> computed;
  for (size_t e = 0; e < size; ++e)
    computed.push_back({row[e], 0});
  if (!side.norm.empty()) {
    double sum = 0;
    for (size_t e = 0; e < side.norm.size(); ++e)
      sum += row[e] * row[e];
    const double factor = 1 / std::sqrt(sum / double(side.norm.size()) + float(norm_epsilon(c)));
    for (size_t e = 0; e < side.norm.size(); ++e) {
      computed[e].value *= factor * side.norm[e];
      // The sum adds up to 16 products in a lane and 64 lanes in 6 steps; half its error reaches the root,
      // which is off by one last place, and two products by half of one each.
      computed[e].margin = 0x1p-20 * std::fabs(computed[e].value);
    }
  }
  if (!side.is_rotated) return computed;
  const std::vector<Computed> before = computed;
  const int half = c.rotary_dim / 2;
  const double *const numbers = &in.rotary[size_t(in.positions[size_t(t)]) * size_t(c.rotary_dim)];
  for (int pair = 0; pair < half; ++pair) {
    const bool halves = c.rotation == Rotation::halves;
    const int x = c.rotary_first + (halves ? pair : 2 * pair), y = x + (halves ? half : 1);
    const double cosine = numbers[pair], sine = numbers[pair + half];
    const Computed &own = before[size_t(x)], &other = before[size_t(y)];
    // Two products and their sum in F32, each off by at most half a last place, of numbers up to 1, or of
    // subnormal ones.
    const double margin =
        0x1p-23 * (std::fabs(own.value) + std::fabs(other.value)) + 0x1p-148 + own.margin + other.margin;
    computed[size_t(x)] = {own.value * cosine - other.value * sine, margin};
    computed[size_t(y)] = {other.value * cosine + own.value * sine, margin};
  }
  return computed;
}

/// The scale with which the largest finite number of the row becomes `largest`, before it is rounded to F32.
Computed scale_of(const std::vector<Computed> &row, double largest) {
  Computed most = {0, 0};
  for (const Computed &x : row)
    if (std::isfinite(x.value) && std::fabs(x.value) > most.value) most = {std::fabs(x.value), x.margin};
  if (most.value == 0) return {1, 0};
  // With a margin the scale may also be rounded to the neighbour of what is expected.
  const double rounding = most.margin == 0 ? 0 : 0x1p-23 * most.value / largest + 0x1p-149;
  return {most.value / largest, most.margin / largest + rounding};
}

/// The groups of a row, in the cache and in the arrays of scales.
void add_groups(const AppendCase &c, const Side &side, const Slot &to, int head,
                const std::vector<Computed> &row, std::vector<StoredElement> &expected) {
  const bool is_u4 = side.type == Element::u4;
  const int count = is_u4 ? c.scale_group : 32;
  const auto add = [&](int buffer, Element type, int64_t at, const Computed &of) {
    expected.push_back({buffer, type, at, of.value, of.margin});
  };
  for (int e = 0; e < side.head_size; e += count) {
    const StoredGroup group =
        stored_group(side.type, c.zeros, std::span(row).subspan(size_t(e), size_t(count)));
    const int64_t first = side.out.at(to.page, to.row, head, e);
    if (is_u4)
      add(side.scales_out.buffer, Element::f16, side.scales_out.at(to.page, to.row, head, e / count),
          group.scale);
    else
      add(side.out.buffer, Element::f16, scale_index(side.type, first), group.scale);
    if (c.zeros)
      add(side.zeros_out.buffer, Element::f16, side.zeros_out.at(to.page, to.row, head, e / count),
          group.zero);
    for (int i = 0; i < count; ++i)
      add(side.out.buffer, side.type == Element::q8_0 ? Element::i8 : Element::u4,
          number_index(side.type, first + i), group.numbers[size_t(i)]);
  }
}

} // namespace

std::vector<StoredElement> compute_expected(const AppendCase &c, const AppendInputs &in,
                                            const AppendMemory &memory) {
  std::vector<StoredElement> expected;
  const auto add = [&](const Side &side, int t, const Slot &to) {
    for (int h = 0; h < side.heads; ++h) {
      const std::vector<Computed> row = compute_row(c, in, side, t, h);
      if (is_in_groups(side.type)) {
        add_groups(c, side, to, h, row, expected);
        continue;
      }
      Computed scale = {1, 0};
      if (side.scale == Scale::token) {
        const Computed exact = scale_of(row, as_stored(side.type, 1e9));
        expected.push_back({side.scales_out.buffer, Element::f32, side.scales_out.at(to.page, to.row, h, 0),
                            exact.value, exact.margin});
        scale = {as_stored(Element::f32, exact.value), exact.margin};
      } else if (side.scale != Scale::none) {
        const int64_t page = side.scale == Scale::page ? to.page : 0;
        scale.value = side.scales[size_t(page * side.heads + h)];
      }
      for (int e = 0; e < side.head_size; ++e) {
        const Computed &x = row[size_t(e)];
        // Integers have no NaN.
        const bool is_zero = side.type == Element::i8 && std::isnan(x.value);
        const double quotient = is_zero ? 0 : x.value / scale.value;
        expected.push_back({side.out.buffer, side.type, side.out.at(to.page, to.row, h, e), quotient,
                            x.margin / scale.value + std::fabs(quotient) * scale.margin / scale.value});
      }
    }
  };
  const bool rotates = c.rotation != Rotation::none;
  const std::vector<double> none;
  const Placement nowhere{-1};
  const Side k{c.k_scale,      in.k_scale, memory.k_scales, memory.k_zeros, in.k,   in.k_norm,
               memory.k_cache, c.cache,    c.heads,         c.head_size.qk, rotates};
  const Side v{c.v_scale,      in.v_scale, memory.v_scales, memory.v_zeros, in.v, none,
               memory.v_cache, c.cache,    c.heads,         c.head_size.v,  false};
  const Side q{Scale::none,  none,     nowhere,   nowhere,        in.q,   in.q_norm,
               memory.q_out, c.source, c.q_heads, c.head_size.qk, rotates};
  for (int t = 0; t < in.tokens; ++t) {
    const std::optional<Slot> &slot = in.slots[size_t(t)];
    // A query needs no slot, but a sequence, unless rows are placed by slots.
    if (slot || c.finding == Finding::slots) add(q, t, {0, t});
    if (!slot) continue;
    add(k, t, *slot);
    if (!c.v_in_k) add(v, t, *slot);
  }
  return expected;
}

Comparison compare(const AppendCase &, const std::vector<StoredElement> &expected, const AppendMemory &before,
                   const AppendMemory &after) {
  Comparison result;
  std::vector<std::vector<bool>> allowed;
  for (const std::vector<std::byte> &buffer : before.buffers)
    allowed.emplace_back(buffer.size());
  const auto name_of = [&](int buffer) {
    return buffer == before.k_cache.buffer                                        ? "K's cache"
           : buffer == before.v_cache.buffer                                      ? "V's cache"
           : buffer == before.q_out.buffer                                        ? "Q"
           : buffer == before.k_scales.buffer || buffer == before.v_scales.buffer ? "the scales"
           : buffer == before.k_zeros.buffer || buffer == before.v_zeros.buffer   ? "the zeros"
                                                                                  : "an input";
  };
  for (const StoredElement &element : expected) {
    const size_t bytes = bytes_of(element.type);
    const size_t first = element.type == Element::u4 ? size_t(element.at) / 2 : size_t(element.at) * bytes;
    for (size_t i = 0; i < bytes; ++i)
      allowed[size_t(element.buffer)][first + i] = true;
    const double got = load(element.type, after.buffers[size_t(element.buffer)].data(), element.at);
    const double ratio = rounded_error_ratio(element.type, got, element.value, element.margin);
    result.o_ratio = std::max(result.o_ratio, ratio);
    if (ratio > 1)
      result.note(std::string(name_of(element.buffer)) + ", element " + std::to_string(element.at) +
                  ": got " + std::to_string(got) + ", expected " + std::to_string(element.value));
  }
  for (size_t buffer = 0; buffer < before.buffers.size(); ++buffer)
    for (size_t i = 0; i < before.buffers[buffer].size(); ++i)
      if (!allowed[buffer][i] && before.buffers[buffer][i] != after.buffers[buffer][i])
        result.note("byte " + std::to_string(i) + " of " + name_of(int(buffer)) +
                    " was overwritten, but no new row belongs there");
  return result;
}

} // namespace sluice::conformance

//===- merge_case.cpp - the inputs of a merge, and its expected result ----------------------------------===//

#include "conformance/cache_ops/merge_case.h"

#include "conformance/shared/c_types.h"
#include "conformance/shared/case_random.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <span>

namespace sluice::conformance {

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double quiet_nan = std::numeric_limits<double>::quiet_NaN();

// Unit roundoff of f32.
constexpr double u = 0x1p-24;

/// The LSE of a part and a row, which is token * heads + head, from a drawn one.
double lse_of(const MergeCase &c, int part, int row, double drawn) {
  switch (c.weights) {
  case Weights::all:
    return drawn;
  case Weights::some:
  case Weights::infinite:
    // The first row keeps only one part, some rows none, the others some.
    if (row % 7 == 5 || (row == 0 && part != c.parts / 2) || (row != 0 && (part + row) % 3 == 0))
      return c.weights == Weights::infinite && part % 2 == 0 ? infinity : -infinity;
    return drawn;
  case Weights::far:
    return (row % 2 ? 2000 : -90) + drawn +
           (row % 3 == 0   ? 10.0 * (part % 9)
            : row % 3 == 1 ? -part % 30
                           : 0);
  case Weights::not_finite:
    if (row == 2 && part == c.parts - 1) return quiet_nan;
    if (row == 7) return part == 0 ? quiet_nan : -infinity;
    return drawn;
  }
  __builtin_unreachable();
}

/// [part][token][head][element]; for LSE, a head has one element.
Placed place(const Extents &e, int64_t gap) {
  const int64_t head = e.d + gap, token = e.heads * head + 2 * gap, part = e.rows * token + gap;
  return {{.stride = {part, token, head, 1}}, e.outer * part};
}

/// [part][sequence][head][token].
LsePlacement place_sequences(const Extents &e, int sequences, int64_t gap) {
  const int tokens = int(e.rows) / sequences;
  const int64_t head = tokens + gap, sequence = e.heads * head + 2 * gap, part = sequences * sequence + gap;
  return {{.stride = {part, 1, head, 0}}, tokens, sequence};
}

/// The part that comes `n`th in memory. Listed parts are the first, and then the others backwards.
int part_at(const MergeCase &c, int n) {
  if (c.places == PartPlaces::in_order || (c.places == PartPlaces::listed && n == 0)) return n;
  return c.places == PartPlaces::backwards ? c.parts - 1 - n : c.parts - n;
}
bool is_empty(const MergeCase &c, double lse) {
  return lse == -infinity || (c.weights == Weights::infinite && lse == infinity);
}

} // namespace

MergeInputs make_inputs(const MergeCase &c) {
  MergeInputs in;
  Random random = random_of(c), lses = random_of(c, " lse"), sinks = random_of(c, " sinks"),
         scales = random_of(c, " o_scale");
  const int rows = c.tokens * c.heads;
  for (int part = 0; part < c.parts; ++part)
    for (int row = 0; row < rows; ++row) {
      const double lse = float(lse_of(c, part, row, 2 * lses.normal()));
      in.lse.push_back(lse);
      for (int e = 0; e < c.head_size; ++e) {
        double value = as_stored(c.partial, std::ldexp(2 * random.normal(), c.power));
        if (is_empty(c, lse)) value = e % 3 == 0 ? infinity : quiet_nan;
        if (c.weights == Weights::not_finite && row == 4 && part == c.parts / 2 && e % 17 == 3)
          value = quiet_nan;
        in.partial.push_back(value);
      }
    }
  for (int h = 0; h < c.heads; ++h)
    in.sink_logits.push_back(!c.sink_logits || h == 1
                                 ? -infinity
                                 : float((c.weights == Weights::far ? 1380 : 0) + 2 * sinks.normal()));
  // Results around 100, and of the second head many beyond the largest number.
  const double scale = 0.02 * std::exp2(c.power + scales.normal() / 2);
  for (int h = 0; h < c.heads; ++h)
    in.o_scale.push_back(c.o_scale == Scale::none     ? 1
                         : c.o_scale == Scale::tensor ? float(scale)
                                                      : float((h == 1 ? 0.25 : 1) * scale / (1 + h)));
  return in;
}

MergeMemory make_memory(const MergeCase &c, const MergeInputs &in) {
  MergeMemory memory;
  const auto add = [&](Placement &target, int64_t elements, Element element, double value) {
    target.buffer = int(memory.buffers.size());
    memory.buffers.emplace_back(size_t(elements) * bytes_of(element));
    for (int64_t i = 0; i < elements; ++i)
      store(memory.buffers.back(), element, i, value);
  };
  const auto add_placed = [&](Placement &target, const Placed &placed, Element element, double value) {
    target = placed.placement;
    add(target, placed.buffer_elements, element, value);
  };
  const Extents rows{c.parts, c.tokens, c.heads, c.head_size};
  const auto add_lses = [&](LsePlacement &target, int parts, const Placed &plain, double value) {
    if (c.sequences == 0) return add_placed(target, plain, Element::f32, value);
    target = place_sequences(rows, c.sequences, c.apart ? 1 : 0);
    add(target, parts * target.stride[0], Element::f32, value);
  };
  Extents lses = rows;
  lses.d = 1;
  add_placed(memory.partial, place(rows, c.apart ? 8 : 0), c.partial, quiet_nan);
  add_lses(memory.partial_lse, c.parts, place(lses, c.apart ? 1 : 0), quiet_nan);
  size_t i = 0, n = 0;
  for (int part = 0; part < c.parts; ++part)
    for (int t = 0; t < c.tokens; ++t)
      for (int h = 0; h < c.heads; ++h) {
        store(memory.buffers[size_t(memory.partial_lse.buffer)], Element::f32,
              memory.partial_lse.at(part_at(c, part), t, h), in.lse[n++]);
        for (int e = 0; e < c.head_size; ++e)
          store(memory.buffers[size_t(memory.partial.buffer)], c.partial,
                memory.partial.at(part_at(c, part), t, h, e), in.partial[i++]);
      }
  if (c.in_place) {
    const int last = part_at(c, c.parts - 1);
    memory.o = memory.partial;
    memory.o.offset = memory.partial.at(last, 0, 0, 0);
    memory.lse = memory.partial_lse;
    memory.lse.offset = memory.partial_lse.at(last, 0, 0);
  } else {
    constexpr double canary = 77;
    Extents one = rows, one_lse = lses;
    one.outer = one_lse.outer = 1;
    // Contiguous as the parts are, or with separate strides: heads are outside of tokens.
    const bool is_apart = c.apart || c.results_apart;
    const int64_t token = c.head_size + 8;
    add_placed(memory.o,
               is_apart ? Placed{{.stride = {0, token, c.tokens * token, 1}}, c.heads * c.tokens * token}
                        : place(one, 0),
               c.o, canary);
    add_lses(memory.lse, 1,
             is_apart ? Placed{{.stride = {0, 1, c.tokens + 1, 0}}, c.heads * (int64_t(c.tokens) + 1)}
                      : place(one_lse, 0),
             canary);
  }
  memory.o.stride[0] = memory.lse.stride[0] = 0;
  if (c.sink_logits) memory.sink_logits = add_array<float>(memory.buffers, in.sink_logits);
  if (c.o_scale != Scale::none)
    memory.o_scale = add_array<float>(
        memory.buffers, std::span(in.o_scale).first(c.o_scale == Scale::head ? in.o_scale.size() : 1));
  return memory;
}

sluice_merge_args make_call(const MergeCase &c, const MergeMemory &memory, const std::vector<void *> &bases,
                            PartLists &lists) {
  const auto tensor = [&](const Placement &p, Element element) {
    return sluice_tensor{.data = static_cast<char *>(bases[size_t(p.buffer)]) +
                                 size_t(p.offset) * bytes_of(element),
                         .stride = {p.stride[0], p.stride[1], p.stride[2], p.stride[3]}};
  };
  sluice_merge_args call = sized<sluice_merge_args>();
  call.parts.type = c_type(c.partial);
  call.o_format.type = c_type(c.o);
  call.parts.count = c.parts;
  call.tokens = c.tokens;
  call.heads = c.heads;
  call.head_dim = c.head_size;
  call.lse_base = c.lse_base_2 ? SLUICE_LSE_LOG2 : SLUICE_LSE_LN;
  if (c.weights == Weights::infinite) call.flags = SLUICE_MERGE_INFINITY_IS_EMPTY;
  const auto parts = [&](const Placement &p, Element element, std::vector<const void *> &list) {
    sluice_tensor all = tensor(p, element);
    const auto at = [&](int part) {
      return static_cast<char *>(all.data) + part_at(c, part) * p.stride[0] * int64_t(bytes_of(element));
    };
    for (int part = 0; part < c.parts; ++part)
      list.push_back(at(part));
    all.data = c.places == PartPlaces::listed ? nullptr : at(0);
    all.stride[0] *= c.places == PartPlaces::listed ? 0 : c.places == PartPlaces::backwards ? -1 : 1;
    return all;
  };
  call.parts.o = parts(memory.partial, c.partial, lists.partial);
  call.parts.lse = parts(memory.partial_lse, Element::f32, lists.partial_lse);
  if (c.places == PartPlaces::listed) {
    call.parts.o_list = lists.partial.data();
    call.parts.lse_list = lists.partial_lse.data();
  }
  call.sequence_tokens = memory.partial_lse.sequence_tokens;
  call.parts.lse_sequence_stride = memory.partial_lse.sequence_stride;
  if (c.lse) call.lse_sequence_stride = memory.lse.sequence_stride;
  call.o = tensor(memory.o, c.o);
  if (c.lse) call.lse = tensor(memory.lse, Element::f32);
  if (c.sink_logits) call.sinks = static_cast<const float *>(bases[size_t(memory.sink_logits)]);
  if (c.o_scale != Scale::none) {
    call.o_format.scale_kind = c.o_scale == Scale::head ? SLUICE_SCALE_PER_HEAD : SLUICE_SCALE_PER_TENSOR;
    call.o_scale = static_cast<const float *>(bases[size_t(memory.o_scale)]);
  }
  return call;
}

MergeExpected compute_expected(const MergeCase &c, const MergeInputs &in) {
  MergeExpected out;
  const auto rows = size_t(c.tokens) * size_t(c.heads), d = size_t(c.head_size), parts = size_t(c.parts);
  const double unit = c.lse_base_2 ? std::numbers::ln2 : 1; // of the base, to base e
  for (size_t row = 0; row < rows; ++row) {
    const double sink = in.sink_logits[row % size_t(c.heads)];
    double largest = sink;
    bool is_nan = false;
    for (size_t part = 0; part < parts; ++part) {
      const double lse = in.lse[part * rows + row];
      is_nan = is_nan || std::isnan(lse);
      if (!std::isnan(lse) && !is_empty(c, lse)) largest = std::max(largest, lse * unit);
    }
    // F32 represents an LSE and the largest one to the precision of their types, their difference equally
    // well, and exponentials and their sum to a few places.
    const double known = u * (16 + double(parts) + 4 * std::fabs(largest));
    double denominator = largest == -infinity ? 0 : std::exp(sink - largest);
    std::vector<double> sums(d), margins(d);
    for (size_t part = 0; part < parts; ++part) {
      const double lse = in.lse[part * rows + row] * unit;
      if (is_empty(c, lse)) continue;
      const double weight = std::exp(lse - largest);
      denominator += weight;
      const double relative = known + 4 * u * std::fabs(lse - largest);
      for (size_t e = 0; e < d; ++e) {
        const double term = weight * in.partial[(part * rows + row) * d + e];
        sums[e] += term;
        margins[e] += std::fabs(term) * relative;
      }
    }
    const bool is_empty = !is_nan && denominator == 0;
    const double lse = is_nan ? quiet_nan : is_empty ? -infinity : largest + std::log(denominator);
    out.lse.push_back(lse / unit);
    out.lse_tolerance.push_back(std::isfinite(lse) ? (known + 4 * u * std::fabs(lse)) / unit : 0);
    for (size_t e = 0; e < d; ++e) {
      const double scale = in.o_scale[row % size_t(c.heads)];
      const double o = is_nan ? quiet_nan : is_empty ? 0 : sums[e] / denominator / scale;
      out.o.push_back(o);
      // A weight below the normal numbers of F32 may be 0.
      out.o_margin.push_back(is_empty || !std::isfinite(o)
                                 ? 0
                                 : margins[e] / denominator / scale + std::fabs(o) * known +
                                       std::ldexp(double(parts), c.power - 126) / scale);
    }
  }
  return out;
}

Comparison compare(const MergeCase &c, const MergeExpected &expected, const MergeMemory &before,
                   const MergeMemory &after) {
  Comparison result;
  std::vector<std::vector<bool>> allowed;
  for (const std::vector<std::byte> &buffer : before.buffers)
    allowed.emplace_back(buffer.size());
  const auto allow = [&](const Placement &p, Element element, int64_t at) {
    for (size_t i = 0; i < bytes_of(element); ++i)
      allowed[size_t(p.buffer)][size_t(at) * bytes_of(element) + i] = true;
  };
  const auto describe = [](int t, int h, double got, double want) {
    return " token " + std::to_string(t) + " head " + std::to_string(h) + ": got " + std::to_string(got) +
           ", expected " + std::to_string(want);
  };
  size_t row = 0;
  for (int t = 0; t < c.tokens; ++t)
    for (int h = 0; h < c.heads; ++h, ++row) {
      for (int e = 0; e < c.head_size; ++e) {
        const int64_t at = before.o.at(0, t, h, e);
        allow(before.o, c.o, at);
        const size_t i = row * size_t(c.head_size) + size_t(e);
        const double got = load(c.o, after.buffers[size_t(before.o.buffer)].data(), at);
        const double ratio = rounded_error_ratio(c.o, got, expected.o[i], expected.o_margin[i]);
        result.o_ratio = std::max(result.o_ratio, ratio);
        if (ratio > 1) result.note("O" + describe(t, h, got, expected.o[i]));
      }
      if (!c.lse) continue;
      const int64_t at = before.lse.at(0, t, h);
      allow(before.lse, Element::f32, at);
      const double got = load(Element::f32, after.buffers[size_t(before.lse.buffer)].data(), at);
      const double ratio =
          std::isinf(expected.lse[row])
              ? (got == expected.lse[row] ? 0 : infinity)
              : rounded_error_ratio(Element::f32, got, expected.lse[row], expected.lse_tolerance[row]);
      result.lse_ratio = std::max(result.lse_ratio, ratio);
      if (ratio > 1) result.note("LSE" + describe(t, h, got, expected.lse[row]));
    }
  for (size_t buffer = 0; buffer < before.buffers.size(); ++buffer)
    for (size_t i = 0; i < before.buffers[buffer].size(); ++i)
      if (!allowed[buffer][i] && before.buffers[buffer][i] != after.buffers[buffer][i])
        result.note("byte " + std::to_string(i) + " of " +
                    (int(buffer) == before.o.buffer     ? "O's"
                     : int(buffer) == before.lse.buffer ? "LSE's"
                                                        : "an input's") +
                    " buffer was overwritten, which is not an element of an output");
  return result;
}

} // namespace sluice::conformance

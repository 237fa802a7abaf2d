//===- inputs.cpp - the logical tensors of a case: exact values -----------------------------------------===//

#include "conformance/attention/inputs.h"

#include "conformance/attention/blocks.h"
#include "conformance/attention/case_elements.h"
#include "conformance/attention/scores/scores.h"
#include "conformance/shared/case_random.h"
#include "conformance/shared/numbers.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace sluice::conformance {

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

void round_to(Element element, std::vector<double> &values) {
  for (double &value : values)
    value = as_stored(element, value);
}

/// Calls `visit` with the groups of all values of K or V, the group of each value and the value.
template <typename Visit>
void for_each_in_group(const Case &c, bool is_v, int size, std::vector<double> &values, Visit visit) {
  const Groups groups(c, is_v);
  for (size_t i = 0; i < values.size(); ++i) {
    const size_t row = i / size_t(size), element = i % size_t(size);
    visit(groups,
          groups.of(int64_t(row / size_t(c.kv_heads)), int(row % size_t(c.kv_heads)),
                    int(element) / group_elements(c)),
          values[i]);
  }
}

void round_to_blocks(const Case &c, bool is_v, int size, std::vector<double> &values) {
  for_each_in_group(c, is_v, size, values, [](const Groups &groups, const Group &group, double &value) {
    value = groups.nearest(group, value);
  });
}

/// Of elements scale * (number - subtracted): |scale| (number + |subtracted|).
std::vector<double> magnitudes_in_blocks(const Case &c, bool is_v, int size, std::vector<double> values) {
  for_each_in_group(c, is_v, size, values, [](const Groups &groups, const Group &group, double &value) {
    value =
        std::fabs(group.scale) * (std::fabs(groups.number_of(group, value)) + std::fabs(group.subtracted));
  });
  return values;
}

void fill_with_codes(Element element, std::vector<double> &values, size_t first) {
  for (size_t i = 0; i < values.size(); ++i) {
    const std::array<std::byte, 4> code = {std::byte(first + i)}; // as large as any element
    const double number = load(element, code.data(), 0);
    values[i] = std::isnan(number) ? 0 : number;
  }
}

/// Changes one element in one row of 24.
void add_not_a_number(const Case &c, size_t row, bool infinities, std::vector<double> &values) {
  Random random = random_of(c, " not a number");
  for (size_t at = 0; at < values.size(); at += row)
    if (random.below(24) == 0)
      values[at + random.below(row)] = infinities && random.below(2) ? -infinity : std::nan("");
}

/// A common direction, along which every query is positive, carries a score that is linear in the key.
void make_slope(const Case &c, Inputs &in) {
  const auto row = size_t(c.head_size.qk), token = row * size_t(c.kv_heads);
  for (size_t i = 0; i < in.q.size(); i += row)
    in.q[i] = 4;
  for (size_t i = 0; i < in.k.size(); i += row) {
    const double place = double(i / token % c.kv_len) / c.kv_len;
    in.k[i] = (is_in_blocks(c) ? 2 : 64) * (c.pattern == Pattern::rising ? place : 1 - place);
  }
}

void make_tensors(const Case &c, Inputs &in) {
  Random random = random_of(c);
  auto fill = [&](size_t count, double deviation) {
    std::vector<double> values(count);
    for (double &value : values)
      value = deviation * random.normal();
    return values;
  };
  const size_t kv_batches = c.layout == Layout::broadcast ? 1 : size_t(c.batch);
  const auto row = size_t(c.head_size.qk), v_row = size_t(c.head_size.v);
  const double tiny = 0x1p-14, tiny_fp8 = 0x1p-8;
  const Element cache = cache_element(c);
  const bool integers = c.cache == Cache::i8;
  const double tiny_in_cache = integers                ? 0.5
                               : cache == Element::bf8 ? 0x1p-15
                               : has_byte_cache(c)     ? tiny_fp8
                                                       : tiny;
  const double q_deviation = c.pattern == Pattern::peaked  ? 4
                             : c.pattern == Pattern::tiny  ? has_fp8_queries(c) ? tiny_fp8 : tiny
                             : c.pattern == Pattern::codes ? 0x1p-5
                                                           : 1;
  // Integers are a few units, so that scores differ by as much as others.
  const double unit = integers ? 3 : 1;
  const double k_deviation = c.pattern == Pattern::tiny ? tiny_in_cache : unit * q_deviation;
  const double v_deviation = c.pattern == Pattern::tiny ? tiny_in_cache : unit;
  in.q = fill(size_t(c.batch) * c.q_len * c.q_heads * row, q_deviation);
  in.k = fill(kv_batches * c.kv_len * c.kv_heads * row, k_deviation);
  if (!c.v_in_k) in.v = fill(kv_batches * c.kv_len * c.kv_heads * v_row, v_deviation);
  if (c.pattern == Pattern::uniform) std::fill(in.k.begin(), in.k.end(), 0.0);
  if (c.pattern == Pattern::codes) {
    fill_with_codes(cache, in.k, 0);
    fill_with_codes(cache, in.v, 77);
  }
  if (c.pattern == Pattern::rising || c.pattern == Pattern::falling) make_slope(c, in);
  round_to(has_fp8_queries(c) ? Element::fp8 : element_type(c.dtype), in.q);
  if (is_in_blocks(c)) {
    round_to_blocks(c, false, c.head_size.qk, in.k);
    round_to_blocks(c, true, c.head_size.v, in.v);
    in.k_terms = magnitudes_in_blocks(c, false, c.head_size.qk, in.k);
  } else {
    round_to(cache, in.k);
    round_to(cache, in.v);
  }
  if (c.pattern == Pattern::nan_query) add_not_a_number(c, row, false, in.q);
  if (c.pattern == Pattern::nan_key && !is_in_blocks(c)) add_not_a_number(c, row, false, in.k);
  if (c.pattern == Pattern::nan_value && !is_in_blocks(c))
    add_not_a_number(c, v_row, !has_byte_cache(c), in.v);
  if (c.v_in_k)
    for (size_t at = 0; at < in.k.size(); at += row)
      in.v.insert(in.v.end(), in.k.begin() + ptrdiff_t(at), in.k.begin() + ptrdiff_t(at + v_row));
  if (c.layout == Layout::broadcast)
    for (std::vector<double> *values : {&in.k, &in.v, &in.k_terms}) {
      const std::vector<double> once = *values;
      for (int batch = 1; batch < c.batch; ++batch)
        values->insert(values->end(), once.begin(), once.end());
    }
}

// Scales of neighbours differ by two fifths or more, which no rounding of P hides.
constexpr std::array scale_bands = {0.5, 1.25, 0.875, 1.625};

/// [batch][key][KV head]
std::vector<double> scales_of_keys(const Case &c, Scale scale, Random random) {
  std::vector<double> values;
  const bool shared = c.layout == Layout::broadcast;
  const auto sequence_values = size_t(c.kv_len) * size_t(c.kv_heads);
  for (size_t n = 0; n < size_t(c.batch) * sequence_values; ++n) {
    const size_t head = n % size_t(c.kv_heads), key = n % sequence_values / size_t(c.kv_heads);
    const size_t in_page = scale == Scale::page ? key % size_t(c.pages.size) : 0;
    const double jitter = 0.375 * random.uniform();
    if (shared && n >= sequence_values)
      values.push_back(values[n - sequence_values]);
    else if (in_page != 0)
      values.push_back(values[n - size_t(c.kv_heads)]);
    else
      values.push_back(float(scale_bands[(head + key) % scale_bands.size()] + jitter));
  }
  return values;
}

std::vector<double> make_scales(const Case &c, Scale scale, int heads, const char *what) {
  Random random = random_of(c, what);
  if (is_per_key(scale)) return scales_of_keys(c, scale, random);
  std::vector<double> values;
  for (int h = 0; h < heads; ++h) {
    if (scale == Scale::head || h == 0)
      values.push_back(float(scale_bands[size_t(h) % scale_bands.size()] + 0.375 * random.uniform()));
    else
      values.push_back(values.front());
  }
  if (scale == Scale::none) values.assign(size_t(heads), 1);
  return values;
}

/// Numbers like those of the sequences' own keys.
void make_prefixes(const Case &c, Inputs &in) {
  if (c.prefixes.count == 0) return;
  const Case as_sequences = prefixes_as_sequences(c);
  Inputs prefix_inputs;
  make_tensors(as_sequences, prefix_inputs);
  in.prefix_k = std::move(prefix_inputs.k);
  in.prefix_k_terms = std::move(prefix_inputs.k_terms);
  in.prefix_v = std::move(prefix_inputs.v);
  if (is_per_key(c.k_scale)) in.prefix_k_scale = make_scales(as_sequences, c.k_scale, c.kv_heads, " k_scale");
  if (is_per_key(c.v_scale))
    in.prefix_v_scale =
        c.v_in_k ? in.prefix_k_scale : make_scales(as_sequences, c.v_scale, c.kv_heads, " v_scale");
}

void make_changes(const Case &c, Inputs &in) {
  for (const ScoreChange *change : score_changes)
    if (change->make_numbers && change->is_in(c)) in.changes[*change] = change->make_numbers(c);
}

void make_scales(const Case &c, Inputs &in) {
  in.q_scale = make_scales(c, c.q_scale, c.q_heads, " q_scale");
  in.k_scale = make_scales(c, c.k_scale, c.kv_heads, " k_scale");
  in.v_scale = c.v_in_k ? in.k_scale : make_scales(c, c.v_scale, c.kv_heads, " v_scale");
  // Most of O is within the range of FP8, and some of it is not.
  in.o_scale = make_scales(c, c.o_scale, c.q_heads, " o_scale");
  if (c.o_scale != Scale::none)
    for (double &scale : in.o_scale)
      scale = float(scale / 128);
}

} // namespace

Case prefixes_as_sequences(const Case &c) {
  Case sequences = c;
  sequences.prefixes = {};
  sequences.batch = c.prefixes.count;
  sequences.q_len = 1;
  sequences.kv_len = c.prefixes.keys;
  sequences.layout = Layout::bshd;
  sequences.name += " prefixes";
  return sequences;
}

Inputs make_inputs(const Case &c) {
  Inputs in;
  make_tensors(c, in);
  make_prefixes(c, in);
  make_changes(c, in);
  make_scales(c, in);
  return in;
}

} // namespace sluice::conformance

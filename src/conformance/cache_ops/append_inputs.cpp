//===- append_inputs.cpp - the rows of an append, and where they go -------------------------------------===//

#include "conformance/cache_ops/append_case.h"

#include "conformance/shared/case_random.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>

namespace sluice::conformance {

namespace {

// Sequences with and without new rows and keys, some at the ends of pages.
constexpr std::array usual_rows = {0, 3, 1, 0, 7, 2, 18}, old_keys = {4, 2, 0, 9, 13, 16, 31};
// Rows before the first sequence and after the last belong to no sequence.
constexpr int rows_in_front = 2, rows_behind = 3;
constexpr int most_positions = 64;
constexpr int unowned_pages = 2;

std::vector<int> new_rows_of(const AppendCase &c) {
  std::vector<int> rows(usual_rows.begin(), usual_rows.end());
  rows.back() += c.more_rows;
  return rows;
}

/// Every head gets the tail of the first.
void repeat_tail(const AppendCase &c, int heads, std::vector<double> &rows) {
  const size_t row = size_t(c.head_size.qk), body = row - size_t(c.tail_dim);
  for (size_t first = 0; first < rows.size(); first += size_t(heads) * row)
    for (int h = 1; h < heads; ++h)
      std::copy_n(&rows[first + body], c.tail_dim, &rows[first + size_t(h) * row + body]);
}

/// Numbers of which a group has several of the same size, with either sign, and rows of one number.
double few(double value, size_t row) {
  if (row % 5 == 0) return 0;
  if (row % 5 == 1) return row % 2 == 0 ? 3.25 : -1000;
  return std::nearbyint(2 * value) / 2;
}

void draw_rows(const AppendCase &c, AppendInputs &in) {
  Random random = random_of(c), special = random_of(c, " not a number");
  const auto draw = [&](int heads, int head_size) {
    std::vector<double> values(size_t(in.tokens) * size_t(heads) * size_t(head_size));
    for (double &value : values) {
      value = as_stored(c.source, 2 * random.normal());
      const size_t what = special.below(97);
      if (c.few_values) value = few(value, size_t(&value - values.data()) / size_t(head_size));
      // Beyond the largest FP8 number, at least when it is divided by a scale.
      if (what > 90 && !c.few_values)
        value = as_stored(c.source, (c.cache == Element::bf8 ? 8000 : 150) * value);
      value = as_stored(c.source, std::ldexp(value, c.power));
      if (!c.not_finite) continue;
      if (what == 0) value = std::numeric_limits<double>::quiet_NaN();
      if (what == 1) value = -std::numeric_limits<double>::infinity();
    }
    return values;
  };
  in.k = draw(c.heads, c.head_size.qk);
  if (!c.v_in_k) in.v = draw(c.heads, c.head_size.v);
  in.q = draw(c.q_heads, c.head_size.qk);
  if (c.one_tail) {
    repeat_tail(c, c.heads, in.k);
    repeat_tail(c, c.q_heads, in.q);
  }
  const auto draw_weights = [&] {
    std::vector<double> weights(size_t(c.head_size.qk - c.tail_dim));
    for (double &weight : weights)
      weight = as_stored(norm_type(c), 0.5 + random.uniform());
    return weights;
  };
  if (c.k_norm) in.k_norm = draw_weights();
  if (c.q_norm) in.q_norm = draw_weights();
}

/// Draws pages and slots without repetition.
void find_slots(const AppendCase &c, AppendInputs &in) {
  const std::vector<int> new_rows = new_rows_of(c);
  const auto pages_for = [&](int keys) { return (keys + c.page_size - 1) / c.page_size; };
  int needed = 0;
  if (c.finding == Finding::slots)
    needed = pages_for(in.tokens);
  else
    for (size_t b = 0; b < new_rows.size(); ++b)
      needed += pages_for(old_keys[b] + new_rows[b]);
  in.pages_in_all = needed + unowned_pages;
  const std::vector<int64_t> order = shuffled(in.pages_in_all, random_of(c, " pages"));
  in.slots.resize(size_t(in.tokens));
  in.positions.resize(size_t(in.tokens));
  if (c.finding == Finding::slots) {
    for (int t = 0; t < in.tokens; ++t)
      if (t % 4 != 2) in.slots[size_t(t)] = Slot{order[size_t(t / c.page_size)], (t * 7 + 3) % c.page_size};
    // A step of 7 visits each row of a page once, unless 7 divides its size.
    if (c.page_size % 7 == 0) throw std::logic_error("pages whose size 7 divides have no such slots");
  } else {
    in.starts = {rows_in_front};
    size_t next = 0;
    for (size_t b = 0; b < new_rows.size(); ++b) {
      const int keys = old_keys[b] + new_rows[b];
      std::vector<int64_t> &pages = in.pages.emplace_back();
      for (int n = 0; n < pages_for(keys); ++n)
        pages.push_back(order[next++]);
      for (int i = 0; i < new_rows[b]; ++i) {
        const int key = old_keys[b] + i;
        const size_t t = size_t(in.starts.back()) + size_t(i);
        in.slots[t] = Slot{pages[size_t(key / c.page_size)], key % c.page_size};
        in.positions[t] = key;
      }
      in.lengths.push_back(keys);
      in.starts.push_back(in.starts.back() + new_rows[b]);
    }
  }
  Random random = random_of(c, " positions");
  if (c.positions)
    for (int &position : in.positions)
      position = int(random.below(most_positions));
}

} // namespace

AppendInputs make_inputs(const AppendCase &c) {
  AppendInputs in;
  const std::vector<int> new_rows = new_rows_of(c);
  in.tokens = rows_in_front + std::accumulate(new_rows.begin(), new_rows.end(), 0) + rows_behind;
  draw_rows(c, in);
  find_slots(c, in);
  const auto scales = [&](Scale scale, const char *what) {
    Random random = random_of(c, what);
    const int64_t pages = scale == Scale::page ? in.pages_in_all : 1;
    std::vector<double> values(size_t(pages * c.heads), 1);
    for (size_t h = 0; scale != Scale::none && scale != Scale::token && h < values.size(); ++h)
      values[h] = scale != Scale::tensor || h == 0 ? float(std::ldexp(0.02 + 0.1 * random.uniform(), c.power))
                                                   : values.front();
    return values;
  };
  in.k_scale = scales(c.k_scale, " k_scale");
  in.v_scale = scales(c.v_scale, " v_scale");
  Random random = random_of(c, " rotary");
  in.rotary.resize(size_t(most_positions) * size_t(c.rotary_dim));
  for (double &number : in.rotary)
    number = as_stored(c.rotary_type, 2 * random.uniform() - 1);
  return in;
}

} // namespace sluice::conformance

//===- sequences.cpp - the lengths of a case's sequences, and where their rows begin --------------------===//

#include "conformance/attention/sequences.h"

#include "conformance/shared/case_random.h"

#include <algorithm>

namespace sluice::conformance {

namespace {

struct Pair {
  int q, kv;
};

Pair lengths_of(const Case &c, int b) {
  const int q = c.q_len, kv = c.kv_len;
  switch (c.lengths) {
  case Lengths::equal:
    return {q, kv};
  case Lengths::mixed: {
    const Pair turns[] = {{q, kv},     {1, kv - kv / 3}, {q, 1},
                          {0, kv / 2}, {q / 2, 0},       {1 + q / 3, 1 + kv / 2}};
    const Pair turn = turns[(b + c.batch) % 6];
    return {std::min(turn.q, q), std::min(turn.kv, kv)};
  }
  case Lengths::chunked: {
    const int keys = std::max(1, kv - b * (kv / 5));
    return {std::min(keys, std::max(1, q - b * (q / 3))), keys};
  }
  case Lengths::decode: {
    const int turns[] = {kv, 1, kv / 2 + 1, kv - 1, kv / 3 + 1};
    return {1, std::clamp(turns[b % 5], 1, kv)};
  }
  case Lengths::serving: {
    const int prompt = std::min(q, kv);
    const Pair turns[] = {{prompt, prompt}, {1, kv}, {std::max(1, prompt / 2), kv}, {1, std::max(1, kv / 2)}};
    return turns[b % 4];
  }
  }
  __builtin_unreachable();
}

struct Starts {
  std::vector<int> starts;
  int rows;
};

Starts make_starts(const std::vector<int> &lengths, bool gaps) {
  Starts result{{gaps ? 2 : 0}, 0};
  for (size_t b = 0; b < lengths.size(); ++b)
    result.starts.push_back(result.starts.back() + lengths[b] + (gaps ? 1 + int(b % 3) : 0));
  // With gaps, rows follow the last sequence; and there must be at least two rows, which the check of the
  // call assumes.
  result.rows = std::max(2, result.starts.back() + (gaps ? 3 : 0));
  return result;
}

/// In each third of the keys, one span or an empty one; sometimes two spans touch.
void add_spans(std::vector<Span> &spans, int keys, Random &random) {
  int begin = 0;
  for (int n = 0; n < spans_per_sequence; ++n) {
    const int end = keys * (n + 1) / spans_per_sequence;
    const int width = end - begin;
    if (width < 1 || random.below(5) == 0) {
      spans.push_back({begin, begin});
      continue;
    }
    const int first = begin + (random.below(4) == 0 ? 0 : int(random.below(size_t(width))));
    spans.push_back({first, first + 1 + int(random.below(size_t(end - first)))});
    begin = spans.back().end;
  }
}

} // namespace

bool is_missing(const Case &c, int b, int kv_head, int n) {
  if (!c.pages.missing) return false;
  if (c.batch > 2 && b == c.batch - 1) return true;
  constexpr int keys_of_tile = 32;
  const int turn = b + (c.pages.by_head ? 3 * kv_head : 0);
  return (n * c.pages.size / keys_of_tile + turn) % 4 == 1 || (5 * n + turn) % 7 == 3;
}

Span Sequences::span_of(int b, int key) const {
  for (int n = 0; n < spans_per_sequence && !spans.empty(); ++n) {
    const Span span = spans[size_t(b) * size_t(spans_per_sequence) + size_t(n)];
    if (span.first <= key && key < span.end) return span;
  }
  return {key, key};
}

Sequences::Sequences(const Case &c) {
  for (int b = 0; b < c.batch; ++b) {
    const Pair lengths = lengths_of(c, b);
    q_lengths.push_back(c.rows == Rows::bounds ? c.q_len : lengths.q);
    kv_lengths.push_back(lengths.kv);
  }
  Random random = random_of(c, " spans");
  for (size_t b = 0; b < q_lengths.size(); ++b) {
    const int newest = kv_lengths[b] - q_lengths[b];
    constexpr int moved[] = {-7, 5, 0, -40, 1};
    shifts.push_back(is_top_left(c) ? 0 : has_diagonals(c) ? newest + moved[b % 5] : newest);
    causal.push_back(b % 2 == 0);
    if (c.spans) add_spans(spans, kv_lengths[b], random);
  }
  q_rows = c.q_len;
  kv_rows = c.kv_len;
  const bool gaps = c.rows == Rows::gaps;
  if (gaps || c.rows == Rows::starts) {
    auto [starts, rows] = make_starts(q_lengths, gaps);
    q_starts = starts;
    q_rows = rows;
  }
  if (c.mode == Mode::ragged) {
    auto [starts, rows] = make_starts(kv_lengths, gaps);
    kv_starts = starts;
    kv_rows = rows;
  }
  add_prefixes(c);
}

/// The places where rows begin to see another prefix have nothing to do with those where sequences begin.
void Sequences::add_prefixes(const Case &c) {
  if (c.prefixes.count == 0) return;
  const int rows = q_starts.empty() ? c.batch * c.q_len : q_rows;
  const int before = c.prefixes.outside ? (rows + 3) / 5 : 0, rest = rows - 2 * before;
  for (int p = 0; p <= c.prefixes.count; ++p)
    prefix_starts.push_back(before + std::max(rest, 0) * p / c.prefixes.count);
  const int keys = c.prefixes.keys;
  const int turns[] = {keys, keys / 2 + 1, 0, 1, keys - 1};
  for (int p = 0; p < c.prefixes.count; ++p)
    prefix_lengths.push_back(std::clamp(turns[p % 5], 0, keys));
}

int Sequences::prefix_of(const Case &c, int b, int i) const {
  const int row = q_starts.empty() ? b * c.q_len + i : q_starts[size_t(b)] + i;
  for (size_t p = 0; p < prefix_lengths.size(); ++p)
    if (prefix_starts[p] <= row && row < prefix_starts[p + 1]) return int(p);
  return -1;
}

} // namespace sluice::conformance

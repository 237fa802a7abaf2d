//===- pages.cpp - which pages hold the keys of a case --------------------------------------------------===//

#include "pages.h"

#include "case_random.h"

#include <algorithm>
#include <numeric>

namespace sluice::conformance {

namespace {

constexpr int unowned_pages = 3;

/// Whether an engine may have freed page n of a sequence: it has no sink token, and the window of the first
/// row, which begins before those of all others, begins after it.
bool is_before_window(const Case &c, const Sequences &sequences, size_t b, int n) {
  if (c.window_left < 0 || is_top_left(c)) return false;
  const int shift = sequences.shifts[b];
  const int first_seen = std::min(shift - c.window_left, sequences.span_of(int(b), shift).first);
  return n * c.pages.size >= c.sink_tokens && (n + 1) * c.pages.size <= first_seen;
}

} // namespace

PageTable::PageTable(const Case &c, const Sequences &sequences) {
  const auto pages_of = [&](int keys) { return (keys + c.pages.size - 1) / c.pages.size; };
  std::vector<int> needed;
  for (int keys : sequences.kv_lengths)
    needed.push_back(pages_of(keys));
  const int most = *std::max_element(needed.begin(), needed.end());
  const bool shared = c.layout == Layout::broadcast;
  pages_in_all = (shared ? most : std::accumulate(needed.begin(), needed.end(), 0)) + unowned_pages;
  const std::vector<int64_t> numbers = shuffled(pages_in_all, random_of(c, " pages"));

  // The position of each sequence's entries.
  std::vector<size_t> places;
  size_t end = 0;
  if (c.pages.csr) {
    starts.push_back(1);
    for (int b = 0; b < c.batch; ++b) {
      places.push_back(size_t(starts.back()));
      end = places.back() + size_t(needed[size_t(b)]);
      starts.push_back(int(end) + (b + 1 < c.batch ? b % 2 : 0));
    }
  } else {
    stride = pages_of(c.kv_len) + 2; // enough for the most keys that the call allows
    for (int b = 0; b < c.batch; ++b)
      places.push_back(size_t(b * stride));
    end = places.back() + size_t(needed.back());
  }

  const int64_t nowhere = c.pages.wide ? int64_t{0x7fff'ffff'0000} : 0x7fff'0000;
  entries.resize(std::max<size_t>(1, end));
  for (size_t i = 0; i < entries.size(); ++i)
    entries[i] = nowhere - int64_t(i);
  size_t next = 0;
  for (size_t b = 0; b < needed.size(); ++b) {
    if (shared) next = 0;
    for (int n = 0; n < needed[b]; ++n) {
      const int64_t number = numbers[next++];
      int64_t &entry = entries[places[b] + size_t(n)];
      if (!is_before_window(c, sequences, b, n))
        entry = number;
      else if (n % 2 == 1)
        entry = -1;
    }
  }
}

} // namespace sluice::conformance

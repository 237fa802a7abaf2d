//===- pages.cpp - which pages hold the keys of a case --------------------------------------------------===//

#include "conformance/attention/pages.h"

#include "conformance/shared/case_random.h"

#include <algorithm>
#include <numeric>
#include <utility>

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

int pages_of(const Case &c, int keys) {
  return (keys + c.pages.size - 1) / c.pages.size;
}

/// Entries of `heads` heads for sequences that need these numbers of pages, and can need `most`: all of them
/// are nowhere.
TableEntries places_for(const Case &c, const std::vector<int> &needed, int most, int heads = 1) {
  TableEntries table;
  size_t end = 0;
  if (c.pages.csr) {
    table.starts.push_back(1);
    for (size_t b = 0; b < needed.size(); ++b) {
      end = size_t(table.starts.back()) + size_t(needed[b]);
      table.starts.push_back(int(end) + (b + 1 < needed.size() ? int(b % 2) : 0));
    }
  } else {
    table.stride = most + 2;
    if (heads > 1) table.head_stride = std::exchange(table.stride, heads * table.stride);
    end = table.place(int(needed.size()) - 1, heads - 1, needed.back());
  }
  if (heads > 1 && c.pages.csr) {
    table.head_stride = int64_t(end) + 3;
    end = table.place(int(needed.size()) - 1, heads - 1, needed.back());
  }
  const int64_t nowhere = c.pages.wide ? int64_t{0x7fff'ffff'0000} : 0x7fff'0000;
  table.entries.resize(std::max<size_t>(1, end));
  for (size_t i = 0; i < table.entries.size(); ++i)
    table.entries[i] = nowhere - int64_t(i);
  return table;
}

} // namespace

PageTable::PageTable(const Case &c, const Sequences &sequences) {
  std::vector<int> needed, prefix_pages;
  for (int keys : sequences.kv_lengths)
    needed.push_back(pages_of(c, keys));
  for (int keys : sequences.prefix_lengths)
    prefix_pages.push_back(pages_of(c, keys));
  const int most = *std::max_element(needed.begin(), needed.end());
  const bool shared = c.layout == Layout::broadcast;
  const int pages_of_prefixes = std::accumulate(prefix_pages.begin(), prefix_pages.end(), 0);
  const int heads = c.pages.by_head ? c.kv_heads : 1;
  pages_in_all = heads * (shared ? most : std::accumulate(needed.begin(), needed.end(), 0)) +
                 pages_of_prefixes + unowned_pages;
  const std::vector<int64_t> numbers = shuffled(pages_in_all, random_of(c, " pages"));

  own = places_for(c, needed, pages_of(c, c.kv_len), heads);
  size_t next = 0;
  if (!prefix_pages.empty()) {
    prefixes = places_for(c, prefix_pages, pages_of(c, c.prefixes.keys));
    for (size_t p = 0; p < prefix_pages.size(); ++p)
      for (int n = 0; n < prefix_pages[p]; ++n)
        prefixes.entries[prefixes.place(int(p), 0, n)] = numbers[next++];
  }
  for (size_t b = 0; b < needed.size(); ++b) {
    for (int h = 0; h < heads; ++h) {
      if (shared) next = size_t(pages_of_prefixes) + size_t(h) * size_t(most);
      for (int n = 0; n < needed[b]; ++n) {
        const int64_t number = numbers[next++];
        int64_t &entry = own.entries[own.place(int(b), h, n)];
        if (is_missing(c, int(b), h, n))
          entry = n % 3 == 0 ? -1 : -number - 1; // any negative number
        else if (!is_before_window(c, sequences, b, n))
          entry = number;
        else if (n % 2 == 1)
          entry = -1;
      }
    }
  }
}

} // namespace sluice::conformance

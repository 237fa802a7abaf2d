//===- dword_set.h - a set of dwords of LDS, asked about by range ---------------------------------------===//
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "emulator/check/lds_lanes.h"

namespace sluice::emulator {

/// Ranges given to it are within the size and not empty.
class DwordSet {
public:
  void reset(uint32_t dwords) {
    words.assign((dwords + 63) / 64, 0);
    used = {};
  }
  /// Removes everything, at the cost of what was added.
  void clear() {
    if (used.low < used.high)
      std::fill(words.begin() + used.low / 256, words.begin() + (used.high + 255) / 256, 0);
    used = {};
  }
  bool any(const LdsRange &range) const {
    if (!used.meets(range)) return false;
    return !visit(range, [&](uint32_t word, uint64_t mask) { return (words[word] & mask) == 0; });
  }
  bool all(const LdsRange &range) const {
    return visit(range, [&](uint32_t word, uint64_t mask) { return (words[word] & mask) == mask; });
  }
  void add(const LdsRange &range) {
    used.add(range);
    visit(range, [&](uint32_t word, uint64_t mask) {
      words[word] |= mask;
      return true;
    });
  }
  void remove(const LdsRange &range) {
    visit(range, [&](uint32_t word, uint64_t mask) {
      words[word] &= ~mask;
      return true;
    });
  }

private:
  /// Calls until one returns false, and returns the last result.
  template <class Word> static bool visit(const LdsRange &range, Word &&on_word) {
    const uint32_t first = range.low / 4;
    const uint32_t last = range.high / 4 - 1;
    const uint64_t head = all_lanes << first % 64;
    const uint64_t tail = all_lanes >> (63 - last % 64);
    if (first / 64 == last / 64) return on_word(first / 64, head & tail);
    if (!on_word(first / 64, head)) return false;
    for (uint32_t word = first / 64 + 1; word < last / 64; ++word)
      if (!on_word(word, all_lanes)) return false;
    return on_word(last / 64, tail);
  }

  std::vector<uint64_t> words;
  LdsRange used;
};

} // namespace sluice::emulator

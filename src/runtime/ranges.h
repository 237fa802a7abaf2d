//===- ranges.h - named ranges around the work that calls enqueue, for profilers ------------------------===//
#pragma once

#include "runtime/context.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <concepts>
#include <cstddef>
#include <string_view>

namespace sluice::runtime {

/// The text of a range: no allocation, and what does not fit is left out.
class RangeText {
public:
  RangeText &operator<<(std::string_view text) {
    const size_t count = std::min(text.size(), characters.size() - 1 - used);
    std::copy_n(text.begin(), count, characters.begin() + used);
    used += count;
    characters[used] = '\0';
    return *this;
  }
  RangeText &operator<<(std::integral auto number) {
    std::array<char, 20> digits;
    const char *end = std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr;
    return *this << std::string_view(digits.data(), size_t(end - digits.data()));
  }
  const char *c_str() const { return characters.data(); }

private:
  std::array<char, 256> characters = {};
  size_t used = 0;
};

/// Open while it lives. Without functions in the context it costs the test for them.
class Range {
public:
  /// `describe` writes the text, and is called only if the range is opened.
  template <typename Describe>
  Range(const Context &context, const Describe &describe) : pop(context.ranges.pop) {
    if (pop == nullptr) return;
    RangeText text;
    describe(text);
    context.ranges.push(text.c_str());
  }
  ~Range() {
    if (pop != nullptr) pop();
  }
  Range(const Range &) = delete;
  Range &operator=(const Range &) = delete;

private:
  int (*pop)();
};

} // namespace sluice::runtime

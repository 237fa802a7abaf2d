//===- level.h - how much of a test runs ----------------------------------------------------------------===//
//
// The quick tests run for every change, the full tests every night (tests/README.md). A test with many items
// of one kind takes some of them in its quick run. In its full run, with SLUICE_FULL_TESTS=1 in the
// environment, it takes all.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include <cstddef>
#include <cstdlib>
#include <string_view>

namespace sluice::test {

inline bool is_full() {
  const char *value = std::getenv("SLUICE_FULL_TESTS");
  return value != nullptr && std::string_view(value) == "1";
}

/// Whether item `index` of a list is taken: one of every `of` in a quick run.
inline bool takes(size_t index, size_t of) {
  return is_full() || index % of == 0;
}

} // namespace sluice::test

//===- interposed.h - counts, and fails, allocations and locks of the whole process ---------------------===//
//
// A program that links interposed.cpp defines malloc and the locks itself, so that every use passes through
// it, the library's included. Not for sanitizer builds, which interpose them too.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include <catch2/catch.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace sluice::test {

struct Interposed {
  std::atomic<size_t> allocations = 0;
  std::atomic<size_t> locks = 0;
  std::atomic<int64_t> blocks = 0; // allocated and not freed
  /// The allocation with this number, counted from 0 like `allocations`, and all later ones fail.
  std::atomic<size_t> first_failing = SIZE_MAX;

  void start_counting() { allocations = locks = 0; }
};

extern Interposed interposed;

/// Calls a function that returns whether it succeeded: it must, and neither allocates nor locks.
template <typename Run> void check_costs_nothing(const Run &run) {
  interposed.start_counting();
  const bool succeeded = run();
  const size_t allocations = interposed.allocations, locks = interposed.locks;
  CHECK(succeeded);
  CHECK(allocations == 0);
  CHECK(locks == 0);
}

} // namespace sluice::test

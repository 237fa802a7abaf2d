//===- inexact_memory.h - which bytes of memory hold values that a GPU may compute differently ----------===//
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "emulator/check/fidelity_facts.h"

namespace sluice::emulator {

/// Kept from launch to launch. All functions may be called from any thread; bytes that nobody has entered
/// hold the empty set.
class InexactMemory {
public:
  /// Everything that the bytes hold.
  InexactSet get(uint64_t address, uint64_t bytes);
  /// Replaces what they hold.
  void set(uint64_t address, uint64_t bytes, InexactSet sources);
  /// Adds to it.
  void add(uint64_t address, uint64_t bytes, InexactSet sources);
  void copy(uint64_t to, uint64_t from, uint64_t bytes);

private:
  static constexpr uint64_t page_bytes = 4096;
  using Page = std::array<InexactSet, page_bytes>;
  /// Calls `change(InexactSet &)` for each byte; pages that do not exist are made only if `makes` is set.
  template <typename Change> void change(uint64_t address, uint64_t bytes, bool makes, Change &&change);

  std::atomic<bool> any = false; // a page exists
  std::mutex mutex;
  std::unordered_map<uint64_t, std::unique_ptr<Page>> pages;
};

} // namespace sluice::emulator

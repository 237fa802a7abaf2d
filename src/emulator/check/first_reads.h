//===- first_reads.h - loads before a compare-and-swap --------------------------------------------------===//
//
// A loop around a compare-and-swap begins with a plain load, which may meet atomics of other waves. That does
// no harm: a dword is loaded as a whole, and the atomic finds out if the value is old. So a load that met an
// atomic is kept here until the launch has ended. If a wave then compared and swapped at a dword that the
// same instruction had loaded for it, the load was such a first read; otherwise it was a race.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <utility>
#include <vector>

namespace sluice::emulator {

/// A load and an atomic of two waves at one dword.
struct LoadAndAtomic {
  bool load_is_later = false;
  uint32_t wave = 0; // of the later access: number in the launch
  uint32_t lane = 0; // its first lane
  uint64_t address = 0;
  uint32_t op = 0;
  uint32_t other_op = 0;
  uint32_t other_wave = 0;
  uint64_t count = 1; // of such meetings of the two instructions
};

/// All functions are thread-safe, but `races` is for the end of the launch.
class FirstReads {
public:
  void met(const LoadAndAtomic &meeting);
  /// A compare-and-swap has met what the instruction loaded for its own wave.
  void compared(uint32_t load_op);
  /// The meetings of loads that no compare-and-swap followed.
  std::vector<LoadAndAtomic> races() const;

private:
  mutable std::mutex mutex;
  std::map<std::pair<uint32_t, uint32_t>, LoadAndAtomic> meetings; // by instruction: later and earlier one
  std::set<uint32_t> first_reads;
};

} // namespace sluice::emulator

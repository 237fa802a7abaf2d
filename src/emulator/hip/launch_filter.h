//===- launch_filter.h - which launches are checked -----------------------------------------------------===//
#pragma once

#include <cstdint>
#include <limits>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

namespace sluice::emulator::hip {

/// All functions are thread-safe.
class LaunchFilter {
public:
  /// Sets "kernel", "launch_skip" or "launch_count", and counts launches anew. False for a bad value, nothing
  /// for any other key.
  std::optional<bool> configure(std::string_view key, std::string_view value);
  void reset();

  /// Whether the next launch, of this kernel, is checked. Launches of kernels of other names are not counted.
  bool select(std::string_view kernel);

private:
  static constexpr uint64_t all = std::numeric_limits<uint64_t>::max();

  std::mutex mutex;
  std::string pattern = "*";
  uint64_t skip = 0;
  uint64_t count = all;
  uint64_t seen = 0;
};

} // namespace sluice::emulator::hip

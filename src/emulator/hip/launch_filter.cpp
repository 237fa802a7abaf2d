//===- launch_filter.cpp - which launches are checked ---------------------------------------------------===//
#include "emulator/hip/launch_filter.h"

#include <charconv>

#include "emulator/check/suppressions.h"

namespace sluice::emulator::hip {

std::optional<bool> LaunchFilter::configure(std::string_view key, std::string_view value) {
  const std::lock_guard lock(mutex);
  if (key == "kernel") {
    if (value.empty()) return false;
    pattern = value;
    seen = 0;
    return true;
  }
  if (key != "launch_skip" && key != "launch_count") return std::nullopt;
  uint64_t number = all;
  if (key == "launch_skip" || value != "all") {
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
    if (error != std::errc() || end != value.data() + value.size()) return false;
  }
  (key == "launch_skip" ? skip : count) = number;
  seen = 0;
  return true;
}

void LaunchFilter::reset() {
  const std::lock_guard lock(mutex);
  pattern = "*";
  skip = seen = 0;
  count = all;
}

bool LaunchFilter::select(std::string_view kernel) {
  const std::lock_guard lock(mutex);
  if (!matches_pattern(pattern, kernel)) return false;
  const uint64_t number = seen++;
  return number >= skip && number - skip < count;
}

} // namespace sluice::emulator::hip

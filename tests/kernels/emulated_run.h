//===- emulated_run.h - one attention launch on the emulator, and what it reports
//-------------------------===//
#pragma once

#include "package/manifest.h"

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace sluice::test {

struct RunResult {
  int hip_error = 0;                // of loading, launching or synchronising
  std::vector<std::string> kinds;   // of the reports, in order
  std::vector<std::string> reports; // each as JSON
  std::vector<uint16_t> output;     // O, whatever the run was worth
  uint64_t lds_bank_conflicts = 0;
};

/// Launches the kernel in `elf` on a problem that uses both LDS slots several times and ends in a partial
/// tile.
RunResult run_attention(const package::KernelEntry &kernel, std::span<const std::byte> elf);

} // namespace sluice::test

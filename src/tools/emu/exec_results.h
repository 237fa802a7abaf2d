//===- exec_results.h - what a program's launches have reported -----------------------------------------===//
#pragma once

#include "emulator/machine/machine.h"

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::tools::emu {

struct ExecResults {
  uint64_t launches = 0;
  uint64_t unchecked = 0; // launches that the filters leave out
  uint64_t workgroups = 0;
  uint64_t waves = 0;
  uint64_t wave_instructions = 0;
  uint64_t mfma_instructions = 0;
  std::set<std::string> unchecked_kernels;
  std::map<std::string, uint64_t> kernels; // checked launches, by the name of the kernel
  /// The same mistake in several launches is one report with a count. Without those that a rule suppresses.
  std::vector<emulator::Report> reports;
  std::map<uint32_t, uint64_t> suppressed; // findings, by the line of the rule
  uint64_t reports_dropped = 0;
  emulator::FidelityNote fidelity; // of all launches, if --fidelity asks for it

  uint64_t count(std::string_view severity) const;
  /// Notes do not count.
  bool clean() const { return count("note") == reports.size(); }
  bool failed() const { return count("error") != 0; }
};

/// Reads what the program's processes have appended to the file. Throws ToolError.
ExecResults read_results(const std::string &path);

} // namespace sluice::tools::emu

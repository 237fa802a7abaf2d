//===- host_calls.h - the program's calls behind launches and memory ------------------------------------===//
//
// With the setting host_calls, each launch and each allocation keeps the return addresses on its thread's
// stack. They become a function and a line only for a report, by the debug information of the program and its
// libraries.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include <array>
#include <cstddef>
#include <string>

#include "emulator/check/report.h"

namespace sluice::emulator::hip {

/// Innermost first; it begins within this library.
struct CallSite {
  static constexpr size_t most = 24;
  std::array<void *, most> frames{};
  int count = 0;
};

/// The running call; empty unless the setting is on.
CallSite call_site();
/// Notes the running call as the one that allocated the block at `start`.
void note_allocation(const void *start);

/// "function, file:line" of the program's innermost frame that is not HIP's own; without debug information
/// "function in file". Empty if unknown.
std::string call_site_text(const CallSite &call);
/// Notes in a report what launched it, if anything did, and what allocated the memory that it is about.
void describe_host_calls(Report &report, const CallSite *launch);

} // namespace sluice::emulator::hip

//===- time_command.h - sluice-emu run --timing ---------------------------------------------------------===//
#pragma once

#include "emulator/machine/machine.h"
#include "tools/emu/commands.h"

#include <array>
#include <span>

namespace sluice::tools::emu {

struct TimedCall {
  std::array<uint32_t, 3> grid;
  std::array<uint32_t, 3> block;
  std::span<const std::byte> kernarg;
  const emulator::Memory &memory;
};

/// Returns the exit status.
int time_kernel(const emulator::Program &program, const RunOptions &options, const TimedCall &call);

} // namespace sluice::tools::emu

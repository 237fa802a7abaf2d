//===- kernel_stats.h - static figures of a kernel, from its machine code -------------------------------===//
//
// Registers, memory and occupancy as the code object declares them, and instruction mixes, counted in the
// machine code: of the kernel, of each loop with MFMAs, and of the usual way around the loop with the most
// MFMAs.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "emulator/stats/bound.h"
#include "emulator/stats/instruction_mix.h"
#include "package/code_object.h"
#include "package/occupancy.h"

namespace sluice::emulator {

struct LoopStats {
  uint64_t first = 0;     // address of the branch's target
  uint64_t last = 0;      // address of the backward branch
  bool innermost = false; // it contains no other listed loop
  InstructionMix mix;
};

/// The way around a loop with the most MFMAs and, among those, the fewest instructions: the code that runs
/// while no special case (a mask, a rescale, the last tile) applies. The range of a loop contains the code
/// for all special cases.
struct LoopWay {
  uint64_t first = 0; // address of the loop's first instruction
  InstructionMix mix;
  Bound bound;
};

struct KernelStats {
  package::Kernel kernel;
  std::string target;
  uint32_t code_object_version = 0;
  package::Occupancy occupancy; // for workgroups as large as the kernel allows, with its static LDS
  InstructionMix mix;
  std::vector<LoopStats> loops; // with at least one MFMA, by first address
  std::optional<LoopWay> way;   // around the loop with the most MFMAs
};

/// Throws std::runtime_error (package::CodeObjectError for the file, else for a kernel that does not exist).
KernelStats kernel_stats(std::span<const std::byte> elf, std::string_view kernel);
std::string kernel_stats_json(std::span<const std::byte> elf, std::string_view kernel);

/// A JSON string literal.
std::string json_string(std::string_view text);

} // namespace sluice::emulator

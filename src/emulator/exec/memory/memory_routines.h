//===- memory_routines.h - the routines of the instructions that touch memory ---------------------------===//
//
// The facts about an instruction say what it accesses. The routine that runs it is shared by all instructions
// of its kind and exists twice: `fast` for waves without checks, where everything completes at once, and
// `strict`.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include <span>
#include <string_view>

#include "emulator/isa/instructions.h"
#include "emulator/isa/op.h"
#include "emulator/isa/wave.h"

namespace sluice::emulator {

/// Null if the machine has no such instruction.
struct MemoryRoutines {
  Handler fast = nullptr;
  Handler strict = nullptr;
};

/// For instructions that share their routines with no others.
struct NamedRoutines {
  std::string_view mnemonic;
  MemoryRoutines routines;
};
inline MemoryRoutines find_routines(std::span<const NamedRoutines> rows, std::string_view mnemonic) {
  for (const NamedRoutines &row : rows)
    if (row.mnemonic == mnemonic) return row.routines;
  return {};
}

MemoryRoutines lds_routines(const InstructionFacts &facts);
/// ds_permute and similar.
MemoryRoutines lane_exchange_routines(const InstructionFacts &facts);
/// Global wave sync: ds_gws_init and ds_gws_barrier.
MemoryRoutines global_sync_routines(const InstructionFacts &facts);
/// flat_, global_ and scratch_ instructions.
MemoryRoutines flat_routines(const InstructionFacts &facts);
/// buffer_ and tbuffer_ instructions. `to_lds`: the LDS bit of the encoding.
MemoryRoutines buffer_routines(const InstructionFacts &facts, bool to_lds);
/// Those that convert.
MemoryRoutines formatted_routines(const InstructionFacts &facts, bool to_lds);
MemoryRoutines scalar_memory_routines(const InstructionFacts &facts);

struct AtomicRule {
  AtomicBody body;
  bool second = false; // has a second operand
  DenormalRule memory_denormals = DenormalRule::keep;
  DenormalRule lds_denormals = DenormalRule::keep;
};
/// `data` is that of an atomic.
const AtomicRule &atomic_rule(const DataFacts &data);

/// The last argument of an AtomicBody.
uint32_t kept_denormals(const FloatMode &mode, DenormalRule rule);

} // namespace sluice::emulator

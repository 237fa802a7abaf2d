//===- instruction_mix.h - classes of instructions by the resource they use -----------------------------===//
//
// Instruction classes, counts by class, and the time on the vector port: bound.h has the other
// slots.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "emulator/isa/instructions.h"

namespace sluice::emulator {

enum class InstructionClass : uint8_t {
  matrix,
  acc_move, // v_accvgpr_*
  valu,
  packed_f32, // v_pk_*_f32, which cannot run in parallel with an MFMA
  transcendental,
  lds_read,
  lds_write,
  lds_other,
  memory_to_lds,
  memory_load,
  memory_store, // and atomics
  scratch,
  scalar,
  scalar_memory,
  wait,
  barrier,
  branch,
  priority,
  nop,
  unknown, // bytes that are not an instruction
};
inline constexpr size_t instruction_class_count = size_t(InstructionClass::unknown) + 1;
/// "MFMA", "VALU", "LDS_rd", ...
std::string_view class_name(InstructionClass instruction_class);

/// `to_lds`: a buffer load whose encoding has the LDS bit.
InstructionClass classify(const InstructionFacts &facts, bool to_lds);

struct InstructionMix {
  std::array<uint32_t, instruction_class_count> count{};
  std::map<std::string, uint32_t> mfma; // by mnemonic
  uint32_t mfma_clk = 0;                // time that the matrix core is busy
  uint32_t quarter_rate = 0;            // among the VALU class: 16 clk each
  bool waits_for_all_memory = false;    // contains an s_waitcnt with vmcnt(0)

  uint32_t operator[](InstructionClass instruction_class) const { return count[size_t(instruction_class)]; }
  void add(InstructionClass instruction_class, const InstructionFacts &facts);
  void add(const InstructionMix &other);
  uint32_t total() const;
  /// The time that one wave needs the issue port of its SIMD: 4 clk per instruction of the vector kinds, 16
  /// per transcendental or 32-bit integer product.
  uint32_t issue_clk() const;
};

/// The clk that an instruction keeps the matrix core busy.
uint32_t mfma_clk(const InstructionFacts &facts);

} // namespace sluice::emulator

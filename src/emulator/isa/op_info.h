//===- op_info.h - what the checks know about an instruction --------------------------------------------===//
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "emulator/isa/disassembler.h"
#include "emulator/isa/encoding.h"
#include "emulator/isa/instructions.h"
#include "emulator/isa/mfma_shapes.h"
#include "emulator/isa/op.h"

namespace sluice::emulator {

/// Instructions that may need a wait state between a scalar write of M0 and their early read: one of the
/// manual's instructions, s_ttracedata, or a copy of a buffer into LDS.
enum class M0Wait : uint8_t { none, required, trace, copy };

enum class OpKind : uint8_t {
  scalar,
  branch,
  valu,
  mfma,
  lds,
  lds_copy,
  vector_memory,
  scalar_memory,
  other
};

/// For an MFMA or SMFMAC.
struct MatrixInfo {
  MatrixUnit unit = MatrixUnit::xdl;
  uint8_t passes = 0;
  uint8_t a_rows = 0;
  uint8_t b_rows = 0;
  uint8_t result_rows = 0; // of D, and of C
  bool sparse = false;     // C is D, and the third source is an index register
};

struct OpInfo {
  const InstructionFacts *facts = &no_instruction; // of an instruction that the machine runs
  OpKind kind = OpKind::other;
  Definedness definedness = Definedness::all;
  bool dpp = false;
  bool half_write = false;     // SDWA or op_sel: the result is part of a register
  bool data_read_late = false; // a store of more than 64 bits, whose data is read after it has issued
  bool reads_mode = false;     // s_getreg of MODE, and s_setreg
  uint16_t dot = 0;            // for a dot product: which one; else 0
  MatrixInfo matrix;
  uint8_t wait_states = 1; // s_nop has more
  // First and one past the last range in OpInfos::ranges.
  uint32_t reads_begin = 0, reads_end = 0;
  uint32_t writes_begin = 0, writes_end = 0;
  // One past the highest register used, by file.
  uint16_t vgprs_end = 0, agprs_end = 0, sgprs_end = 0;
  // Address registers of a memory instruction; an undefined value in them is a mistake.
  RegisterRange address{0, 0};
  RegisterRange stored{0, 0};        // vector or scalar registers
  RegisterRange second_stored{0, 0}; // second data of DS
  bool address_in_m0 = false;        // the address, or the number of a resource
  M0Wait m0_wait = M0Wait::none;
  bool ends_long_branch = false; // s_setpc_b64, whose target is known

  Role role() const { return facts->role; }
  /// Whether Op::value is the target of a jump.
  bool jumps() const { return is_relative_jump(role()) || ends_long_branch; }
  /// Whether the next instruction may run after it.
  bool falls_through() const { return emulator::falls_through(role()); }
  bool is_atomic() const { return emulator::is_atomic(role()); }
};

inline std::optional<uint32_t> packed_row(const ValuControl &v, uint32_t k, bool for_high) {
  return chosen_dword(v.keeps_bits, v.modifiers.select_high, v.modifiers.select_high_for_high, k, for_high);
}
/// Whether dword r of source k is read.
inline bool reads_row(const ValuControl &v, uint32_t k, uint32_t r) {
  if (v.source_types[k] != OperandType::packed_f32) return r < rows_of(v.source_types[k]);
  return packed_row(v, k, false) == r || packed_row(v, k, true) == r;
}

struct OpInfos {
  std::vector<OpInfo> infos; // by index of instruction
  std::vector<RegisterRange> ranges;
};

} // namespace sluice::emulator

//===- gpr_index.h - registers relative to M0 -----------------------------------------------------------===//
//
// With MODE.GPR_IDX_EN set, M0[7:0] is added to the numbers of those VGPR operands of a vector instruction
// that M0[15:12] names: bits 0 to 2 the sources, bit 3 the destination.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include <optional>

#include "emulator/isa/op.h"

namespace sluice::emulator {

struct Wave;

/// The fields of M0.
constexpr uint32_t gpr_index_mask = 0xff;
constexpr uint32_t gpr_index_operands_shift = 12;
constexpr uint32_t gpr_index_operands_mask = 0xf << gpr_index_operands_shift;

struct IndexedOp {
  Op op;                                // with the registers it really uses
  std::optional<uint32_t> beyond_limit; // a register that the wave does not have; there may be several
  bool suppressed = false;              // such a register is the destination: the instruction does nothing
};

/// A source beyond the wave's registers is v0, as in hardware.
IndexedOp indexed_op(const Wave &w, const Op &op);

/// Runs the instruction on the registers it really uses.
Step run_indexed(Wave &w, const Op &op);

} // namespace sluice::emulator

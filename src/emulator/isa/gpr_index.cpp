//===- gpr_index.cpp - registers relative to M0 ---------------------------------------------------------===//
#include "emulator/isa/gpr_index.h"

#include <algorithm>

#include "emulator/isa/wave.h"

namespace sluice::emulator {

IndexedOp indexed_op(const Wave &w, const Op &op) {
  IndexedOp result{op, std::nullopt};
  const uint32_t m0 = w.s[sgpr_m0];
  const uint32_t index = m0 & gpr_index_mask;
  const uint32_t operands = m0 >> gpr_index_operands_shift;
  const uint32_t limit = std::min<uint32_t>(w.vgpr_limit, first_agpr);
  // True if the resulting register does not exist.
  auto move = [&](uint16_t &operand, OperandType type) {
    if (operand >= first_agpr) return false;
    const uint32_t last = operand + index + rows_of(type) - 1;
    operand = uint16_t(operand + index);
    if (last < limit) return false;
    result.beyond_limit = last;
    operand = 0;
    return true;
  };
  Op &real = result.op;
  if ((operands & 8) != 0) result.suppressed = move(real.dst, op.valu.result_type);
  for (uint32_t k = 0; k < op.valu.sources; ++k) {
    if (op.valu.accumulates && k + 1u == op.valu.sources)
      real.src[k] = real.dst;
    else if ((operands >> k & 1) != 0)
      move(real.src[k], op.valu.source_types[k]);
  }
  return result;
}

Step run_indexed(Wave &w, const Op &op) {
  const IndexedOp indexed = indexed_op(w, op);
  if (indexed.suppressed) return Step::next;
  w.mode.gpr_index = false;
  const Step step = op.run(w, indexed.op);
  w.mode.gpr_index = true;
  return step;
}

} // namespace sluice::emulator

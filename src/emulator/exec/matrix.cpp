//===- matrix.cpp - MFMA as an instruction of a wave ----------------------------------------------------===//
#include "emulator/exec/matrix.h"

#include "emulator/exec/mfma.h"
#include "emulator/exec/wave.h"

namespace sluice::emulator {

Step run_mfma(Wave &w, const Op &op) {
  const MfmaShape &shape = mfma_instructions()[op.mfma.shape].shape;
  const bool constant = op.src[2] >= first_constant;
  const uint32_t *c = constant ? nullptr : w.row(op.src[2]);
  mfma(shape, w.row(op.dst), w.row(op.src[0]), w.row(op.src[1]), c, constant ? w.scalar(op.src[2]) : 0);
  ++w.mfma_executed;
  return Step::next;
}

} // namespace sluice::emulator

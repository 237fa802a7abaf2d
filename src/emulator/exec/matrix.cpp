//===- matrix.cpp - MFMA as an instruction of a wave ----------------------------------------------------===//
#include "emulator/exec/matrix.h"

#include "emulator/exec/mfma.h"
#include "emulator/isa/wave.h"

namespace sluice::emulator {

namespace {

Step stop(Wave &w, Fault fault) {
  w.fault = fault;
  return Step::stop;
}

} // namespace

Step run_mfma(Wave &w, const Op &op) {
  const MfmaShape &shape = mfma_instructions()[op.mfma.shape].shape;
  if (w.mode.fp16_overflow) [[unlikely]]
    return stop(w, Fault::matrix_overflow_mode);
  if (w.mode.gpr_index) [[unlikely]]
    return stop(w, Fault::matrix_index_mode);
  MfmaOptions options{{op.mfma.cbsz, op.mfma.abid, op.mfma.blgp}, (w.mode.denormal_32 & 1) == 0, nullptr};
  uint32_t *d = w.row(op.dst);
  const uint32_t *c = d;
  uint64_t constant = 0;
  if (shape.sparse) {
    options.index = w.row(op.src[2]);
    if (!mfma_index_valid(shape, options.modifiers, options.index)) [[unlikely]]
      return stop(w, Fault::sparse_index);
  } else if (op.src[2] >= first_constant) {
    c = nullptr;
    constant = w.scalar_pair(op.src[2]);
  } else {
    c = w.row(op.src[2]);
  }
  mfma(shape, d, w.row(op.src[0]), w.row(op.src[1]), c, constant, options);
  ++w.mfma_executed[op.mfma.shape];
  return Step::next;
}

} // namespace sluice::emulator

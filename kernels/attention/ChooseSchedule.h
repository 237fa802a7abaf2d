//===- ChooseSchedule.h - decides how an attention kernel uses its registers ------------------*- C++ -*-===//
#pragma once

#include "attention/Schedule.h"
#include "dialect/Sluice.h"

namespace sluice {

/// Waves of 32 rows are for many rows, those of 16 rows for few.
inline bool hasManyRows(AttentionOp op) {
  constexpr unsigned manyRows = 32;
  return op.getWaveRows() == manyRows;
}

/// Whether Q and its arithmetic are of 8 bits.
inline bool isOfBytes(AttentionOp op) {
  return op.getElementType().getIntOrFloatBitWidth() == 8;
}

/// The schedule of a kernel: the usual one, but for parts that its function has as an attribute. Fails, with
/// an error at the op, if they are none.
llvm::FailureOr<Schedule> scheduleOf(AttentionOp op);

} // namespace sluice

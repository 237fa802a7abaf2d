//===- PrefixRows.cpp - which rows of a prefix belong to a sequence -------------------------------------===//
#include "attention/PrefixRows.h"

using namespace mlir;

namespace sluice {

namespace {

/// The sequences of the rows: see kernargs.h.
struct Sequences {
  Value starts, lengths, count, rowsOfEach;
};

Value load(Emitter &b, Value numbers, Value index) {
  return LLVM::LoadOp::create(b, b.getI32Type(), b.advance(numbers, b.getI32Type(), b.zeroExtend(index)),
                              /*alignment=*/4);
}

/// How many of the count + 1 starts are at or before the row: bit by bit, from the highest on.
Value countStarts(Emitter &b, const Sequences &sequences, Value number) {
  Value starts = b.add(sequences.count, b.i32(1));
  Value zeros = LLVM::CountLeadingZerosOp::create(b, b.getI32Type(), starts, /*is_zero_poison=*/false);
  Value steps = b.sub(b.i32(32), zeros);
  auto loop = scf::ForOp::create(b, b.i32(0), steps, b.i32(1), ValueRange{b.i32(0)});
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  Value counted = loop.getRegionIterArgs()[0];
  Value bit = b.shiftLeft(b.i32(1), b.sub(b.sub(steps, loop.getInductionVar()), b.i32(1)));
  Value tried = b.add(counted, bit);
  Value start = load(b, sequences.starts, b.minS(b.sub(tried, b.i32(1)), sequences.count));
  Value isBefore = b.isFalse(b.either(b.less(starts, tried), b.less(number, start)));
  scf::YieldOp::create(b, ValueRange{b.select(isBefore, tried, counted)});
  return loop.getResult(0);
}

Value isOfSequence(Emitter &b, const Sequences &sequences, Value number) {
  SmallVector<Value> place = b.branch(
      b.isNull(sequences.starts),
      [&] {
        Value sequence = arith::DivUIOp::create(b, number, sequences.rowsOfEach);
        return SmallVector<Value>{sequence, b.mul(sequence, sequences.rowsOfEach), sequences.rowsOfEach};
      },
      [&] {
        Value last = b.sub(countStarts(b, sequences, number), b.i32(1));
        Value sequence = b.clamp(last, b.i32(0), b.sub(sequences.count, b.i32(1)));
        Value first = load(b, sequences.starts, sequence);
        Value next = load(b, sequences.starts, b.add(sequence, b.i32(1)));
        return SmallVector<Value>{sequence, first, b.sub(next, first)};
      });
  Value sequence = place[0], row = b.sub(number, place[1]), exists = b.less(sequence, sequences.count);
  Value rows = b.branch(
      b.both(exists, b.isFalse(b.isNull(sequences.lengths))),
      [&] { return SmallVector<Value>{b.minS(load(b, sequences.lengths, sequence), place[2])}; },
      [&] { return SmallVector<Value>{place[2]}; })[0];
  return b.both(exists, b.both(b.isFalse(b.less(row, b.i32(0))), b.less(row, rows)));
}

} // namespace

Value readableRow(Emitter &b, const Arguments &arguments, Value number, Value row, unsigned rowBytes) {
  return b.rarely(
      arguments.flag(package::score_rows_of_sequences),
      [&] {
        auto narrow = [&](Value wide) { return arith::TruncIOp::create(b, b.getI32Type(), wide); };
        Sequences sequences{arguments.late("diagonals"), arguments.late("causal"),
                            narrow(arguments.late("span_stride")), narrow(arguments.late("bias_row_stride"))};
        Value zeros = ZerosOp::create(b, row.getType(), rowBytes);
        return SmallVector<Value>{b.select(isOfSequence(b, sequences, number), row, zeros)};
      },
      [&] { return SmallVector<Value>{row}; })[0];
}

} // namespace sluice

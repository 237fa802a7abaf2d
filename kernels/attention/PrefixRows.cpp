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
  Value steps = b.sub(b.i32(32), b.leadingZeros(starts));
  return b.loop(b.i32(0), steps, b.i32(1), b.i32(0), [&](Value step, Value counted) {
    Value bit = b.shiftLeft(b.i32(1), b.sub(b.sub(steps, step), b.i32(1)));
    Value tried = b.add(counted, bit);
    Value start = load(b, sequences.starts, b.minS(b.sub(tried, b.i32(1)), sequences.count));
    Value isBefore = b.isFalse(b.either(b.less(starts, tried), b.less(number, start)));
    return b.select(isBefore, tried, counted);
  });
}

Value isOfSequence(Emitter &b, const Sequences &sequences, Value number) {
  auto [sequence, first, most] = b.branch(
      b.isNull(sequences.starts),
      [&] {
        Value sequence = arith::DivUIOp::create(b, number, sequences.rowsOfEach);
        return std::tuple(sequence, b.mul(sequence, sequences.rowsOfEach), sequences.rowsOfEach);
      },
      [&] {
        Value last = b.sub(countStarts(b, sequences, number), b.i32(1));
        Value sequence = b.clamp(last, b.i32(0), b.sub(sequences.count, b.i32(1)));
        Value first = load(b, sequences.starts, sequence);
        Value next = load(b, sequences.starts, b.add(sequence, b.i32(1)));
        return std::tuple(sequence, first, b.sub(next, first));
      });
  Value row = b.sub(number, first), exists = b.less(sequence, sequences.count);
  Value rows = b.branch(
      b.both(exists, b.isFalse(b.isNull(sequences.lengths))),
      [&, sequence = sequence, most = most] { return b.minS(load(b, sequences.lengths, sequence), most); },
      [&, most = most] { return most; });
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
        return b.select(isOfSequence(b, sequences, number), row, zeros);
      },
      [&] { return row; });
}

} // namespace sluice

//===- Arguments.cpp - the arguments of an attention kernel, and its sequence ---------------------------===//
#include "attention/Arguments.h"

using namespace mlir;

namespace sluice {

Value Arguments::elementOr(StringRef array, Type type, Value index, Value otherwise) const {
  Value pointer = late(array);
  return b.branch(
      b.isNull(pointer), [&] { return SmallVector<Value>{otherwise}; },
      [&] { return SmallVector<Value>{b.loadScalar(type, pointer, b.zeroExtend(index))}; })[0];
}

Value Arguments::scaled(Value value, StringRef factor, package::ScoreFlag perHead, Value head) const {
  Value pointer = late(factor);
  return b.branch(
      b.isNull(pointer), [&] { return SmallVector<Value>{value}; },
      [&] {
        Value index = b.select(flag(perHead), head, b.i32(0));
        Value place = b.advance(pointer, b.getF32Type(), b.zeroExtend(index));
        return SmallVector<Value>{
            b.mulF(value, LLVM::LoadOp::create(b, b.getF32Type(), place, /*alignment=*/4))};
      })[0];
}

Sequence readSequence(Emitter &b, const Arguments &arguments, Value batch) {
  auto extent = [&](StringRef starts, StringRef lengths, StringRef length) -> std::pair<Value, Value> {
    Value pointer = arguments.late(starts);
    SmallVector<Value> packed = b.branch(
        b.isNull(pointer), [&] { return SmallVector<Value>{b.i32(0), arguments.late(length)}; },
        [&] {
          Value first = b.loadScalar(b.getI32Type(), pointer, b.zeroExtend(batch));
          Value end = b.loadScalar(b.getI32Type(), pointer, b.zeroExtend(b.add(batch, b.i32(1))));
          return SmallVector<Value>{first, b.sub(end, first)};
        });
    return {packed[0], arguments.elementOr(lengths, b.getI32Type(), batch, packed[1])};
  };
  auto [firstRow, rows] = extent("q_starts", "q_lengths", "q_len");
  auto [firstKey, keys] = extent("kv_starts", "kv_lengths", "kv_len");
  return {batch, firstRow, rows, firstKey, keys};
}

} // namespace sluice

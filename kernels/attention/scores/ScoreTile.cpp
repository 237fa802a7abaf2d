//===- ScoreTile.cpp - the scores of a tile of keys, while they are changed -----------------------------===//
#include "attention/scores/ScoreTile.h"

using namespace mlir;

namespace sluice {

LaneRows ScoreTile::find(Value changing) {
  LaneRows rows = locate(changing);
  place.firstKey = b.add(firstKey, b.mul(rows.laneGroup, b.i32(4)));
  place.head = rows.qHead;
  place.row = rows.token;
  place.laneGroup = rows.laneGroup;
  place.lane = rows.lane;
  return rows;
}

Scores ScoreTile::each(ArrayRef<Value> scores, Change change) const {
  Scores results;
  for (auto [index, block] : llvm::enumerate(scores)) {
    SmallVector<Value> elements;
    for (unsigned r = 0; r < layout.results(); ++r) {
      Value key = b.add(place.firstKey, b.i32(layout.rows * index + layout.rowOf(r)));
      elements.push_back(change(b.extract(block, r), key));
    }
    results.push_back(b.pack(cast<VectorType>(block.getType()), elements));
  }
  return results;
}

Scores ScoreTile::eachOfKey(ArrayRef<Value> scores, const LaneRows &rows, Value laneValues,
                            llvm::function_ref<Value(Value score, Value keyValue)> combine) const {
  Value first = b.mul(rows.laneGroup, b.i32(4)), last;
  unsigned number = 0;
  return each(scores, [&](Value score, Value) {
    if (number % 4 == 0 && last) first = b.after(first, last);
    unsigned block = number / layout.results(), r = number % layout.results();
    ++number;
    Value key = b.add(first, b.i32(layout.rows * block + layout.rowOf(r)));
    return last = combine(score, b.laneValue(laneValues, key));
  });
}

Asked askMatrix(const ScoreTile &tile, StringRef matrix) {
  Emitter &b = tile.b;
  Value hasKeys = b.less(b.i32(0), tile.sequence.keys), pointer = tile.arguments.late(matrix);
  return {b.both(b.isFalse(b.isNull(pointer)), hasKeys), pointer};
}

Value ScoreTile::rowOf(StringRef matrix) const {
  Value offset = b.mul(b.zeroExtend(sequence.batch), arguments.late((matrix + "_batch_stride").str()));
  offset = b.add(offset, b.mul(b.zeroExtend(place.head), arguments.late((matrix + "_head_stride").str())));
  return b.add(offset, b.mul(b.zeroExtend(place.row), arguments.late((matrix + "_row_stride").str())));
}

Value ScoreTile::headElement(Value array, StringRef batchStride) const {
  Value at = b.add(b.mul(b.zeroExtend(sequence.batch), inLoop.late(batchStride)), b.zeroExtend(place.head));
  return LLVM::LoadOp::create(b, b.getF32Type(), b.advance(array, b.getF32Type(), at), /*alignment=*/4);
}

} // namespace sluice

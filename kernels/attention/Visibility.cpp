//===- Visibility.cpp - which keys a row sees, and which tiles of keys rows need ------------------------===//
#include "attention/Visibility.h"

#include "llvm/Support/MathExtras.h"

#include <limits>

using namespace mlir;

namespace sluice {

Visibility::Visibility(Emitter &b, const Arguments &arguments, const Sequence &sequence, unsigned tileKv)
    : b(b), tileKv(tileKv), keys(sequence.keys), windowLeft(arguments["window_left"]),
      windowRight(arguments["window_right"]), sinkTokens(arguments["sink_tokens"]) {
  shift = b.select(arguments.flag(package::score_top_left), b.i32(0), b.sub(sequence.keys, sequence.rows));
}

Value Visibility::firstKey(Value row) const {
  return b.sub(b.maxS(b.add(row, shift), windowLeft), windowLeft);
}

Value Visibility::lastKey(Value row) const {
  Value end = b.sub(b.sub(keys, b.i32(1)), windowRight);
  return b.add(b.minS(b.add(row, shift), end), windowRight);
}

void Visibility::chooseTiles(Value first, Value last) {
  Value bits = b.i32(llvm::Log2_32(tileKv));
  auto roundedUp = [&](Value n) { return b.shiftRight(b.add(n, b.i32(tileKv - 1)), bits); };
  Value end = roundedUp(b.maxS(b.add(lastKey(last), b.i32(1)), b.i32(0)));
  Value windowTile = b.shiftRight(firstKey(first), bits);
  sinkTiles = b.minS(roundedUp(sinkTokens), end);
  Value rest = b.maxS(windowTile, sinkTiles);
  gap = b.sub(rest, sinkTiles);
  count = b.add(sinkTiles, b.maxS(b.sub(end, rest), b.i32(0)));
}

Value Visibility::keyOfTile(Value tile) const {
  Value number = b.add(tile, b.select(b.less(tile, sinkTiles), b.i32(0), gap));
  return b.mul(number, b.i32(tileKv));
}

Visibility::Tiles Visibility::openTiles(const Rows &rows, Value waveEnd) const {
  Value bits = b.i32(llvm::Log2_32(tileKv));
  auto number = [&](Value tile) { return b.sub(tile, gap); };
  Value first = number(b.shiftRight(b.add(rows.allFirst, b.i32(tileKv - 1)), bits));
  Value seen = b.maxS(b.minS(b.add(rows.allLast, b.i32(1)), waveEnd), b.i32(0));
  return {b.maxS(first, sinkTiles), b.sub(number(b.shiftRight(seen, bits)), b.i32(1))};
}

Visibility::Rows Visibility::rowsOf(Value first, Value last, Value laneRow) const {
  return {firstKey(laneRow), lastKey(laneRow), firstKey(last), lastKey(first)};
}

Value Visibility::hidesBehind(Value tileKey, const Rows &rows) const {
  return b.less(rows.allLast, b.add(tileKey, b.i32(tileKv - 1)));
}

Value Visibility::hidesBefore(Value tileKey, const Rows &rows) const {
  return b.less(tileKey, rows.allFirst);
}

Value Visibility::mayHide(Value tileKey, const Rows &rows) const {
  return b.either(hidesBehind(tileKey, rows), hidesBefore(tileKey, rows));
}

SmallVector<Value> Visibility::hide(ArrayRef<Value> blocks, Value tileKey, const Rows &rows,
                                    MfmaLayout layout, Value laneGroup) const {
  auto accumulator = cast<VectorType>(blocks.front().getType());
  Value ofLane = b.add(tileKey, b.mul(laneGroup, b.i32(4)));
  Value hiddenScore = b.f32(-std::numeric_limits<double>::infinity());
  auto each = [&](ArrayRef<Value> scores, llvm::function_ref<Value(Value)> isHidden) {
    SmallVector<Value> masked;
    for (auto [index, block] : llvm::enumerate(scores)) {
      SmallVector<Value> elements;
      for (unsigned r = 0; r < layout.results(); ++r)
        elements.push_back(b.select(isHidden(b.i32(layout.rows * index + layout.rowOf(r))), hiddenScore,
                                    b.extract(block, r)));
      masked.push_back(b.pack(accumulator, elements));
    }
    return masked;
  };
  SmallVector<Value> causal = b.rarely(
      hidesBehind(tileKey, rows),
      [&] {
        Value limit = b.behindProducts(b.sub(rows.laneLast, ofLane));
        return each(blocks, [&](Value key) { return b.less(limit, key); });
      },
      [&] { return SmallVector<Value>(blocks); });
  return b.rarely(
      hidesBefore(tileKey, rows),
      [&] {
        Value limit = b.behindProducts(b.sub(rows.laneFirst, ofLane)), sinks = b.sub(sinkTokens, ofLane);
        return each(causal,
                    [&](Value key) { return b.both(b.less(key, limit), b.isFalse(b.less(key, sinks))); });
      },
      [&] { return causal; });
}

} // namespace sluice

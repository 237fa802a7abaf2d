//===- Visibility.cpp - which keys a row sees, and which tiles of keys rows need ------------------------===//
#include "attention/Visibility.h"

#include "llvm/Support/MathExtras.h"

#include <limits>

using namespace mlir;

namespace sluice {

Value shiftOf(Emitter &b, const Arguments &arguments, const Sequence &sequence) {
  Value shift =
      b.select(arguments.flag(package::score_top_left), b.i32(0), b.sub(sequence.keys, sequence.rows));
  return b.rarely(
      arguments.flag(package::score_of_sequence),
      [&] {
        // A row's number can be added without overflow.
        Value given = arguments.elementOr("diagonals", b.getI32Type(), sequence.batch, shift);
        return b.clamp(given, b.i32(-package::kernarg_most_diagonal), b.i32(package::kernarg_most_diagonal));
      },
      [&] { return shift; });
}

Visibility::Visibility(Emitter &b, const Arguments &arguments, const Sequence &sequence, unsigned tileKv)
    : b(b), arguments(arguments), tileKv(tileKv), sequence(sequence), shift(shiftOf(b, arguments, sequence)),
      windowLeft(arguments["window_left"]), sinkTokens(arguments["sink_tokens"]) {
  Value launchWindow = arguments["window_right"];
  windowRight = b.rarely(
      arguments.flag(package::score_of_sequence),
      [&] {
        Value causal = arguments.elementOr("causal", b.getI32Type(), sequence.batch, b.i32(0));
        return b.select(b.equal(causal, b.i32(0)), launchWindow, b.i32(0));
      },
      [&] { return launchWindow; });
}

SmallVector<Visibility::Range> Visibility::rangesOf(ArrayRef<Value> rows) const {
  Value lastKey = b.sub(sequence.keys, b.i32(1)), end = b.sub(lastKey, windowRight);
  using Ranges = SmallVector<Range>;
  Ranges usual;
  for (Value row : rows) {
    Value key = b.add(row, shift);
    Value first = b.sub(b.maxS(key, windowLeft), windowLeft);
    usual.push_back({first, b.add(b.minS(key, end), windowRight)});
  }
  Value spans = arguments.late("spans");
  return b.rarely(
      b.isFalse(b.isNull(spans)),
      [&] {
        Value stride = arguments.late("span_stride");
        Value sequenceSpans = b.advance(spans, b.getI32Type(), b.mul(b.zeroExtend(sequence.batch), stride));
        Value count = arith::TruncIOp::create(b, b.getI32Type(), b.shiftRight(stride, b.i64(1)));
        return b.loop(b.i32(0), count, b.i32(1), usual, [&](Value span, const Ranges &before) {
          Value place = b.zeroExtend(b.shiftLeft(span, b.i32(1)));
          Value begin = b.maxS(b.loadScalar(b.getI32Type(), sequenceSpans, place), b.i32(0));
          Value last = b.minS(
              b.sub(b.loadScalar(b.getI32Type(), sequenceSpans, b.add(place, b.i64(1))), b.i32(1)), lastKey);
          Ranges widened;
          for (auto [row, range] : llvm::zip_equal(rows, before)) {
            Value key = b.add(row, shift);
            Value isIn = b.isFalse(b.either(b.less(key, begin), b.less(last, key)));
            Value first = b.select(isIn, b.minS(range.first, begin), range.first);
            widened.push_back({first, b.select(isIn, b.maxS(range.last, last), range.last)});
          }
          return widened;
        });
      },
      [&] { return usual; });
}

void Visibility::chooseTiles(const Range &first, const Range &last) {
  Value bits = b.i32(llvm::Log2_32(tileKv));
  auto roundedUp = [&](Value n) { return b.shiftRight(b.add(n, b.i32(tileKv - 1)), bits); };
  Value end = roundedUp(b.maxS(b.add(last.last, b.i32(1)), b.i32(0)));
  firstKey = first.first;
  Value windowTile = b.shiftRight(firstKey, bits);
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
  Value laneKey = b.add(tileKey, b.mul(laneGroup, b.i32(4)));
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
        Value limit = b.behindProducts(b.sub(rows.laneLast, laneKey));
        return each(blocks, [&](Value key) { return b.less(limit, key); });
      },
      [&] { return SmallVector<Value>(blocks); });
  return b.rarely(
      hidesBefore(tileKey, rows),
      [&] {
        Value sinkCount = arguments.inLoop(tileKey).late("sink_tokens");
        Value limit = b.behindProducts(b.sub(rows.laneFirst, laneKey)), sinks = b.sub(sinkCount, laneKey);
        return each(causal,
                    [&](Value key) { return b.both(b.less(key, limit), b.isFalse(b.less(key, sinks))); });
      },
      [&] { return causal; });
}

SmallVector<Value> Visibility::hideMissing(ArrayRef<Value> blocks, Value found, MfmaLayout layout,
                                           Value laneGroup) const {
  auto accumulator = cast<VectorType>(blocks.front().getType());
  Value allKeys = b.i32(int32_t(llvm::maskTrailingOnes<uint32_t>(tileKv)));
  return b.rarely(
      b.isFalse(b.equal(b.bitAnd(found, allKeys), allKeys)),
      [&] {
        Value bits = b.shiftRight(found, b.behindProducts(b.mul(laneGroup, b.i32(4))));
        SmallVector<Value> masked;
        for (auto [index, block] : llvm::enumerate(blocks)) {
          SmallVector<Value> elements;
          for (unsigned r = 0; r < layout.results(); ++r) {
            Value bit = b.bitAnd(bits, b.i32(int32_t(1u << (layout.rows * index + layout.rowOf(r)))));
            elements.push_back(b.select(b.equal(bit, b.i32(0)),
                                        b.f32(-std::numeric_limits<double>::infinity()),
                                        b.extract(block, r)));
          }
          masked.push_back(b.pack(accumulator, elements));
        }
        return masked;
      },
      [&] { return SmallVector<Value>(blocks); });
}

} // namespace sluice

//===- MaskBits.cpp - a mask with a bit for each row and key --------------------------------------------===//
//
// Each lane reads the bits of its own row. Keys past the end read those of the last; they are hidden.
//
//===----------------------------------------------------------------------------------------------------===//
#include "attention/scores/ScoreTile.h"

#include <limits>

using namespace mlir;

namespace sluice {

namespace {

class MaskOfTile {
public:
  MaskOfTile(const ScoreTile &tile, ArrayRef<Value> scores, Value mask)
      : tile(tile), b(tile.b), scores(scores), maskRow(b.advance(mask, b.getI8Type(), tile.rowOf("mask"))),
        hidden(b.f32(-std::numeric_limits<double>::infinity())) {}

  Scores apply() {
    // The mask may begin at any key, if it covers only the newest, and ends with the last: byte by byte, and
    // keys before the first are visible.
    Value coversNewRows = tile.inLoop.flag(package::score_mask_new_rows);
    firstKey = b.select(coversNewRows, b.sub(tile.sequence.keys, tile.sequence.rows), b.i32(0));
    if (!tile.isPrefill()) return applyBytes();
    return b.branch(
        b.both(tile.isWhole, b.isFalse(coversNewRows)), [&] { return applyWhole(); },
        [&] {
          // Tiles of older keys only.
          Value end = b.add(tile.firstKey, b.i32(tile.layout.rows * tile.blocks));
          Value isOld = b.isFalse(b.less(firstKey, end));
          return b.branch(
              b.both(coversNewRows, isOld), [&] { return Scores(scores); }, [&] { return applyBytes(); });
        });
  }

private:
  /// `wordOf`: the bits of a block's keys. A lane's bits of a block begin with those of its group.
  Scores applyWords(llvm::function_ref<Value(unsigned index)> wordOf) const {
    SmallVector<Value> words;
    for (unsigned index = 0; index < scores.size(); ++index)
      words.push_back(b.shiftRight(wordOf(index), b.mul(tile.place.laneGroup, b.i32(4))));
    unsigned number = 0;
    return tile.each(scores, [&](Value score, Value) {
      unsigned block = number / tile.layout.results(), r = number % tile.layout.results();
      ++number;
      Value bit = b.bitAnd(words[block], b.i32(int32_t(1u << tile.layout.rowOf(r))));
      return b.select(b.equal(bit, b.i32(0)), hidden, score);
    });
  }

  Scores applyWhole() const {
    Value begin = b.advance(maskRow, b.getI8Type(), b.zeroExtend(b.shiftRight(tile.firstKey, b.i32(3))));
    return applyWords([&](unsigned index) -> Value {
      Value place = b.advance(begin, b.getI8Type(), b.i64(tile.layout.rows * index / 8));
      return LLVM::LoadOp::create(b, b.getI32Type(), place, /*alignment=*/1);
    });
  }

  Scores applyBytes() const {
    Value lastByte = b.maxS(arith::ShRSIOp::create(b, b.sub(tile.lastKey, firstKey), b.i32(3)), b.i32(0));
    return applyWords([&](unsigned index) -> Value {
      Value bit = b.sub(b.add(tile.firstKey, b.i32(tile.layout.rows * index)), firstKey);
      Value first = b.maxS(bit, b.i32(0)), firstByte = b.shiftRight(first, b.i32(3));
      SmallVector<Value> words(2, b.i32(0));
      for (unsigned n = 0; n < tile.layout.rows / 8 + 1; ++n) {
        Value byte = b.minS(b.add(firstByte, b.i32(n)), lastByte);
        Value place = b.advance(maskRow, b.getI8Type(), b.zeroExtend(byte));
        Value loaded = LLVM::LoadOp::create(b, b.getI8Type(), place, /*alignment=*/1);
        Value bits = arith::ExtUIOp::create(b, b.getI32Type(), loaded);
        words[n / 4] = b.bitOr(words[n / 4], b.shiftLeft(bits, b.i32(8 * (n % 4))));
      }
      Value word = LLVM::FshrOp::create(b, words[1], words[0], b.bitAnd(first, b.i32(7)));
      Value before = b.clamp(b.sub(b.i32(0), bit), b.i32(0), b.i32(32));
      Value visible = b.sub(b.shiftLeft(b.i64(1), b.zeroExtend(before)), b.i64(1));
      Value moved = b.shiftLeft(b.zeroExtend(word), b.zeroExtend(before));
      return arith::TruncIOp::create(b, b.getI32Type(), b.bitOr(moved, visible));
    });
  }

  const ScoreTile &tile;
  Emitter &b;
  ArrayRef<Value> scores;
  Value maskRow, hidden;
  Value firstKey; // of the mask
};

Asked askMaskBits(const ScoreTile &tile) {
  return askMatrix(tile, "mask");
}

Scores applyMaskBits(const ScoreTile &tile, ArrayRef<Value> scores, Value mask) {
  return MaskOfTile(tile, scores, mask).apply();
}

} // namespace

const ScoreChange maskBits = {askMaskBits, applyMaskBits};

} // namespace sluice

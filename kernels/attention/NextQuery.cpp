//===- NextQuery.cpp - prefetching the next workgroup's rows of Q ---------------------------------------===//
#include "attention/NextQuery.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace sluice {

void NextQuery::prefetch(const LaneRows &rows, Value changing) const {
  const Arguments inLoop = arguments.inLoop(changing);
  auto argument = [&](Arguments::Name name) { return inLoop.late(name); };
  auto scalar = [&](Value value) { return b.opaqueScalar(value, changing); };
  auto one = [&](Value condition) { return b.select(condition, b.i32(1), b.i32(0)); };
  // Steps along the axes of the grid, with carries. Tiles are in descending order.
  Value heads = argument("kv_heads"), tiles = argument("grid_tiles");
  Value kvHead = b.add(scalar(rows.kvHead), argument("next_heads"));
  Value endsHeads = b.isFalse(b.less(kvHead, heads));
  kvHead = b.select(endsHeads, b.sub(kvHead, heads), kvHead);
  Value tile = b.shiftRight(scalar(rows.first), b.i32(llvm::Log2_32(tileQ)));
  tile = b.sub(b.sub(tile, argument("next_tiles")), one(endsHeads));
  Value endsTiles = b.less(tile, b.i32(0));
  tile = b.select(endsTiles, b.add(tile, tiles), tile);
  Value batch = b.add(b.add(scalar(rows.sequence.batch), argument("next_batch")), one(endsTiles));
  b.when(b.less(batch, argument("grid_batch")), [&] {
    constexpr unsigned lineBytes = 128, wordBytes = 4;
    unsigned elementBytes = inMemory.getIntOrFloatBitWidth() / 8, lineElements = lineBytes / elementBytes;
    unsigned linesOfRow = llvm::PowerOf2Ceil(llvm::divideCeil(columns, lineElements));
    Value group = argument("group");
    Value firstRow = b.add(b.mul(tile, b.i32(tileQ)), b.mul(rows.wave, b.i32(rowsOfWave)));
    Value lastRow = b.sub(b.mul(argument("q_len"), group), b.i32(1));
    Value lastWord = b.sub(argument("head_dim_qk"), b.i32(wordBytes / elementBytes));
    LaneRows next = rows;
    next.sequence.batch = batch;
    // Neighbouring lanes have neighbouring lines. If there are fewer lines than lanes, several lanes have the
    // same one.
    unsigned lines = rowsOfWave * linesOfRow;
    for (unsigned first = 0; first < lines; first += MfmaLayout::lanes) {
      Value line = b.bitAnd(b.add(rows.lane, b.i32(first)), b.i32(lines - 1));
      Value row = b.minS(b.add(firstRow, b.shiftRight(line, b.i32(llvm::Log2_32(linesOfRow)))), lastRow);
      next.token = b.divide(row, group, argument("group_magic"), argument("group_shift")).quotient;
      next.qHead = b.add(b.mul(kvHead, group), b.sub(row, b.mul(next.token, group)));
      Value column = b.minS(b.mul(b.bitAnd(line, b.i32(linesOfRow - 1)), b.i32(lineElements)), lastWord);
      Value offset = b.add(Addresses(b, inLoop, next).offsetOfRow("q", b.i32(0)), b.zeroExtend(column));
      b.touch(b.advance(argument("q"), inMemory, offset));
    }
  });
}

} // namespace sluice

//===- RowMap.cpp - the rows and keys of a workgroup, a wave and a lane ---------------------------------===//
#include "attention/RowMap.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace sluice {

RowMap::Tile RowMap::locateTile() const {
  Value y = ROCDL::BlockIdYOp::create(b, b.getI32Type()), z = ROCDL::BlockIdZOp::create(b, b.getI32Type());
  if (!hasRounds()) return {y, z, {}, {}, {}};
  Value tiles = arguments.late("grid_tiles"), batch = arguments.late("grid_batch");
  Value stepY = arguments.late("halved_tiles"), stepZ = arguments.late("halved_batch");
  auto one = [&](Value condition) { return b.select(condition, b.i32(1), b.i32(0)); };
  // If this tile is halved, its upper half is there, in a layer after the batch ...
  Value carry = b.isFalse(b.less(b.add(y, stepY), tiles));
  Value isHalf = b.isFalse(b.less(b.add(b.add(z, stepZ), one(carry)), batch));
  // ... and the lower half of an upper one here.
  Value isUpper = b.isFalse(b.less(z, batch));
  Value borrow = b.less(y, stepY);
  Value lowerY = b.add(b.sub(y, stepY), b.select(borrow, tiles, b.i32(0)));
  Value lowerZ = b.sub(b.sub(z, stepZ), one(borrow));
  Value tileZ = b.select(isUpper, lowerZ, z);
  return {b.select(isUpper, lowerY, y), tileZ, b.less(tileZ, batch), isHalf, isUpper};
}

WorkgroupRows RowMap::locateWorkgroup() const {
  WorkgroupRows rows;
  Emitter::Division place = b.divide(ROCDL::BlockIdXOp::create(b, b.getI32Type()), arguments["splits"],
                                     arguments.late("splits_magic"), arguments.late("splits_shift"));
  rows.kvHead = place.quotient;
  rows.split = place.rest;
  Tile located = locateTile();
  rows.sequence = readSequence(b, arguments, located.z);
  Value count = b.mul(rows.sequence.rows, arguments["group"]);
  Value tiles = b.shiftRight(b.add(count, b.i32(tileQ - 1)), b.i32(llvm::Log2_32(tileQ)));
  Value tile = b.sub(b.sub(tiles, b.i32(1)), located.y);
  rows.first = b.mul(tile, b.i32(tileQ));
  rows.end = count;
  Value exists = b.isFalse(b.less(tile, b.i32(0)));
  if (hasRounds()) {
    Value half = b.i32(tileQ / 2);
    rows.first = b.add(rows.first, b.select(located.isUpper, half, b.i32(0)));
    rows.end = b.select(located.isHalf, b.minS(b.add(rows.first, half), count), count);
    // The last tile of a sequence may have no upper half.
    exists = b.both(b.both(exists, located.exists), b.less(rows.first, rows.end));
  }
  rows.any = b.both(exists, b.isFalse(b.either(b.less(rows.sequence.rows, arguments.late("min_rows")),
                                               b.less(arguments.late("max_rows"), rows.sequence.rows))));
  return rows;
}

Value RowMap::tokenOf(Value row) const {
  return b.divide(row, arguments["group"], arguments["group_magic"], arguments["group_shift"]).quotient;
}

SmallVector<LaneRows> RowMap::locateLane(const WorkgroupRows &workgroup, Value thread) const {
  LaneRows rows;
  static_cast<WorkgroupRows &>(rows) = workgroup;
  rows.lane = b.bitAnd(thread, b.i32(63));
  rows.laneRow = b.bitAnd(rows.lane, b.i32(layout.rows - 1));
  rows.laneGroup = b.shiftRight(rows.lane, b.i32(llvm::Log2_32(layout.rows)));
  rows.wave = b.waveUniform(b.shiftRight(thread, b.i32(6)));
  unsigned log2 = llvm::Log2_32(wavesOfRows);
  Value group = log2 == 0 ? rows.wave : b.shiftRight(rows.wave, b.i32(log2));
  rows.waveOfRows = b.bitAnd(rows.wave, b.i32(wavesOfRows - 1));
  rows.waveFirst = b.add(rows.first, b.mul(group, b.i32(rowBlocks * layout.rows)));
  Value lastRow = b.sub(rows.end, b.i32(1));
  SmallVector<LaneRows> blocks(rowBlocks, rows);
  for (auto [index, blockRows] : llvm::enumerate(blocks)) {
    blockRows.row = b.add(b.add(rows.waveFirst, rows.laneRow), b.i32(index * layout.rows));
    // Rows past the end repeat the last one, so that their tokens and heads exist.
    Value row = b.minS(blockRows.row, lastRow);
    blockRows.token = tokenOf(row);
    blockRows.qHead =
        b.add(b.mul(rows.kvHead, arguments["group"]), b.sub(row, b.mul(blockRows.token, arguments["group"])));
  }
  return blocks;
}

WaveKeys RowMap::chooseTiles(ArrayRef<LaneRows> blocks, Visibility &visibility) const {
  const LaneRows &rows = blocks.front();
  // The rows of a workgroup determine which tiles it needs, the last row of a wave up to which of them it
  // works.
  Value lastRow = b.sub(rows.end, b.i32(1));
  auto lastOf = [&](Value first, unsigned count) { return b.minS(b.add(first, b.i32(count - 1)), lastRow); };
  SmallVector<Value> tokens{tokenOf(rows.first), tokenOf(lastOf(rows.first, tileQ)),
                            tokenOf(b.minS(rows.waveFirst, lastRow)),
                            tokenOf(lastOf(rows.waveFirst, rowBlocks * layout.rows))};
  for (const LaneRows &blockRows : blocks)
    tokens.push_back(blockRows.token);
  SmallVector<Visibility::Range> ranges = visibility.rangesOf(tokens);
  visibility.chooseTiles(ranges[0], ranges[1]);
  const Visibility::Range &firstOfWave = ranges[2], &lastOfWave = ranges[3];
  SmallVector<Visibility::Rows> seen;
  for (const Visibility::Range &laneRange : ArrayRef(ranges).drop_front(4))
    seen.push_back(Visibility::rowsOf(firstOfWave, lastOfWave, laneRange));
  if (rowBlocks * layout.rows == tileQ) return {seen, Value()};
  Value endIfAny = b.add(lastOfWave.last, b.i32(1));
  return {seen, b.select(b.less(rows.waveFirst, rows.end), endIfAny, b.i32(0))};
}

KeyRange RowMap::chooseSplit(const LaneRows &rows, const Visibility &visibility, unsigned tileKv) const {
  KeyRange range;
  Value tiles = visibility.tileCount();
  Value splits = arguments["splits"];
  Value rounded = b.add(tiles, b.sub(splits, b.i32(1)));
  Value even =
      b.divide(rounded, splits, arguments.late("splits_magic"), arguments.late("splits_shift")).quotient;
  Value fixed = arguments.late("split_tiles");
  Value each = b.select(b.equal(fixed, b.i32(0)), b.maxS(even, arguments.late("min_split_tiles")), fixed);
  range.firstTile = b.minS(b.mul(rows.split, each), tiles);
  range.endTile = b.minS(b.add(range.firstTile, each), tiles);
  // Keys after the last tile belong to another split, or no row sees them.
  Value endOfTiles = b.add(visibility.keyOfTile(b.sub(range.endTile, b.i32(1))), b.i32(tileKv));
  range.keyLimit = b.minS(rows.sequence.keys, endOfTiles);
  range.holeBegin = arguments["sink_tokens"];
  range.holeEnd = visibility.firstKeyOfTiles();
  range.keyLimit = b.select(b.less(range.firstTile, range.endTile), range.keyLimit, b.i32(0));
  return range;
}

} // namespace sluice

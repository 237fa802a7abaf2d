//===- KeyScales.cpp - a scale for each key of K or V ---------------------------------------------------===//
#include "attention/KeyScales.h"

using namespace mlir;

namespace sluice {

static Value load(Emitter &b, Value scales, Value offset) {
  return LLVM::LoadOp::create(b, b.getF32Type(), b.advance(scales, b.getF32Type(), offset), /*alignment=*/4);
}

TileScales loadTileScales(Emitter &b, const Arguments &arguments, const KeyPages &pages, const LaneRows &rows,
                          const ScaledTile &tile, Value entries) {
  Value firstKey = tile.firstKey;
  constexpr unsigned scaleBytes = 4;
  Value none = b.undef(b.getF32Type());
  // Nothing of them is kept in the loop: few calls have them, and scalar registers are scarce.
  Arguments inLoop = arguments.inLoop(firstKey);
  Addresses tileAddresses(b, inLoop, rows);
  auto loadSide = [&](StringRef side) -> Value {
    std::string array = (side + "_scales").str();
    return b.branch(
        b.isNull(inLoop.late(array)), [&] { return b.f32(1); },
        [&] {
          Value base = tileAddresses.sideBase(array, array, b.getF32Type(), tile.mayBeInPages);
          Value places = pages.lateAddresses(array, base, firstKey, entries, b.getF32Type(), scaleBytes);
          // Scales of other tiles would only be more lines.
          Value isOfTile = b.less(rows.lane, b.i32(tile.keys));
          Value place = b.select(isOfTile, places, ZerosOp::create(b, places.getType(), scaleBytes));
          return LLVM::LoadOp::create(b, b.getF32Type(), place, /*alignment=*/scaleBytes);
        });
  };
  return b.branch(
      arguments.flag(package::score_key_scales), [&] { return TileScales{loadSide("k"), loadSide("v")}; },
      [&] { return TileScales{none, none}; });
}

Value byScore(Emitter &b, const LaneRows &rows, Value keyValues) {
  constexpr unsigned neighbours = 4; // keys that are neighbours in a lane; MfmaLayout::rowOf
  Value block = b.shiftRight(rows.laneRow, b.i32(llvm::Log2_32(neighbours)));
  Value inBlock =
      b.add(b.mul(rows.laneGroup, b.i32(neighbours)), b.bitAnd(rows.laneRow, b.i32(neighbours - 1)));
  return b.laneValue(keyValues, b.add(b.mul(block, b.i32(package::decode_rows_of_wave)), inBlock));
}

Value loadKeyScale(Emitter &b, const Arguments &everywhere, const LaneRows &rows, const KeyRange &keys,
                   StringRef side, Value firstKey) {
  // Everything stays in the loop: outside it would occupy registers for calls without such scales, too.
  Arguments arguments = everywhere.inLoop(firstKey);
  const Sequence &sequence = rows.sequence;
  auto stride = [&](StringRef dimension) {
    return arguments.late((side + "_scales_" + dimension + "_stride").str());
  };
  auto times = [&](Value count, StringRef dimension) {
    return b.mul(b.zeroExtend(count), stride(dimension));
  };
  Value scales = arguments.late((side + "_scales").str());
  Value headOffset = times(rows.kvHead, "head");
  Value lastKey = b.sub(sequence.keys, b.i32(1)), key = b.minS(b.add(firstKey, rows.lane), lastKey);
  auto isHole = [&](Value candidate) {
    return b.both(b.less(candidate, keys.holeEnd), b.isFalse(b.less(candidate, keys.holeBegin)));
  };
  // In place of a key that no row sees: the last one, or a sink token if no window reaches it. Without
  // either, no scale is read: no row sees the tile.
  Value seen = b.select(isHole(lastKey), b.i32(0), lastKey);
  Value hasKeys = b.isFalse(b.either(b.less(lastKey, b.i32(0)), isHole(seen)));
  key = b.select(isHole(key), seen, key);
  Value table = arguments.late("page_table");
  auto find = [&] {
    return b.branch(
        b.isNull(table),
        [&] {
          Value row = times(b.add(sequence.firstKey, key), "token");
          return load(b, scales, b.add(b.add(times(sequence.batch, "batch"), row), headOffset));
        },
        [&] {
          Emitter::Division place = b.divide(key, arguments.late("page_rows"), arguments.late("page_magic"),
                                             arguments.late("page_shift"));
          Value first = b.mul(b.zeroExtend(sequence.batch), arguments.late("page_table_stride"));
          Value starts = arguments.late("page_starts");
          first = b.branch(
              b.isNull(starts), [&] { return first; },
              [&] {
                Value start = b.loadScalar(b.getI32Type(), starts, b.zeroExtend(sequence.batch));
                return b.zeroExtend(start);
              });
          Value tableOfHead = b.mul(b.zeroExtend(rows.kvHead), arguments.late("page_table_head_stride"));
          Value entry = b.add(b.add(first, tableOfHead), b.zeroExtend(place.quotient));
          auto load32 = [&](Value index) -> Value {
            return LLVM::LoadOp::create(b, b.getI32Type(), b.advance(table, b.getI32Type(), index), 4);
          };
          auto [low, high] = b.branch(
              arguments.flag(package::score_page_index_64),
              [&] {
                Value first = b.add(entry, entry), low = load32(first);
                return std::pair(low, load32(b.add(first, b.i64(1))));
              },
              [&] {
                Value low = load32(entry);
                return std::pair(low, b.i32(0));
              });
          auto isAtMost = [&](Value half, Value most) -> Value {
            return arith::CmpIOp::create(b, arith::CmpIPredicate::ule, half, most);
          };
          Value isThere = b.both(isAtMost(low, arguments.late("last_page_low")),
                                 isAtMost(high, arguments.late("last_page_high")));
          auto pair = VectorType::get(2, b.getI32Type());
          Value page = b.select(isThere, b.bitcast(b.getI64Type(), b.pack(pair, {low, high})), b.i64(0));
          Value offset = b.add(b.mul(page, stride("batch")), times(place.rest, "token"));
          return b.branch(
              isThere, [&] { return load(b, scales, b.add(offset, headOffset)); }, [&] { return b.f32(0); });
        });
  };
  return b.branch(hasKeys, find, [&] { return b.f32(0); });
}

} // namespace sluice

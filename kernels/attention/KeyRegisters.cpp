//===- KeyRegisters.cpp - K and V in the registers of a wave --------------------------------------------===//
#include "attention/KeyRegisters.h"

using namespace mlir;

namespace sluice {

static unsigned bytesOf(Type type) {
  return type.getIntOrFloatBitWidth() / 8;
}

KeyRegisters::KeyRegisters(Emitter &b, TileMath &math, const Arguments &arguments, const KeyPages &pages,
                           const LaneRows &rows, const HeadColumns &columns, const Source &source,
                           Type stored, Type widened, const KeyBlocks *blocks, unsigned tileKv,
                           bool vByColumns)
    : b(b), math(math), arguments(arguments), pages(pages), rows(rows), columns(columns), source(source),
      stored(stored), widened(widened), blocks(blocks), vByColumns(vByColumns), tileKv(tileKv) {
  auto rowElements = [&](ArrayRef<ColumnRead> reads, unsigned lanes) {
    unsigned end = 0;
    for (const ColumnRead &read : reads)
      end = std::max(end, read.headColumn + lanes * read.columns);
    return end;
  };
  auto rowBytes = [&](unsigned elements) {
    return blocks ? blocks->rowBytes(elements) : elements * bytesOf(stored);
  };
  rowElementsQk = rowElements(columns.keyReads, math.layout.groups());
  rowElementsV = rowElements(columns.valueReads, math.layout.rows);
  rowBytesQk = rowBytes(rowElementsQk);
  rowBytesV = vByColumns ? math.layout.elements() * bytesOf(stored) : rowBytes(rowElementsV);
}

/// Elements in whole dwords if they fill any: LLVM would take vectors of smaller elements apart when a loop
/// carries them.
Value KeyRegisters::load(Value address, unsigned columns) const {
  unsigned bytes = columns * bytesOf(stored);
  Type type = bytes >= 4 ? Type(VectorType::get(bytes / 4, b.getI32Type())) : b.getIntegerType(8 * bytes);
  return LLVM::LoadOp::create(b, type, address, /*alignment=*/bytes);
}

Value KeyRegisters::asElements(Value loaded, unsigned columns, Value column) const {
  if (blocks) return blocks->elements(loaded, column);
  Value elements = b.bitcast(VectorType::get(columns, stored), loaded);
  return widened ? math.widen(elements, widened) : elements;
}

Value KeyRegisters::zeros(unsigned bytes) const {
  return ZerosOp::create(b, LLVM::LLVMPointerType::get(b.getContext(), 1), bytes);
}

KeyRegisters::Scales KeyRegisters::scalesOf(StringRef side, Value base, Value firstKey, Value entries) const {
  if (!blocks || !blocks->hasArrays()) return {};
  unsigned bytes = KeyBlocks::scaleBytes(side == "k" ? rowElementsQk : rowElementsV);
  std::string array = (side + "_scales").str();
  Value scales = pages.addresses(array, base, firstKey, entries, b.getI16Type(), bytes);
  // The numbers to subtract have the same strides.
  Value zeros = arguments.late((side + "_zeros").str()), first = arguments.late((side + "_groups").str());
  auto bits = [&](Value pointer) -> Value { return LLVM::PtrToIntOp::create(b, b.getI64Type(), pointer); };
  Value distance = b.sub(bits(zeros), bits(first));
  Value zerosBase = b.advance(base, b.getI8Type(), distance);
  Value subtracted = b.branch(
      b.isNull(zeros), [&] { return SmallVector<Value>{scales}; },
      [&] {
        return SmallVector<Value>{
            pages.addresses(array, zerosBase, firstKey, entries, b.getI16Type(), bytes)};
      })[0];
  return {scales, subtracted};
}

Value KeyRegisters::loadScale(StringRef side, const Scales &scales, Value key, Value column,
                              Value exists) const {
  if (!scales.scales) return {};
  Value log2 = b.select(arguments.flag(package::score_groups_of_64), b.i32(6), b.i32(5));
  // Columns after the last have the zeros' numbers, and the scale of the first group.
  Value group = b.zeroExtend(b.shiftRight(b.select(exists, column, b.i32(0)), log2));
  auto load = [&](Value rows) -> Value {
    Value place = b.advance(b.pointerOfLane(rows, key), b.getI16Type(), group);
    return arith::ExtUIOp::create(b, b.getI32Type(), LLVM::LoadOp::create(b, b.getI16Type(), place, 2));
  };
  constexpr int32_t eight = 0x4800; // in F16
  Value subtracted = b.branch(
      b.isNull(arguments.late((side + "_zeros").str())), [&] { return SmallVector<Value>{b.i32(eight)}; },
      [&] { return SmallVector<Value>{load(scales.subtracted)}; })[0];
  return b.bitOr(load(scales.scales), b.shiftLeft(subtracted, b.i32(16)));
}

TileScales KeyRegisters::loadScalesOfKeys(Value firstKey, Value entries) const {
  constexpr unsigned scaleBytes = 4;
  auto none = [&] { return Values(2, b.undef(b.getF32Type())); };
  auto ofSide = [&](StringRef side, Value base) -> Value {
    std::string array = (side + "_scales").str();
    return b.branch(
        b.isNull(arguments.late(array)), [&] { return Values{b.f32(1)}; },
        [&] {
          Value places = pages.lateAddresses(array, base, firstKey, entries, b.getF32Type(), scaleBytes);
          // Scales of other tiles would only be more lines.
          Value isOfTile = b.less(rows.lane, b.i32(tileKv));
          Value place = b.select(isOfTile, places, zeros(scaleBytes));
          return Values{LLVM::LoadOp::create(b, b.getF32Type(), place, /*alignment=*/scaleBytes)};
        })[0];
  };
  Values scales = b.branch(
      arguments.flag(package::score_key_scales),
      [&] { return Values{ofSide("k", source.kKeyScales), ofSide("v", source.vKeyScales)}; }, none);
  return {scales[0], scales[1]};
}

SmallVector<Value> KeyRegisters::loadKeys(Value firstKey, Value entries) const {
  Value addresses = pages.addresses("k", source.k, firstKey, entries, stored, rowBytesQk);
  // Packs reach beyond the zeros, so the start of the zeros is read instead.
  Value nothing = zeros(rowBytesQk);
  struct Row {
    Value address, isThere;
  };
  SmallVector<Row> keys;
  for (unsigned first = 0; first < tileKv; first += math.layout.rows) {
    Value key = b.add(b.i32(first), rows.laneRow);
    Value address = b.pointerOfLane(addresses, key); // of the zeros, if there is no row
    keys.push_back({address, LLVM::ICmpOp::create(b, LLVM::ICmpPredicate::ne, address, nothing)});
  }
  Value limit = b.opaqueScalar(source.columnsQk, firstKey);
  Scales scales = scalesOf("k", source.kScales, firstKey, entries);
  Values loaded;
  for (const ColumnRead &read : columns.keyReads) {
    Value column = b.add(b.i32(read.headColumn), b.mul(rows.laneGroup, b.i32(read.columns)));
    if (blocks) {
      Value exists = b.less(column, limit);
      for (auto [index, key] : llvm::enumerate(keys)) {
        Value row = b.select(b.both(key.isThere, exists), key.address, nothing);
        Value ofTile = b.add(b.i32(index * math.layout.rows), rows.laneRow);
        loaded.push_back(blocks->load(row, column, loadScale("k", scales, ofTile, column, exists)));
      }
      continue;
    }
    // Within 2 GiB.
    Value offset = arith::TruncIOp::create(b, b.getI32Type(), packedColumn(b, arguments, column));
    Value exists = b.less(column, limit);
    for (const Row &key : keys) {
      Value place = b.advance(key.address, stored, b.zeroExtend(offset));
      loaded.push_back(load(b.select(b.both(key.isThere, exists), place, nothing), read.columns));
    }
  }
  return loaded;
}

Value KeyRegisters::addressesOfValues(Value firstKey, Value entries) const {
  Value packLog2 = vByColumns ? arguments["v_pack_log2"] : Value();
  return pages.addresses("v", source.v, firstKey, entries, stored, rowBytesV, packLog2);
}

/// Less than 2^32: strides are less than 2^23, and heads have at most 512 columns.
Value KeyRegisters::offsetOfColumn(Value column, Value stride) const {
  return b.zeroExtend(b.mul(column, stride));
}

SmallVector<Value> KeyRegisters::loadColumns(Value firstKey, Value addresses) const {
  // Kept in the loop, or each column's offset would be in a register throughout.
  Value stride = b.opaqueScalar(arguments["v_column_stride"], firstKey);
  const MfmaLayout &layout = math.layout;
  Value nothing = zeros(rowBytesV);
  Values loaded;
  for (unsigned block = 0; block < tileKv / layout.depth(); ++block) {
    Value key = b.add(b.i32(block * layout.depth()), b.mul(rows.laneGroup, b.i32(layout.elements())));
    Value address = b.pointerOfLane(addresses, key); // of the zeros, if there is no row
    // Compared again for each block, or the results of all columns would be in scalar registers.
    Value limit = b.opaqueScalar(source.columnsV, firstKey);
    Value isThere = LLVM::ICmpOp::create(b, LLVM::ICmpPredicate::ne, address, nothing);
    for (const ColumnRead &read : columns.valueReads) {
      Value ofLane = b.mul(rows.laneRow, b.i32(read.laneStep));
      Value first = b.advance(address, stored, offsetOfColumn(ofLane, stride));
      for (unsigned n = 0; n < read.columns; ++n) {
        Value ofWave = b.i32(read.headColumn + n * read.ownStep);
        Value exists = b.less(b.add(ofLane, ofWave), limit);
        Value place = b.advance(first, stored, offsetOfColumn(ofWave, stride));
        loaded.push_back(load(b.select(b.both(isThere, exists), place, nothing), layout.elements()));
      }
    }
  }
  return loaded;
}

SmallVector<Value> KeyRegisters::loadValues(Value firstKey, Value addresses, Value entries) const {
  if (vByColumns) return loadColumns(firstKey, addresses);
  Value limit = b.opaqueScalar(source.columnsV, firstKey);
  const MfmaLayout &layout = math.layout;
  Value nothing = zeros(rowBytesV);
  Scales scales = scalesOf("v", source.vScales, firstKey, entries);
  Values loaded;
  for (unsigned block = 0; block < tileKv / layout.depth(); ++block) {
    Values keys, ofKeys;
    for (unsigned k = 0; k < layout.elements(); ++k) {
      keys.push_back(
          b.add(b.i32(layout.rowOf(block * layout.elements() + k)), b.mul(rows.laneGroup, b.i32(4))));
      ofKeys.push_back(b.pointerOfLane(addresses, keys.back()));
    }
    for (const ColumnRead &read : columns.valueReads) {
      Value column = b.add(b.i32(read.headColumn), b.mul(rows.laneRow, b.i32(read.columns)));
      Value exists = b.less(column, limit);
      if (blocks) {
        for (auto [key, row] : llvm::zip_equal(keys, ofKeys))
          loaded.push_back(blocks->load(b.select(exists, row, nothing), column,
                                        loadScale("v", scales, key, column, exists)));
        continue;
      }
      for (Value row : ofKeys)
        loaded.push_back(load(b.select(exists, b.advance(row, stored, column), nothing), read.columns));
    }
  }
  return loaded;
}

Value KeyRegisters::readValues(Value addresses, unsigned count, Value key, Value column) const {
  Value exists = b.less(column, source.columnsV), nothing = zeros(rowBytesV), offset = column;
  Value row = b.pointerOfLane(addresses, key);
  if (vByColumns) {
    exists = b.both(exists, LLVM::ICmpOp::create(b, LLVM::ICmpPredicate::ne, row, nothing));
    offset = offsetOfColumn(column, arguments.late("v_column_stride"));
  }
  Value place = b.advance(row, stored, offset);
  return asElements(load(b.select(exists, place, nothing), count), count, column);
}

} // namespace sluice

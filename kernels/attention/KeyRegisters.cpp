//===- KeyRegisters.cpp - K and V in the registers of a wave --------------------------------------------===//
#include "attention/KeyRegisters.h"

using namespace mlir;

namespace sluice {

static unsigned bytesOf(Type type) {
  return type.getIntOrFloatBitWidth() / 8;
}

KeyRegisters::KeyRegisters(Emitter &b, TileMath &math, const Arguments &arguments, const KeyPages &pages,
                           const LaneRows &rows, const HeadColumns &columns, const Source &source,
                           Type stored, Type widened, unsigned tileKv)
    : b(b), math(math), arguments(arguments), pages(pages), rows(rows), columns(columns), source(source),
      stored(stored), widened(widened), tileKv(tileKv) {
  auto rowBytes = [&](ArrayRef<ColumnRead> reads, unsigned lanes) {
    unsigned end = 0;
    for (const ColumnRead &read : reads)
      end = std::max(end, read.headColumn + lanes * read.columns);
    return end * bytesOf(stored);
  };
  rowBytesQk = rowBytes(columns.keyReads, math.layout.groups());
  rowBytesV = rowBytes(columns.valueReads, math.layout.rows);
}

/// Elements in whole dwords if they fill any: LLVM would take vectors of smaller elements apart when a loop
/// carries them.
Value KeyRegisters::load(Value address, unsigned columns) const {
  unsigned bytes = columns * bytesOf(stored);
  Type type = bytes >= 4 ? Type(VectorType::get(bytes / 4, b.getI32Type())) : b.getIntegerType(8 * bytes);
  return LLVM::LoadOp::create(b, type, address, /*alignment=*/bytes);
}

Value KeyRegisters::asElements(Value loaded, unsigned columns) const {
  Value elements = b.bitcast(VectorType::get(columns, stored), loaded);
  return widened ? math.widen(elements, widened) : elements;
}

Value KeyRegisters::zeros(unsigned bytes) const {
  return ZerosOp::create(b, LLVM::LLVMPointerType::get(b.getContext(), 1), bytes);
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
  Values loaded;
  for (const ColumnRead &read : columns.keyReads) {
    Value column = b.add(b.i32(read.headColumn), b.mul(rows.laneGroup, b.i32(read.columns)));
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
  return pages.addresses("v", source.v, firstKey, entries, stored, rowBytesV);
}

SmallVector<Value> KeyRegisters::loadValues(Value firstKey, Value addresses) const {
  Value limit = b.opaqueScalar(source.columnsV, firstKey);
  const MfmaLayout &layout = math.layout;
  Value nothing = zeros(rowBytesV);
  Values loaded;
  for (unsigned block = 0; block < tileKv / layout.depth(); ++block) {
    Values ofKeys;
    for (unsigned k = 0; k < layout.elements(); ++k)
      ofKeys.push_back(b.pointerOfLane(addresses, b.add(b.i32(layout.rowOf(block * layout.elements() + k)),
                                                        b.mul(rows.laneGroup, b.i32(4)))));
    for (const ColumnRead &read : columns.valueReads) {
      Value column = b.add(b.i32(read.headColumn), b.mul(rows.laneRow, b.i32(read.columns)));
      Value exists = b.less(column, limit);
      for (Value row : ofKeys)
        loaded.push_back(load(b.select(exists, b.advance(row, stored, column), nothing), read.columns));
    }
  }
  return loaded;
}

Value KeyRegisters::readValues(Value addresses, unsigned columns, Value key, Value column) const {
  Value exists = b.less(column, source.columnsV);
  Value place = b.advance(b.pointerOfLane(addresses, key), stored, column);
  return asElements(load(b.select(exists, place, zeros(rowBytesV)), columns), columns);
}

} // namespace sluice

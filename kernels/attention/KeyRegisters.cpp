//===- KeyRegisters.cpp - K and V in the registers of a wave --------------------------------------------===//
#include "attention/KeyRegisters.h"

using namespace mlir;

namespace sluice {

static unsigned bytesOf(Type type) {
  return type.getIntOrFloatBitWidth() / 8;
}

KeyRegisters::KeyRegisters(Emitter &b, TileMath &math, const Arguments &arguments, const KeyPages &pages,
                           const LaneRows &rows, const HeadColumns &columns, const Source &source,
                           Type stored, Type widened, unsigned tileKv, bool vByColumns)
    : b(b), math(math), arguments(arguments), pages(pages), rows(rows), columns(columns), source(source),
      stored(stored), widened(widened), vByColumns(vByColumns), tileKv(tileKv) {
  rowBytesQk = columnsOf(columns.keyReads, math.layout.groups()) * bytesOf(stored);
  unsigned rowElements =
      vByColumns ? math.layout.elements() : columnsOf(columns.valueReads, math.layout.rows);
  rowBytesV = rowElements * bytesOf(stored);
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

OwnTiles::LoadedKeys KeyRegisters::loadKeys(Value firstKey, Value entries) const {
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
  return {loaded, {}};
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
      Value laneColumn = b.mul(rows.laneRow, b.i32(read.laneStep));
      Value first = b.advance(address, stored, offsetOfColumn(laneColumn, stride));
      for (unsigned n = 0; n < read.columns; ++n) {
        Value waveColumn = b.i32(read.headColumn + n * read.ownStep);
        Value exists = b.less(b.add(laneColumn, waveColumn), limit);
        Value place = b.advance(first, stored, offsetOfColumn(waveColumn, stride));
        loaded.push_back(load(b.select(b.both(isThere, exists), place, nothing), layout.elements()));
      }
    }
  }
  return loaded;
}

OwnTiles::LoadedValues KeyRegisters::loadValues(Value firstKey, Value entries, ArrayRef<Value>) const {
  Value addresses = addressesOfValues(firstKey, entries);
  return {vByColumns ? loadColumns(firstKey, addresses) : loadRows(firstKey, addresses), {addresses}};
}

Value KeyRegisters::withoutRest(Value loaded, Value firstKey) const {
  return b.firstElements(loaded, 8 * bytesOf(stored), b.sub(rows.sequence.keys, firstKey));
}

SmallVector<Value> KeyRegisters::withoutRest(ArrayRef<Value> loaded, Value tileKey) const {
  const MfmaLayout &layout = math.layout;
  return b.rarely(
      b.less(b.sub(rows.sequence.keys, tileKey), b.i32(tileKv)),
      [&] {
        size_t blockGroups = loaded.size() / (tileKv / layout.depth());
        Value laneKey = b.add(tileKey, b.mul(rows.laneGroup, b.i32(layout.elements())));
        Values kept;
        for (auto [index, group] : llvm::enumerate(loaded))
          kept.push_back(withoutRest(group, b.add(laneKey, b.i32(index / blockGroups * layout.depth()))));
        return kept;
      },
      [&] { return Values(loaded); });
}

SmallVector<Value> KeyRegisters::loadRows(Value firstKey, Value addresses) const {
  Value limit = b.opaqueScalar(source.columnsV, firstKey);
  const MfmaLayout &layout = math.layout;
  Value nothing = zeros(rowBytesV);
  Values loaded;
  for (unsigned block = 0; block < tileKv / layout.depth(); ++block) {
    Values keyRows;
    for (unsigned k = 0; k < layout.elements(); ++k) {
      Value key = b.add(b.i32(layout.rowOf(block * layout.elements() + k)), b.mul(rows.laneGroup, b.i32(4)));
      keyRows.push_back(b.pointerOfLane(addresses, key));
    }
    for (const ColumnRead &read : columns.valueReads) {
      Value column = b.add(b.i32(read.headColumn), b.mul(rows.laneRow, b.i32(read.columns)));
      Value exists = b.less(column, limit);
      for (Value row : keyRows)
        loaded.push_back(load(b.select(exists, b.advance(row, stored, column), nothing), read.columns));
    }
  }
  return loaded;
}

SmallVector<Value> KeyRegisters::scores(const TileProducts &products, Value tileKey,
                                        ArrayRef<Value> k) const {
  auto inOrder = [&, index = 0u](unsigned, unsigned wide, Value, Value) mutable {
    return asElements(k[index++], wide);
  };
  return math.settle(products.scores(*preparedQuery, tileKey, inOrder));
}

SmallVector<Value> KeyRegisters::addValues(const TileProducts &products, const Product &product,
                                           const LoadedValues &loaded) const {
  const auto &[output, factor, probabilities, rules, tileKey, hidden] = product;
  Values v = vByColumns ? withoutRest(loaded.v, tileKey) : loaded.v;
  // The product asks for all of V in order, perhaps more than once.
  auto inOrder = [&, index = 0u](unsigned, unsigned wide, Value, Value) mutable {
    return asElements(v[index++ % v.size()], wide);
  };
  auto anywhere = [&](unsigned panel, unsigned wide, Value key, Value column) {
    Value headColumn = b.add(b.i32(columns.valuePanels[panel].first), column);
    return readValues(loaded.forReading[0], wide, product.tileKey, key, headColumn);
  };
  return products.addValues(math.rescale(output, factor), {probabilities, rules, tileKey, hidden},
                            {inOrder, anywhere, /*isTile=*/false, /*stepsByColumns=*/vByColumns ? 1u : 0u});
}

Value KeyRegisters::readValues(Value addresses, unsigned count, Value tileKey, Value key,
                               Value column) const {
  Value exists = b.less(column, source.columnsV), nothing = zeros(rowBytesV), offset = column;
  Value row = b.pointerOfLane(addresses, key);
  if (vByColumns) {
    exists = b.both(exists, LLVM::ICmpOp::create(b, LLVM::ICmpPredicate::ne, row, nothing));
    offset = offsetOfColumn(column, arguments.late("v_column_stride"));
  }
  Value place = b.advance(row, stored, offset);
  Value loaded = load(b.select(exists, place, nothing), count);
  if (vByColumns) loaded = withoutRest(loaded, b.add(tileKey, key));
  return asElements(loaded, count);
}

} // namespace sluice

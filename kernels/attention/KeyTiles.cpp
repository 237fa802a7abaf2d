//===- KeyTiles.cpp - K and V in LDS --------------------------------------------------------------------===//
#include "attention/KeyTiles.h"

#include <algorithm>

using namespace mlir;

namespace sluice {

Value KeyCopies::copy(StringRef side, Value base, const Rows &rows, Value tile, Value columnLimit,
                      Type fetched) const {
  auto token = TokenType::get(b.getContext());
  Value tokenStride = arguments[(side + "_token_stride").str()];
  auto copied = AsyncDmaOp::create(b, token, base, rows.first, keys.keyLimit, tokenStride, tile);
  if (columnLimit) copied.getColumnLimitMutable().assign(columnLimit);
  if (fetched) copied.setSourceType(fetched);
  if (!pages) {
    copied.setCloseRows(true); // the runtime refuses other strides
    return copied;
  }
  pages->gather(copied, side, rows.entries);
  return copied;
}

unsigned KeyStorage::narrowestPanel(unsigned waves) const {
  // Each wave copies at least one instruction of a tile: one dword per lane, or the amount a lane fetches at
  // a time. With shorter rows, one instruction would copy more rows, and finding their pages would cost more
  // than copying zeros.
  constexpr unsigned shortestRowBytes = 64;
  unsigned laneBytes = byColumns ? 16 : fetched ? FetchRowsOp::laneColumns * bytes() : 4;
  return std::max(shortestRowBytes, waves * 64 * laneBytes / tileKv) / bytes();
}

KeyTiles::KeyTiles(Emitter &b, TileMath &math, const Arguments &arguments, const KeyCopies &copies,
                   const Chip &chip, const KeyStorage &storage, const Source &source, ArrayRef<Panel> panels,
                   StringRef label)
    : b(b), math(math), arguments(arguments), copies(copies), storage(storage), source(source),
      panels(panels) {
  unsigned readBytes = widestKeyRead * storage.bytes();
  for (auto [index, panel] : llvm::enumerate(panels)) {
    XorSwizzle swizzle;
    if (source.side == Side::k)
      swizzle =
          XorSwizzle::forColumnReads(panel.columns, storage.bytes(), readBytes, chip.ldsBanks(readBytes));
    auto type = LdsTileType::get(b.getContext(), storage.tileKv, panel.columns, storage.inTiles,
                                 XorSwizzleAttr::get(b.getContext(), swizzle), isByColumns());
    auto alloc = LdsAllocOp::create(b, type);
    alloc.setLabel((label + (index == 0 ? "" : std::to_string(index))).str());
    tiles.push_back(alloc.getTile());
  }
}

SmallVector<Value> KeyTiles::copy(const KeyCopies::Rows &rows) const {
  SmallVector<Value> tokens;
  for (auto [panel, tile] : llvm::zip_equal(panels, tiles)) {
    bool inPacks = source.side == Side::k && source.inPacks;
    // Values derived from the other panels' columns would occupy scalar registers throughout the loop.
    Value first = panel.first == 0 ? b.i32(0) : b.opaqueScalar(b.i32(panel.first), rows.first);
    Value column = inPacks ? packedColumn(b, arguments, first) : b.zeroExtend(first);
    Value base = b.advance(source.base, storage.type, column);
    // Opaque; otherwise LLVM makes a median of this and the tile's columns, which only the vector unit
    // computes.
    Value columns = b.opaqueScalar(b.maxS(b.sub(source.headDim, first), b.i32(0)));
    tokens.push_back(
        copies.copy(source.side == Side::k ? "k" : "v", base, rows, tile, columns, storage.fetched));
  }
  return tokens;
}

Value KeyTiles::read(unsigned panel, unsigned elements, Value key, Value column) const {
  Value value = LdsReadOp::create(b, VectorType::get(elements, storage.inTiles), tiles[panel], key, column);
  return storage.widened ? math.widen(value, storage.widened) : value;
}

} // namespace sluice

//===- LandRows.cpp - rows in registers are written to LDS ----------------------------------------------===//
//
//   before: land_rows %rows into %tile from type
//   after:  for each batch: convert 8 columns of the lane's row if needed ; lds_write      eight lanes fill
//   all banks
//
// A lane writes its columns where the swizzle wants them. In a tile by columns it first turns four rows of
// some columns into four elements of each column.
//
//===----------------------------------------------------------------------------------------------------===//
#include "dialect/Transpose.h"
#include "dialect/Widen.h"
#include "transforms/Copies.h"
#include "transforms/DistributedCopy.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

namespace sluice {

using namespace mlir;

namespace {

void writeHalf(CopyBuilder &b, Value elements, Value tile, Value row, Value column) {
  LdsWriteOp::create(b, elements, tile, row, column)->setAttr(halfOfCopy, b.getUnitAttr());
}

/// The columns of four rows, each of which is a dword, as vectors of dwords.
SmallVector<Value> columnsOf(CopyBuilder &b, ArrayRef<Value> rows, unsigned elementBytes) {
  if (elementBytes == 2) return transposeHalves(b, rows);
  SmallVector<Value> columns = transposeBytes(b, rows);
  for (Value &column : columns)
    column = vector::FromElementsOp::create(b, VectorType::get(1, b.getI32Type()), column);
  return columns;
}

/// Turns four rows of some columns of a lane into four elements of each column.
void landByColumns(CopyBuilder &b, LandRowsOp land, const NestedLayout &layout, const LanePlace &place) {
  LdsTileType tile = land.getTile().getType();
  unsigned wordColumns = 4 / tile.getElementBytes(); // columns in a dword
  unsigned words = layout.element.columns / wordColumns, rows = layout.element.rows;
  auto type = VectorType::get(rows, tile.getElementType());
  for (unsigned instruction = 0; instruction < layout.instructions(); ++instruction) {
    unsigned firstRow = instruction / layout.batch.columns * rows;
    unsigned batchColumn = instruction % layout.batch.columns;
    for (unsigned word = 0; word < words; ++word) {
      SmallVector<Value> rowWords;
      for (unsigned row = firstRow; row < firstRow + rows; ++row)
        rowWords.push_back(vector::ExtractOp::create(
            b, land.getRows(), int64_t((row * layout.batch.columns + batchColumn) * words + word)));
      for (auto [index, column] : llvm::enumerate(columnsOf(b, rowWords, tile.getElementBytes())))
        writeHalf(b, vector::BitCastOp::create(b, type, column), land.getTile(), place.row(firstRow),
                  b.add(place.column(batchColumn), b.i32(word * wordColumns + index)));
    }
  }
}

} // namespace

void landRows(LandRowsOp land, const NestedLayout &layout, unsigned lanes, Value wave) {
  constexpr unsigned columns = FetchRowsOp::laneColumns; // per lane and instruction
  unsigned dwords = columns * land.getSourceType().getIntOrFloatBitWidth() / 32;
  CopyBuilder b(land.getLoc(), land);
  LanePlace place(b, layout, lanes, wave);
  if (land.getTile().getType().getByColumns()) return landByColumns(b, land, layout, place);
  Type element = land.getTile().getType().getElementType();
  for (unsigned instruction = 0; instruction < layout.instructions(); ++instruction) {
    auto positions = llvm::to_vector(llvm::seq<int64_t>(instruction * dwords, (instruction + 1) * dwords));
    Value laneWords = vector::ShuffleOp::create(b, land.getRows(), land.getRows(), positions);
    auto asElements = [&](Type type) -> Value {
      return vector::BitCastOp::create(b, VectorType::get(columns, type), laneWords);
    };
    bool converts = land.getSourceType() != element;
    Value elements = converts ? widenBytes(b, asElements(b.getI8Type()), land.getSourceType(), element)
                              : asElements(element);
    writeHalf(b, elements, land.getTile(), place.row(instruction / layout.batch.columns),
              place.column(instruction % layout.batch.columns));
  }
}

} // namespace sluice

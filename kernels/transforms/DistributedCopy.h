//===- DistributedCopy.h - a wave's part of a copy, once the copy has a layout ----------------*- C++ -*-===//
//
// The pass distribute-async-dma decides on the layouts of all copies of a kernel. Each copy is then replaced
// by what a wave does of it.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include "transforms/CopyBuilder.h"
#include "transforms/NestedLayout.h"

namespace sluice {

/// The position of a lane of a wave in a copied tile.
struct LanePlace {
  LanePlace(CopyBuilder &b, const NestedLayout &layout, unsigned lanes, mlir::Value wave)
      : b(b), layout(layout), byColumns(layout.element.rows != 1) {
    mlir::Value lane = b.laneOf(mlir::ROCDL::ThreadIdXOp::create(b, b.getI32Type()), lanes);
    if (byColumns) {
      // Lanes that write together: four groups of rows, each of eight neighbours.
      constexpr unsigned neighbours = 8;
      mlir::Value group = b.divide(lane, b.i32(neighbours));
      laneRow = b.mul(b.remainder(group, b.i32(layout.thread.rows)), b.i32(rowsApart));
      mlir::Value pieces = b.mul(b.divide(group, b.i32(layout.thread.rows)), b.i32(neighbours));
      laneColumn = b.add(b.remainder(lane, b.i32(neighbours)), pieces);
    } else {
      laneRow = b.divide(lane, b.i32(layout.thread.columns));
      laneColumn = b.remainder(lane, b.i32(layout.thread.columns));
    }
    laneColumn = b.mul(laneColumn, b.i32(layout.element.columns));
    mlir::Value waveOfRows = wave;
    waveColumn = b.i32(0);
    if (layout.subgroup.columns != 1) {
      waveOfRows = b.divide(wave, b.i32(layout.subgroup.columns));
      waveColumn = b.mul(b.remainder(wave, b.i32(layout.subgroup.columns)), b.i32(layout.waveTile().columns));
    }
    if (byColumns)
      waveRow = b.add(b.mul(b.divide(waveOfRows, b.i32(2)), b.i32(2 * layout.waveTile().rows)),
                      b.mul(b.remainder(waveOfRows, b.i32(2)), b.i32(layout.element.rows)));
    else
      waveRow = b.mul(waveOfRows, b.i32(layout.waveTile().rows));
  }

  /// A lane's rows in a column, and the distance of each from the first.
  unsigned rowsOfLane() const { return layout.batch.rows * layout.element.rows; }
  unsigned step(unsigned batchRow) const {
    return batchRow / layout.element.rows * layout.batchTile().rows + batchRow % layout.element.rows;
  }
  /// The rows from the first row of a wave to its last, inclusive.
  unsigned rowsOfWave() const {
    unsigned instructionRows = byColumns ? (layout.thread.rows - 1) * rowsApart + 1 : layout.thread.rows;
    return step(rowsOfLane() - 1) + instructionRows;
  }

  /// The lane's cell of an instruction.
  mlir::Value row(unsigned batchRow) const { return b.add(b.add(waveRow, laneRow), b.i32(step(batchRow))); }
  mlir::Value column(unsigned batchColumn) const {
    return b.add(b.add(waveColumn, laneColumn), b.i32(batchColumn * layout.batchTile().columns));
  }

  static constexpr unsigned rowsApart = 8; // of neighbours in a unit of a tile by columns

  CopyBuilder &b;
  NestedLayout layout;
  bool byColumns;                  // whether the tile is stored by columns: see ColumnLayout.h
  mlir::Value laneRow, laneColumn; // in its wave's instruction
  mlir::Value waveRow, waveColumn; // of the wave, in a batch
};

/// Loads to LDS before the copy, which the caller erases. `lanes`: of a wave; `wave`: its number.
void loadToLds(AsyncDmaOp copy, const NestedLayout &layout, unsigned lanes, mlir::Value wave);

/// Loads into registers, whose values replace the rows.
void fetchRows(FetchRowsOp fetch, const NestedLayout &layout, unsigned lanes, mlir::Value wave);

/// Writes rows in registers to LDS.
void landRows(LandRowsOp land, const NestedLayout &layout, unsigned lanes, mlir::Value wave);

} // namespace sluice

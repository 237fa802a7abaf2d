//===- HeadColumns.h - how the columns of a head are divided among tiles and lanes ------------*- C++ -*-===//
//
// A head is divided into panels, each a power of two columns wide. Columns of the last panel past the end of
// the head are not read from it.
//
// K: the order of the columns inside K * Q^T is free if Q and K agree, so a lane reads 8 neighbouring
// elements (ds_read_b128 of 16-bit elements) and uses them for more than one MFMA. Lane group g has columns
// first + columns * g of a read.
//
// V: V^T needs a few keys of one column per lane, so a lane reads `columns` neighbouring columns of as many
// rows as a fragment has keys, and transposes them. Lane i of a group has columns first + columns * i of a
// read, and MFMA m of it computes column i * columns + m: a lane ends up with neighbouring columns of O.
//
// V by columns in memory: a lane reads a few keys of one column at a time, and lanes read neighbouring
// columns, which are close to each other in packs: lane i of a group has columns first + i + 16 * m of a
// read.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include "attention/MfmaLayout.h"

#include "llvm/ADT/SmallVector.h"

namespace sluice {

/// Columns of a head that are in one tile.
struct Panel {
  unsigned first, columns; // of the tile, which may be wider than the rest of the head
};

/// Columns that the lanes of a wave read together.
struct ColumnRead {
  unsigned panel, first, columns; // the first column of lane 0 in the panel; columns of each lane
  unsigned headColumn;            // the first column of lane 0 in the head
  unsigned laneStep, ownStep;     // from a lane's first column to the next lane's; between a lane's own
};

/// The end of the columns that `lanes` lanes read.
unsigned columnsOf(llvm::ArrayRef<ColumnRead> reads, unsigned lanes);

struct HeadColumns {
  llvm::SmallVector<Panel> keyPanels, valuePanels; // of rows of K, and of V
  llvm::SmallVector<ColumnRead> keyReads;          // Q has its fragments in the same order
  llvm::SmallVector<ColumnRead> valueReads;        // each covers `columns` tiles of O^T
  unsigned outputTiles;                            // tiles of O^T in total

  /// The head dims of a kernel. No panel is narrower than `narrowest`. `vInK`: V is the front of the rows of
  /// K, and has their panels. valueReads and outputTiles describe the first of `columnGroups` equal parts of
  /// the columns of V; each wave has one part. `vByColumns`: V is by columns in memory.
  HeadColumns(unsigned dimQk, unsigned dimV, bool vInK, bool vByColumns, unsigned columnGroups,
              unsigned narrowest, MfmaLayout layout);
};

/// The most elements of a row of K that a lane reads at a time.
constexpr unsigned widestKeyRead = 8;

} // namespace sluice

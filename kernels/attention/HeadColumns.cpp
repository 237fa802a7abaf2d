//===- HeadColumns.cpp - how the columns of a head are divided among tiles and lanes --------------------===//
#include "attention/HeadColumns.h"

#include "llvm/ADT/bit.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

#include <algorithm>

namespace sluice {

using llvm::ArrayRef;
using llvm::SmallVector;

constexpr unsigned widestPanel = 512, widestValueRead = 8; // columns

/// The columns of a head, widest panels first.
static SmallVector<Panel> panelsOf(unsigned headDim, unsigned narrowest) {
  SmallVector<Panel> panels;
  for (unsigned first = 0; first < headDim;) {
    unsigned columns = std::min<unsigned>(llvm::bit_floor(headDim - first), widestPanel);
    if (columns < narrowest) columns = narrowest;
    panels.push_back({first, columns});
    first += columns;
  }
  return panels;
}

static SmallVector<ColumnRead> keyReadsOf(ArrayRef<Panel> panels, unsigned headDim, MfmaLayout layout) {
  SmallVector<ColumnRead> reads;
  unsigned step = widestKeyRead * layout.groups();
  for (auto [index, panel] : llvm::enumerate(panels))
    for (unsigned first = 0; first < panel.columns && panel.first + first < headDim; first += step) {
      unsigned column = panel.first + first;
      unsigned columns = headDim - column < step ? widestKeyRead / 2 : widestKeyRead;
      reads.push_back({unsigned(index), first, columns, column, columns, 1});
    }
  return reads;
}

static SmallVector<ColumnRead> valueReadsOf(ArrayRef<Panel> panels, unsigned headDim, bool byColumns,
                                            MfmaLayout layout) {
  SmallVector<ColumnRead> reads;
  for (auto [index, panel] : llvm::enumerate(panels))
    for (unsigned first = 0; first < panel.columns && panel.first + first < headDim;) {
      unsigned left = std::min(panel.columns - first, headDim - panel.first - first) / layout.rows;
      unsigned columns = std::min<unsigned>(llvm::bit_floor(left), widestValueRead);
      reads.push_back({unsigned(index), first, columns, panel.first + first, byColumns ? 1 : columns,
                       byColumns ? layout.rows : 1});
      first += columns * layout.rows;
    }
  return reads;
}

unsigned columnsOf(ArrayRef<ColumnRead> reads, unsigned lanes) {
  unsigned end = 0;
  for (const ColumnRead &read : reads)
    end = std::max(end, read.headColumn + lanes * read.columns);
  return end;
}

HeadColumns::HeadColumns(unsigned dimQk, unsigned dimV, bool vInK, bool vByColumns, unsigned columnGroups,
                         unsigned narrowest, MfmaLayout layout)
    : keyPanels(panelsOf(dimQk, narrowest)), valuePanels(vInK ? keyPanels : panelsOf(dimV, narrowest)),
      keyReads(keyReadsOf(keyPanels, dimQk, layout)),
      valueReads(
          valueReadsOf(valuePanels, llvm::alignTo(dimV / columnGroups, layout.rows), vByColumns, layout)),
      outputTiles(llvm::divideCeil(dimV / columnGroups, layout.rows)) {
  llvm::erase_if(valuePanels, [&](const Panel &panel) { return panel.first >= dimV; });
}

} // namespace sluice

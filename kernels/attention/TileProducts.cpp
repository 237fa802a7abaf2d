//===- TileProducts.cpp - the two matrix products of a tile of keys -------------------------------------===//
#include "attention/TileProducts.h"

using namespace mlir;

namespace sluice {

SmallVector<Value> TileProducts::scores(ArrayRef<Value> query, Read readK) const {
  const MfmaLayout &layout = math.layout;
  Values blocks(scoreBlocks(), math.zeros());
  unsigned fragment = 0;
  for (const ColumnRead &read : columns.keyReads) {
    Value column = b.add(b.i32(read.first), b.mul(laneGroup, b.i32(read.columns)));
    SmallVector<Values> rows;
    for (unsigned block = 0; block < blocks.size(); ++block) {
      Value key = b.add(b.i32(layout.rows * block), laneRow);
      rows.push_back(math.fragments(readK(read.panel, read.columns, key, column), read.columns));
    }
    // The blocks take turns: consecutive MFMAs then do not wait for one another's result.
    for (unsigned part = 0; part < read.columns / layout.elements(); ++part, ++fragment)
      for (auto [sum, fragments] : llvm::zip_equal(blocks, rows))
        sum = math.mfma(fragments[part], query[fragment], sum);
  }
  return blocks;
}

/// The first column of V that this lane reads, in the panel.
Value TileProducts::valueColumn(const ColumnRead &read) const {
  Value column = b.add(b.i32(read.first), b.mul(laneRow, b.i32(read.columns)));
  return firstColumn ? b.add(column, firstColumn) : column;
}

void TileProducts::eachStep(unsigned block, Read readV,
                            function_ref<void(unsigned, ArrayRef<Value>)> use) const {
  const MfmaLayout &layout = math.layout;
  unsigned tile = 0; // of O^T
  for (const ColumnRead &read : columns.valueReads) {
    Value column = valueColumn(read);
    Values rows; // in the order of the keys of a fragment of P^T
    for (unsigned k = 0; k < layout.elements(); ++k) {
      Value key = b.add(b.i32(layout.rowOf(block * layout.elements() + k)), b.mul(laneGroup, b.i32(4)));
      rows.push_back(readV(read.panel, read.columns, key, column));
    }
    use(tile, math.transpose(rows));
    tile += read.columns;
  }
}

SmallVector<Value> TileProducts::add(ArrayRef<Value> output, ArrayRef<Value> probabilities,
                                     Read readV) const {
  Values sums(output);
  for (auto [block, p] : llvm::enumerate(probabilities))
    eachStep(block, readV, [&, p = p](unsigned tile, ArrayRef<Value> fragments) {
      for (Value a : fragments) {
        sums[tile] = math.mfma(a, p, sums[tile]);
        ++tile;
      }
    });
  return sums;
}

Value TileProducts::hasNonFinite(const ReadValues &readV) const {
  if (!readV.isTile) {
    Values all;
    for (unsigned block = 0; block < probabilityFragments(); ++block)
      eachStep(block, readV.inOrder,
               [&](unsigned, ArrayRef<Value> fragments) { llvm::append_range(all, fragments); });
    return nonFinite.isIn(all);
  }
  Value any = b.boolean(false);
  for (auto [index, panel] : llvm::enumerate(columns.valuePanels)) {
    Value isIn = nonFinite.isIn({tileKv, panel.columns}, lane, [&](unsigned wide, Value key, Value column) {
      return readV.anywhere(index, wide, key, column);
    });
    any = b.either(any, isIn);
  }
  return any;
}

SmallVector<Value> TileProducts::addNonFinite(ArrayRef<Value> output, ArrayRef<Value> probabilities,
                                              const ScoreRules &rules, Value tileKey, Read readV) const {
  Values level(scoreBlocks(), math.zeros());
  Values visible = nonFinite.visible(rules.apply(level, tileKey));
  Values sums;
  for (const ColumnRead &read : columns.valueReads) {
    Value column = valueColumn(read);
    sums.append(nonFinite.accumulate(
        output.slice(sums.size(), read.columns), probabilities, visible, column, b.mul(laneGroup, b.i32(4)),
        [&](unsigned wide, Value key, Value place) { return readV(read.panel, wide, key, place); }));
  }
  return sums;
}

SmallVector<Value> TileProducts::addValues(ArrayRef<Value> output, ArrayRef<Value> probabilities,
                                           const ScoreRules &rules, Value tileKey, const ReadValues &readV,
                                           ArrayRef<Value> unknown, function_ref<void(Values &)> more) const {
  Values before(output);
  llvm::append_range(before, unknown);
  auto withMore = [&](Values sums) {
    more(sums);
    return sums;
  };
  return nonFinite.choose(
      rules.mayHide(tileKey), [&] { return hasNonFinite(readV); }, before,
      [&] { return withMore(addNonFinite(output, probabilities, rules, tileKey, readV.anywhere)); },
      [&](ArrayRef<Value> usual) {
        return withMore(add(usual.take_front(output.size()), probabilities, readV.inOrder));
      });
}

} // namespace sluice

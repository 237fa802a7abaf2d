//===- TileProducts.cpp - the two matrix products of a tile of keys -------------------------------------===//
#include "attention/TileProducts.h"

using namespace mlir;

namespace sluice {

TileProducts::Place TileProducts::placeIn(Value tileKey) const {
  if (!isFull) return {laneRow, laneGroup};
  return {b.opaque(laneRow, tileKey), b.opaque(laneGroup, tileKey)};
}

SmallVector<Value> TileProducts::scores(ArrayRef<Query> queries, Value tileKey, Read readK) const {
  const MfmaLayout &layout = math.layout;
  Values sums(queries.size() * scoreBlocks(), math.zeros());
  Place place = placeIn(tileKey);
  for (auto [index, read] : llvm::enumerate(columns.keyReads)) {
    Value column = b.add(b.i32(read.first), b.mul(place.group, b.i32(read.columns)));
    SmallVector<Values> rows;
    for (unsigned block = 0; block < scoreBlocks(); ++block) {
      Value key = b.add(b.i32(layout.rows * block), place.row);
      rows.push_back(math.fragments(readK(read.panel, read.columns, key, column), read.columns));
    }
    SmallVector<Values> queryFragments;
    for (const Query &query : queries)
      queryFragments.push_back(query.fragments(index));
    // The blocks take turns: consecutive MFMAs then do not wait for each other's results.
    for (unsigned part = 0; part < read.columns / layout.elements(); ++part)
      for (auto [n, sum] : llvm::enumerate(sums))
        sum = math.mfma(rows[n % scoreBlocks()][part], queryFragments[n / scoreBlocks()][part], sum);
  }
  return sums;
}

/// The first column of V that this lane reads, in the panel.
Value TileProducts::valueColumn(const ColumnRead &read, Value row) const {
  Value column = b.add(b.i32(read.first), b.mul(row, b.i32(read.laneStep)));
  return firstColumn ? b.add(column, firstColumn) : column;
}

void TileProducts::eachFragment(Value tileKey, const ReadValues &readV, Use use) const {
  const MfmaLayout &layout = math.layout;
  Place place = placeIn(tileKey);
  if (readV.stepsByColumns) return eachFragmentByColumns(place, readV.stepsByColumns, readV.inOrder, use);
  for (unsigned step = 0; step < probabilityFragments(); ++step) {
    unsigned tile = 0; // of O^T
    for (const ColumnRead &read : columns.valueReads) {
      Value column = valueColumn(read, place.row);
      Values rows; // in the order of the keys of a fragment of P^T
      for (unsigned k = 0; k < layout.elements(); ++k) {
        Value key = b.add(b.i32(layout.rowOf(step * layout.elements() + k)), b.mul(place.group, b.i32(4)));
        rows.push_back(readV.inOrder(read.panel, read.columns, key, column));
      }
      for (Value fragment : math.transpose(rows))
        use(step, tile++, fragment);
    }
  }
}

void TileProducts::eachFragmentByColumns(Place place, unsigned steps, Read readV, Use use) const {
  // A unit has the fragments of `steps` steps. Those of two columns take turns: consecutive MFMAs then do not
  // wait for each other's results.
  for (unsigned step = 0; step < probabilityFragments(); step += steps) {
    Value key = b.add(b.i32(step * math.layout.depth()), b.mul(place.group, b.i32(4)));
    SmallVector<Values> units; // as fragments
    for (const ColumnRead &read : columns.valueReads)
      for (unsigned column = 0; column < read.columns; ++column) {
        Value unit = readV(read.panel, steps * math.layout.elements(), key,
                           b.add(valueColumn(read, place.row), b.i32(column * read.ownStep)));
        units.push_back(math.fragments(unit, steps * math.layout.elements()));
      }
    for (unsigned first = 0; first < units.size(); first += 2)
      for (unsigned n = 0; n < steps; ++n)
        for (unsigned tile = first; tile < std::min<size_t>(first + 2, units.size()); ++tile)
          use(step + n, tile, units[tile][n]);
  }
}

SmallVector<Value> TileProducts::add(ArrayRef<Value> output, ArrayRef<Value> probabilities, Value tileKey,
                                     const ReadValues &readV) const {
  Values sums(output);
  eachFragment(tileKey, readV, [&](unsigned step, unsigned tile, Value fragment) {
    for (unsigned of = tile, p = step; of < sums.size(); of += outputTiles(), p += probabilityFragments())
      sums[of] = math.mfmaOfOutput(fragment, probabilities[p], sums[of]);
  });
  return sums;
}

SmallVector<Value> TileProducts::addFragments(ArrayRef<Value> output, ArrayRef<Value> probabilities,
                                              MakeFragments makeFragments) const {
  Values sums(output);
  for (unsigned step = 0; step < probabilityFragments(); ++step) {
    unsigned tile = 0; // of O^T
    for (unsigned read = 0; read < columns.valueReads.size(); ++read)
      for (Value fragment : makeFragments(step, read)) {
        sums[tile] = math.mfmaOfOutput(fragment, probabilities[step], sums[tile]);
        ++tile;
      }
  }
  return sums;
}

Value TileProducts::hasNonFinite(Value tileKey, const ReadValues &readV) const {
  if (!readV.isTile)
    return nonFinite.isIn([&](auto include) {
      eachFragment(tileKey, readV, [&](unsigned, unsigned, Value fragment) { include(fragment); });
    });
  Value any = b.boolean(false);
  for (auto [index, panel] : llvm::enumerate(columns.valuePanels)) {
    Value isIn = nonFinite.isIn(
        {tileKv, panel.columns}, b.opaque(lane, tileKey),
        [&](unsigned wide, Value key, Value column) { return readV.anywhere(index, wide, key, column); });
    any = b.either(any, isIn);
  }
  return any;
}

SmallVector<Value> TileProducts::visible(const ScoreRules &rules, Value tileKey) const {
  Values level(scoreBlocks(), math.zeros());
  return nonFinite.visible(rules.applyToZeros(level, tileKey));
}

SmallVector<Value> TileProducts::addNonFinite(ArrayRef<Value> output, const Weights &weights,
                                              const ReadValues &readV) const {
  Values all;
  for (auto [block, rules] : llvm::enumerate(weights.rules)) {
    // Rare: values derived from these must not occupy registers throughout the loop.
    Value row = b.opaque(laneRow, weights.tileKey), group = b.opaque(laneGroup, weights.tileKey);
    auto blockOutput = output.slice(block * outputTiles(), outputTiles());
    auto probabilities = weights.probabilities.slice(block * probabilityFragments(), probabilityFragments());
    Values seen = visible(rules, weights.tileKey), sums;
    for (const ColumnRead &read : columns.valueReads) {
      Value column = valueColumn(read, row);
      sums.append(nonFinite.accumulate(blockOutput.slice(sums.size(), read.columns), probabilities, seen,
                                       column, read.ownStep, b.mul(group, b.i32(4)),
                                       readV.stepsByColumns != 0, [&](unsigned wide, Value key, Value place) {
                                         return readV.anywhere(read.panel, wide, key, place);
                                       }));
    }
    llvm::append_range(all, sums);
  }
  return all;
}

TileProducts::Sums TileProducts::sum(function_ref<Values()> more, ArrayRef<Value> unknown,
                                     ArrayRef<Value> output, const Weights &weights,
                                     const ReadValues &readV) const {
  auto hold = [&](Sums sums) {
    sums.output = math.held(sums.output);
    return sums;
  };
  auto usual = [&](ArrayRef<Value> before) {
    Values sums = add(math.held(before), weights.probabilities, weights.tileKey, readV);
    return Sums{sums, more()};
  };
  if (isFinite) return hold(usual(output));
  Value mayHide =
      weights.rules.front().mayHide(weights.tileKey, weights.hidden); // covers all rows of the wave
  return hold(nonFinite.choose<Sums>(
      mayHide, [&] { return hasNonFinite(weights.tileKey, readV); }, {Values(output), Values(unknown)},
      [&] {
        Values sums = addNonFinite(output, weights, readV);
        return Sums{sums, more()};
      },
      [&](const Sums &before) { return usual(before.output); }));
}

SmallVector<Value> TileProducts::addValues(ArrayRef<Value> output, const Weights &weights,
                                           const ReadValues &readV) const {
  return sum([] { return Values(); }, {}, output, weights, readV).output;
}

} // namespace sluice

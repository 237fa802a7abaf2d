//===- RegisterLoop.cpp - a wave's loop over its own tiles of keys --------------------------------------===//
#include "attention/RegisterLoop.h"

using namespace mlir;

namespace sluice {

using Values = SmallVector<Value>;

namespace {

/// The values that the loop carries.
struct Carried {
  RowState state;
  Values k; // of the tile, as loaded
  OwnTiles::LoadedValues v;
  Value entries;     // of the page table, for the next tile
  Value found;       // which keys of the tile have a page; null if nobody asks
  TileScales scales; // of its keys; null if there are none

  static auto members(auto &of) {
    return std::tie(of.state.maximum, of.state.sum, of.entries, of.state.output, of.k, of.v.v,
                    of.v.forReading, of.found, of.scales);
  }
};

} // namespace

/// Loads stay where they are: a fence, which emits no instruction, keeps LLVM from moving them to their uses.
static void keepLoads(Emitter &b) {
  createWaveFence(b, b.getLoc());
}

RowState registerKeyLoop(const LoopParts &parts, Query &query, const KeyPages &pages, OwnTiles &tiles,
                         LoadScales loadScales, Value wave, unsigned waves) {
  const auto &[b, math, visibility, keys, waveEnd, allRules, softmaxes, products] = parts;
  const Softmax &softmax = softmaxes.front();
  const ScoreRules &rules = allRules.front();
  Value first = b.add(keys.firstTile, wave);
  auto keyOf = [&](Value tile, unsigned turns) {
    return visibility.keyOfTile(b.add(tile, b.i32(turns * waves)));
  };
  bool hidesMissing = visibility.hidesMissing(math.layout);
  // Before the rows, which are waited for first: memory answers in order.
  auto scalesFrom = [&](Value firstKey, Value entries) {
    return loadScales ? loadScales(firstKey, entries) : TileScales();
  };
  Carried initial;
  initial.state = {softmax.noMaximum(), softmax.noSum(), products.zeroOutput()};
  Value entries = pages.lookUp(keyOf(first, 0));
  initial.entries = pages.lookUp(keyOf(first, 1));
  if (hidesMissing) initial.found = pages.found(entries);
  initial.scales = scalesFrom(keyOf(first, 0), entries);
  OwnTiles::LoadedKeys firstKeys = tiles.loadKeys(keyOf(first, 0), entries);
  initial.k = firstKeys.k;
  initial.v = tiles.loadValues(keyOf(first, 0), entries, firstKeys.forValues);
  keepLoads(b);
  query.cutRest();
  tiles.prepare(query);

  auto turn = [&](Value tile, const Carried &now) {
    Value tileKey = keyOf(tile, 0), nextKey = keyOf(tile, 1);
    Carried next;
    next.entries = pages.lookUp(keyOf(tile, 2));
    Values scores = tiles.scores(products, tileKey, now.k);
    if (hidesMissing) next.found = pages.found(now.entries);
    next.scales = scalesFrom(nextKey, now.entries);
    OwnTiles::LoadedKeys nextKeys = tiles.loadKeys(nextKey, now.entries);
    next.k = nextKeys.k;
    keepLoads(b);
    const TileScales *scales = loadScales ? &now.scales : nullptr;
    ScoreRules::Applied applied = rules.apply(scores, tileKey, now.found, scales);
    auto include = [&](auto denominators) {
      return softmax.include(now.state.maximum, now.state.sum, applied.scores, denominators);
    };
    Softmax::Included included =
        scales ? include(rules.denominators(*scales)) : include(rules.denominators(tileKey));
    Values output = tiles.addValues(
        products,
        {now.state.output, included.factor, included.probabilities, allRules, tileKey, applied.hidden},
        now.v);
    next.state = {included.maximum, included.sum, output};
    next.v = tiles.loadValues(nextKey, now.entries, nextKeys.forValues);
    keepLoads(b);
    return next;
  };
  return b.loop(first, keys.endTile, b.i32(waves), initial, turn).state;
}

JoinedState joinWaves(Emitter &b, TileMath &math, const Softmax &softmax, const LaneRows &rows,
                      const RowState &state, unsigned waves) {
  constexpr unsigned tilesAtOnce = 4; // of O^T: 16 bytes of a lane
  MLIRContext *context = b.getContext();
  unsigned lanes = MfmaLayout::lanes, registers = waves;
  auto allocate = [&](unsigned tileRows, unsigned tileColumns, StringRef label) {
    auto type =
        LdsTileType::get(context, tileRows, tileColumns, b.getF32Type(), XorSwizzleAttr::get(context, 0, 0));
    auto alloc = LdsAllocOp::create(b, type);
    alloc.setLabel(label);
    return alloc.getTile();
  };
  Value zero = b.i32(0);
  auto rowOf = [&](Value group) { return b.add(b.mul(group, b.i32(lanes)), rows.lane); };

  // Maxima and sums of all waves, which every wave reads.
  Value states = allocate(waves * lanes, 2, "states");
  auto pair = VectorType::get(2, b.getF32Type());
  Value sum = math.overGroups(state.sum, rows.lane, [&](Value x, Value y) { return b.addF(x, y); });
  LdsWriteOp::create(b, b.pack(pair, {state.maximum, sum}), states, rowOf(rows.wave), zero);
  BarrierOp::create(b);
  Values maxima, sums;
  for (unsigned wave = 0; wave < waves; ++wave) {
    Value read = LdsReadOp::create(b, pair, states, rowOf(b.i32(wave)), zero);
    maxima.push_back(b.extract(read, 0));
    sums.push_back(b.extract(read, 1));
  }
  JoinedState joined;
  joined.maximum = maxima[0];
  for (Value maximum : ArrayRef<Value>(maxima).drop_front())
    joined.maximum = b.maxF(joined.maximum, maximum);
  Value reference = softmax.reference(joined.maximum);
  joined.sum = b.f32(0);
  for (auto [maximum, waveSum] : llvm::zip_equal(maxima, sums))
    joined.sum = b.fma(waveSum, softmax.factor(maximum, reference), joined.sum);
  Value factor = softmax.factor(state.maximum, reference);

  // O^T; wave w gets register w of each tile.
  Value exchange = allocate(waves * registers * lanes, tilesAtOnce, "exchange");
  auto placeOf = [&](Value wave, Value reg) { return rowOf(b.add(b.mul(wave, b.i32(registers)), reg)); };
  for (unsigned first = 0; first < state.output.size(); first += tilesAtOnce) {
    unsigned count = std::min<unsigned>(tilesAtOnce, state.output.size() - first);
    auto chunk = VectorType::get(count, b.getF32Type());
    if (first != 0) BarrierOp::create(b);
    for (unsigned reg = 0; reg < registers; ++reg) {
      Values elements;
      for (unsigned tile = first; tile < first + count; ++tile)
        elements.push_back(b.mulF(b.extract(state.output[tile], reg), factor));
      LdsWriteOp::create(b, b.pack(chunk, elements), exchange, placeOf(rows.wave, b.i32(reg)), zero);
    }
    BarrierOp::create(b);
    Values total(count, b.f32(0));
    for (unsigned wave = 0; wave < waves; ++wave) {
      Value read = LdsReadOp::create(b, chunk, exchange, placeOf(b.i32(wave), rows.wave), zero);
      for (unsigned n = 0; n < count; ++n)
        total[n] = wave == 0 ? b.extract(read, n) : b.addF(total[n], b.extract(read, n));
    }
    llvm::append_range(joined.output, total);
  }
  return joined;
}

} // namespace sluice

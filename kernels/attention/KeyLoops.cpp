//===- KeyLoops.cpp - the loops over tiles of keys ------------------------------------------------------===//
#include "attention/KeyLoops.h"

using namespace mlir;

namespace sluice {

using Values = SmallVector<Value>;

static void waitFor(Emitter &b, ArrayRef<Value> tokens) {
  for (Value token : tokens)
    AsyncWaitOp::create(b, token);
}

static auto readerOf(const KeyTiles &tiles) {
  return [&tiles](unsigned panel, unsigned columns, Value key, Value column) {
    return tiles.read(panel, columns, key, column);
  };
}

namespace {

/// The state of a block of rows without its output, and the factor for values relative to the maximum before.
struct BlockStep {
  Value maximum, sum, factor;
  static auto members(auto &of) { return std::tie(of.maximum, of.sum, of.factor); }
};

/// What the scores of a tile are to all blocks.
struct TileSteps {
  SmallVector<BlockStep> blocks;
  Value hidden;         // whether changes hide any keys: see ScoreRules::Applied
  Values probabilities; // fragments of P^T, block by block
  static auto members(auto &of) { return std::tie(of.blocks, of.hidden, of.probabilities); }
};

} // namespace

/// Scores, changes and softmax of a tile in LDS, for each block.
static TileSteps includeTile(const LoopParts &parts, ArrayRef<Query> queries, const KeyTiles &k,
                             ArrayRef<RowState> states, Value tileKey, Value found) {
  const auto &[b, math, visibility, keys, waveEnd, rules, softmax, products] = parts;
  Values scores = math.settle(products.scores(queries, tileKey, readerOf(k)));
  TileSteps steps;
  steps.hidden = b.i32(0);
  for (auto [block, state] : llvm::enumerate(states)) {
    ArrayRef<Value> raw = ArrayRef(scores).slice(block * products.scoreBlocks(), products.scoreBlocks());
    ScoreRules::Applied applied = rules[block].apply(raw, tileKey, found);
    steps.hidden = b.bitOr(steps.hidden, applied.hidden);
    Softmax::Included included =
        softmax[block].include(state.maximum, state.sum, applied.scores, rules[block].denominators(tileKey));
    steps.blocks.push_back({included.maximum, included.sum, included.factor});
    llvm::append_range(steps.probabilities, included.probabilities);
  }
  return steps;
}

/// The same for a wave that is done.
static TileSteps unchangedSteps(const LoopParts &parts, ArrayRef<RowState> states) {
  Emitter &b = parts.b;
  TileSteps steps;
  for (const RowState &state : states)
    steps.blocks.push_back({state.maximum, state.sum, b.f32(1)});
  steps.hidden = b.i32(0);
  steps.probabilities.append(states.size() * parts.products.probabilityFragments(),
                             b.undef(parts.math.fragment));
  return steps;
}

namespace {

/// The states of all blocks, as the loop carries them: the outputs, which are long, come last.
struct BlockStates {
  SmallVector<std::array<Value, 2>> maximaAndSums;
  SmallVector<Values> outputs;
  static auto members(auto &of) { return std::tie(of.maximaAndSums, of.outputs); }

  static BlockStates from(ArrayRef<RowState> states) {
    BlockStates all;
    for (const RowState &state : states) {
      all.maximaAndSums.push_back({state.maximum, state.sum});
      all.outputs.push_back(state.output);
    }
    return all;
  }
  SmallVector<RowState> each() const {
    SmallVector<RowState> states;
    for (auto [sums, output] : llvm::zip_equal(maximaAndSums, outputs))
      states.push_back({sums[0], sums[1], output});
    return states;
  }
};

} // namespace

static TileProducts::Values outputOf(ArrayRef<RowState> states) {
  Values output;
  for (const RowState &state : states)
    llvm::append_range(output, state.output);
  return output;
}

SmallVector<RowState> plainKeyLoop(const LoopParts &parts, ArrayRef<Query> queries, const KeyCopies &copies,
                                   const KeyTiles &k, const KeyTiles &v) {
  const auto &[b, math, visibility, keys, waveEnd, rules, softmaxes, products] = parts;
  auto turn = [&](Value tile, const BlockStates &before) {
    SmallVector<RowState> states = before.each();
    Value tileKey = visibility.keyOfTile(tile);
    KeyCopies::Rows tileRows = copies.rowsFrom(tileKey);
    Value found = visibility.hidesMissing(math.layout) ? copies.found(tileRows) : Value();
    Values kCopies = k.copy(tileRows), vCopies;
    if (&v != &k) vCopies = v.copy(tileRows);
    Value active = waveEnd ? b.less(tileKey, waveEnd) : b.boolean(true);
    waitFor(b, kCopies);
    TileSteps steps = b.branch(
        active, [&] { return includeTile(parts, queries, k, states, tileKey, found); },
        [&] { return unchangedSteps(parts, states); });
    waitFor(b, vCopies);
    Values output = b.branch(
        active,
        [&] {
          Values rescaled;
          for (auto [state, step] : llvm::zip_equal(states, steps.blocks))
            llvm::append_range(rescaled, math.rescale(state.output, step.factor));
          auto readV = readerOf(v);
          return products.addValues(rescaled, {steps.probabilities, rules, tileKey, steps.hidden},
                                    {readV, readV, /*isTile=*/!v.isByColumns(), v.stepsByColumns()});
        },
        [&] { return outputOf(states); });
    BarrierOp::create(b);
    SmallVector<RowState> next;
    size_t tiles = products.outputTiles();
    for (auto [block, step] : llvm::enumerate(steps.blocks))
      next.push_back({step.maximum, step.sum, Values(ArrayRef(output).slice(block * tiles, tiles))});
    return BlockStates::from(next);
  };
  SmallVector<RowState> initial;
  for (const Softmax &softmax : softmaxes) {
    Value maximum = softmax.noMaximum(), sum = softmax.noSum();
    initial.push_back({maximum, sum, products.zeroOutput()});
  }
  return b.loop(keys.firstTile, keys.endTile, b.i32(1), BlockStates::from(initial), turn).each();
}

namespace {

/// What the scores of a tile make of the maximum.
struct TileMaximum {
  Value maximum; // of the scores so far, the tile's included
  Value offset;  // of the tile's exponents
  Value factor;  // rescales sums relative to the maximum before the tile to `maximum`
  Value raised;  // i32, wave-uniform: whether `factor` is not 1 or `offset` too large; see adjust
  static auto members(auto &of) { return std::tie(of.maximum, of.offset, of.factor, of.raised); }
};

/// A wave's state at the start of a tile of keys. The scores of that tile are already computed, changed and
/// masked, and included in the maximum: they were computed alongside the tile before.
struct AheadState {
  TileMaximum of;
  Value sum;     // of this lane group, without this tile, relative to the maximum before it
  Value hidden;  // of the tile: see ScoreRules::Applied
  Values scores; // S^T
  Values output; // O^T without this tile, relative to the maximum before it
  static auto members(auto &state) {
    return std::tie(state.of, state.sum, state.hidden, state.scores, state.output);
  }
};

} // namespace

/// Of new scores. The maximum stays without scores, because the wave is done.
static TileMaximum includeScores(const LoopParts &parts, ArrayRef<Value> scores, Value maximumBefore,
                                 Value any) {
  Emitter &b = parts.b;
  const Softmax &softmax = parts.softmax.front();
  Value tileMaximum = softmax.maximumOf(scores);
  TileMaximum next;
  next.maximum = b.select(any, softmax.raised(maximumBefore, tileMaximum), maximumBefore);
  Value reference = softmax.reference(next.maximum);
  next.offset = softmax.offset(reference);
  next.factor = softmax.factor(maximumBefore, reference);
  next.raised = softmax.needsAdjusting(next.factor, next.offset);
  return next;
}

/// Rescales values from the maximum before the tile to that with it: one branch for rare cases.
static AheadState adjusted(const LoopParts &parts, AheadState state) {
  Emitter &b = parts.b;
  std::tie(state.of.offset, state.sum, state.scores, state.output) = b.branch(
      b.isFalse(b.equal(state.of.raised, b.i32(0))),
      [&] {
        Value factor = b.behindProducts(state.of.factor), maximum = b.behindProducts(state.of.maximum);
        Values scores = state.scores;
        Value offset = parts.softmax.front().centred(scores, state.of.offset, maximum);
        Value sum = b.mulF(state.sum, factor);
        return std::tuple(offset, sum, scores, parts.math.scaled(state.output, factor));
      },
      [&] { return std::tuple(state.of.offset, state.sum, state.scores, state.output); });
  state.output = parts.math.held(state.output);
  return state;
}

namespace {

/// What is computed of a tile while the scores of the next one are.
struct Exponentials {
  Value sum;            // with the tile
  Values nextScores;    // raw
  Values probabilities; // fragments of P^T
  static auto members(auto &of) { return std::tie(of.sum, of.nextScores, of.probabilities); }
};

/// The tiles of keys of a turn of the loop, and whether the wave needs them.
struct Turn {
  Value number, tileKey, active, nextKey, nextActive;
};

} // namespace

static Exponentials exponentiate(const LoopParts &parts, const AheadState &state,
                                 const Softmax::Denominator &denominator, const Values &nextScores) {
  Value sum = state.sum;
  Values fragments = parts.softmax.front().exponentiate(state.scores, state.of.offset, sum, denominator);
  return {sum, nextScores, fragments};
}

/// The state before the loop, with the scores of the first tile: inside it the matrix core computes those of
/// the next tile while the vector unit exponentiates those of this one.
static AheadState firstState(const LoopParts &parts, Query &query, const KeyCopies &copies,
                             const KeyTiles &firstK) {
  const auto &[b, math, visibility, keys, waveEnd, rules, softmaxes, products] = parts;
  Value firstKey = visibility.keyOfTile(keys.firstTile);
  Values firstCopies = firstK.copy(copies.rowsFrom(firstKey));
  query.cutRest();
  waitFor(b, firstCopies);
  AheadState initial;
  initial.sum = softmaxes.front().noSum();
  initial.output = math.held(products.zeroOutput());
  ScoreRules::Applied applied =
      rules.front().applyIf(b.boolean(true), products.scores(query, firstKey, readerOf(firstK)), firstKey);
  initial.scores = applied.scores;
  initial.hidden = applied.hidden;
  initial.of = includeScores(parts, initial.scores, softmaxes.front().noMaximum(), b.less(firstKey, waveEnd));
  return initial;
}

static Exponentials exponentiateAhead(const LoopParts &parts, Query &query, const KeyTiles &k,
                                      const AheadState &state, const Softmax::Denominator &denominator,
                                      const Turn &turn, Visibility::Tiles usual,
                                      function_ref<void(Value)> atLastTile) {
  const auto &[b, math, visibility, keys, waveEnd, rules, softmaxes, products] = parts;
  Values noScores(products.scoreBlocks(), b.undef(math.accumulator));
  return b.usually(
      turn.active,
      [&] {
        UsualWayOp::create(
            b, b.both(b.isFalse(b.less(turn.number, usual.first)), b.less(turn.number, usual.end)));
        return b.usually(
            turn.nextActive,
            [&] {
              return exponentiate(parts, state, denominator,
                                  products.scores(query, turn.tileKey, readerOf(k)));
            },
            [&] {
              // The last tile of the wave. An offset that looks different keeps the code generator from
              // sharing the exponents of both sides before the branch, where no MFMA hides them.
              atLastTile(turn.nextKey);
              AheadState last = state;
              last.of.offset = b.opaque(state.of.offset);
              return exponentiate(parts, last, denominator, noScores);
            });
      },
      [&] {
        Values none(products.probabilityFragments(), b.undef(math.fragment));
        return Exponentials{state.sum, noScores, none};
      });
}

/// The state after a tile whose exponentials are done, of a wave that has more or none.
static AheadState nextState(const LoopParts &parts, const AheadState &state, const Exponentials &done,
                            const KeyTiles &v, const Turn &turn) {
  const auto &[b, math, visibility, keys, waveEnd, rules, softmaxes, products] = parts;
  return b.usually(
      turn.active,
      [&] {
        AheadState next;
        next.sum = done.sum;
        ScoreRules::Applied applied = rules.front().applyIf(turn.nextActive, done.nextScores, turn.nextKey);
        next.scores = applied.scores;
        next.hidden = applied.hidden;
        Value unknown = b.undef(b.getF32Type());
        next.of = {unknown, unknown, unknown, b.undef(b.getI32Type())};
        auto readV = readerOf(v);
        // The maximum of the next scores, in the shadow of the product.
        auto include = [&] { return includeScores(parts, next.scores, state.of.maximum, turn.nextActive); };
        std::tie(next.output, next.of) = products.addValuesAnd<TileMaximum>(
            include, next.of, state.output, {done.probabilities, rules, turn.tileKey, state.hidden},
            {readV, readV, /*isTile=*/!v.isByColumns(), v.stepsByColumns()});
        return next;
      },
      [&] {
        // The wave is done: its scores would only take registers.
        AheadState unchanged = state;
        unchanged.sum = done.sum;
        unchanged.of.offset = unchanged.of.factor = b.undef(b.getF32Type());
        unchanged.of.raised = b.i32(0);
        unchanged.scores = Values(products.scoreBlocks(), b.undef(math.accumulator));
        return unchanged;
      });
}

RowState aheadKeyLoop(const LoopParts &parts, Query &query, const KeyCopies &copies, const KeyTiles &firstK,
                      const KeyTiles &k, const KeyTiles &v, function_ref<void(Value)> atLastTile) {
  const auto &[b, math, visibility, keys, waveEnd, rules, softmaxes, products] = parts;
  AheadState initial = firstState(parts, query, copies, firstK);
  Visibility::Tiles usual = rules.front().usualTiles(waveEnd);
  usual.end = b.minS(usual.end, keys.endTile); // a missing tile is not usual
  auto body = [&](Value tile, AheadState state) {
    Turn turn;
    turn.number = tile;
    turn.tileKey = visibility.keyOfTile(tile);
    turn.nextKey = visibility.keyOfTile(b.add(tile, b.i32(1)));
    Values kCopies = k.copy(copies.rowsFrom(turn.nextKey)), vCopies = v.copy(copies.rowsFrom(turn.tileKey));
    turn.active = b.less(turn.tileKey, waveEnd);
    turn.nextActive = b.less(turn.nextKey, waveEnd);
    state.output = math.held(state.output);
    state = adjusted(parts, state);
    Softmax::Denominator denominator =
        rules.front().denominators(turn.tileKey)(state.sum, state.scores, state.of.offset);
    waitFor(b, kCopies);
    Exponentials done = exponentiateAhead(parts, query, k, state, denominator, turn, usual, atLastTile);
    waitFor(b, vCopies);
    AheadState next = nextState(parts, state, done, v, turn);
    next.output = math.held(next.output);
    BarrierOp::create(b);
    return next;
  };
  AheadState last = b.loop(keys.firstTile, keys.endTile, b.i32(1), initial, body);
  return {last.of.maximum, last.sum, math.held(last.output, /*settles=*/true)};
}

} // namespace sluice

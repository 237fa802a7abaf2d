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

static Values joined(Values first, ArrayRef<Value> rest) {
  llvm::append_range(first, rest);
  return first;
}

SmallVector<RowState> plainKeyLoop(const LoopParts &parts, ArrayRef<Query> queries, const KeyCopies &copies,
                                   const KeyTiles &k, const KeyTiles &v) {
  const auto &[b, math, visibility, keys, waveEnd, rules, softmax, products] = parts;
  size_t blocks = queries.size(), tiles = products.outputTiles();
  // Maximum and sum of each block, then O^T of each block.
  auto toStates = [&](ValueRange values) {
    SmallVector<RowState> states;
    for (size_t block = 0; block < blocks; ++block)
      states.push_back({values[2 * block], values[2 * block + 1],
                        Values(values.slice(2 * blocks + block * tiles, tiles))});
    return states;
  };
  Values initial, noOutput;
  for (const Softmax &ofBlock : softmax) {
    initial.append({ofBlock.noMaximum(), ofBlock.noSum()});
    llvm::append_range(noOutput, products.zeroOutput());
  }
  auto loop =
      scf::ForOp::create(b, keys.firstTile, keys.endTile, b.i32(1), joined(std::move(initial), noOutput));
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  Value tileKey = visibility.keyOfTile(loop.getInductionVar());
  KeyCopies::Rows tileRows = copies.rowsFrom(tileKey);
  Value found = visibility.hidesMissing(math.layout) ? copies.found(tileRows) : Value();
  Values kCopies = k.copy(tileRows), vCopies;
  if (&v != &k) vCopies = v.copy(tileRows);
  Value active = waveEnd ? b.less(tileKey, waveEnd) : b.boolean(true);
  SmallVector<RowState> states = toStates(loop.getRegionIterArgs());

  waitFor(b, kCopies);
  // For each block the new maximum and sum, and the factor for values relative to the old maximum; whether
  // changes hide any keys; the fragments of P^T.
  size_t fragments = blocks * products.probabilityFragments();
  Values first = b.branch(
      active,
      [&] {
        Values scores = math.settle(products.scores(queries, tileKey, readerOf(k))), of, probabilities;
        Value hidden = b.i32(0);
        for (size_t block = 0; block < blocks; ++block) {
          ArrayRef<Value> raw =
              ArrayRef(scores).slice(block * products.scoreBlocks(), products.scoreBlocks());
          ScoreRules::Applied applied = rules[block].apply(raw, tileKey, found);
          hidden = b.bitOr(hidden, applied.hidden);
          Softmax::Included included = softmax[block].include(
              states[block].maximum, states[block].sum, applied.scores, rules[block].denominators(tileKey));
          of.append({included.maximum, included.sum, included.factor});
          llvm::append_range(probabilities, included.probabilities);
        }
        of.push_back(hidden);
        return joined(std::move(of), probabilities);
      },
      [&] {
        Values unchanged;
        for (const RowState &state : states)
          unchanged.append({state.maximum, state.sum, b.f32(1)});
        unchanged.push_back(b.i32(0));
        unchanged.append(fragments, b.undef(math.fragment));
        return unchanged;
      });
  waitFor(b, vCopies);
  Values output = b.branch(
      active,
      [&] {
        Values rescaled;
        for (size_t block = 0; block < blocks; ++block)
          llvm::append_range(rescaled, math.rescale(states[block].output, first[3 * block + 2]));
        auto readV = readerOf(v);
        return products.addValues(rescaled, ArrayRef(first).take_back(fragments), rules, tileKey,
                                  first[3 * blocks],
                                  {readV, readV, /*isTile=*/!v.isByColumns(), v.stepsByColumns()});
      },
      [&] {
        Values unchanged;
        for (const RowState &state : states)
          llvm::append_range(unchanged, state.output);
        return unchanged;
      });
  BarrierOp::create(b);
  Values carried;
  for (size_t block = 0; block < blocks; ++block)
    carried.append({first[3 * block], first[3 * block + 1]});
  scf::YieldOp::create(b, joined(std::move(carried), output));
  return toStates(loop.getResults());
}

namespace {

/// A wave's state at the start of a tile of keys. The scores of that tile are already computed, changed and
/// masked, and included in the maximum: they were computed alongside the tile before.
struct AheadState {
  Value maximum; // of the scores so far, this tile included
  Value offset;  // of the exponents of the tile
  Value factor;  // rescales sums relative to the maximum before this tile to `maximum`
  Value raised;  // i32, wave-uniform: whether `factor` is not 1 or `offset` too large; see adjust
  Value sum;     // of this lane group, without this tile, relative to the maximum before it
  Value hidden;  // of the tile: see ScoreRules::Applied
  Values scores; // S^T
  Values output; // O^T without this tile, relative to the maximum before it

  Values flatten() const {
    return joined(joined({maximum, offset, factor, raised, sum, hidden}, scores), output);
  }
  static AheadState from(ValueRange values, unsigned blocks) {
    return {values[0],
            values[1],
            values[2],
            values[3],
            values[4],
            values[5],
            Values(values.slice(6, blocks)),
            Values(values.drop_front(6 + blocks))};
  }
};

} // namespace

static void setScores(AheadState &state, const ScoreRules::Applied &applied) {
  state.scores = applied.scores;
  state.hidden = applied.hidden;
}

/// Completes `state`, whose scores are new, with the maximum and the values derived from it. Without
/// scores, because the wave is done, the maximum stays.
static void includeScores(const LoopParts &parts, AheadState &state, Value maximumBefore, Value any) {
  Emitter &b = parts.b;
  const Softmax &softmax = parts.softmax.front();
  Value ofTile = softmax.maximumOf(state.scores);
  state.maximum = b.select(any, softmax.raised(maximumBefore, ofTile), maximumBefore);
  Value reference = softmax.reference(state.maximum);
  state.offset = softmax.offset(reference);
  state.factor = softmax.factor(maximumBefore, reference);
  state.raised = softmax.needsAdjusting(state.factor, state.offset);
}

/// Rescales values from the maximum before the tile to that with it: one branch for rare cases.
static void adjust(const LoopParts &parts, AheadState &state) {
  Emitter &b = parts.b;
  unsigned blocks = state.scores.size();
  Values results = b.branch(
      b.isFalse(b.equal(state.raised, b.i32(0))),
      [&] {
        Value factor = b.behindProducts(state.factor), maximum = b.behindProducts(state.maximum);
        Values scores = state.scores;
        Value offset = parts.softmax.front().centred(scores, state.offset, maximum);
        Value sum = b.mulF(state.sum, factor);
        return joined(joined({offset, sum}, scores), parts.math.scaled(state.output, factor));
      },
      [&] { return joined(joined({state.offset, state.sum}, state.scores), state.output); });
  state.offset = results[0];
  state.sum = results[1];
  state.scores = Values(ArrayRef<Value>(results).slice(2, blocks));
  state.output = parts.math.held(ArrayRef<Value>(results).drop_front(2 + blocks));
}

/// The sum with the tile of `state`, the next tile's raw scores, and the fragments of P^T.
static Values exponentiate(const LoopParts &parts, const AheadState &state,
                           const Softmax::Denominator &denominator, ArrayRef<Value> nextScores) {
  Value sum = state.sum;
  Values fragments = parts.softmax.front().exponentiate(state.scores, state.offset, sum, denominator);
  return joined(joined({sum}, nextScores), fragments);
}

RowState aheadKeyLoop(const LoopParts &parts, Query &query, const KeyCopies &copies, const KeyTiles &firstK,
                      const KeyTiles &k, const KeyTiles &v, function_ref<void(Value)> atLastTile) {
  const auto &[b, math, visibility, keys, waveEnd, allRules, softmaxes, products] = parts;
  const ScoreRules &rules = allRules.front();
  const Softmax &softmax = softmaxes.front();
  unsigned blocks = products.scoreBlocks();
  Values noScores(blocks, b.undef(math.accumulator));

  // The scores of the first tile come before the loop: inside it the matrix core computes those of the next
  // tile while the vector unit exponentiates those of this one.
  Value keyOfFirst = visibility.keyOfTile(keys.firstTile);
  Values firstCopies = firstK.copy(copies.rowsFrom(keyOfFirst));
  query.cutRest();
  waitFor(b, firstCopies);
  AheadState initial;
  initial.sum = softmax.noSum();
  initial.output = math.held(products.zeroOutput());
  setScores(initial,
            rules.applyIf(b.boolean(true), products.scores(query, keyOfFirst, readerOf(firstK)), keyOfFirst));
  includeScores(parts, initial, softmax.noMaximum(), b.less(keyOfFirst, waveEnd));

  Visibility::Tiles usual = rules.usualTiles(waveEnd);
  usual.end = b.minS(usual.end, keys.endTile); // a missing tile is not usual
  auto loop = scf::ForOp::create(b, keys.firstTile, keys.endTile, b.i32(1), initial.flatten());
  b.setInsertionPointToStart(loop.getBody());
  Value tileKey = visibility.keyOfTile(loop.getInductionVar());
  Value nextKey = visibility.keyOfTile(b.add(loop.getInductionVar(), b.i32(1)));
  Values kCopies = k.copy(copies.rowsFrom(nextKey)), vCopies = v.copy(copies.rowsFrom(tileKey));
  Value active = b.less(tileKey, waveEnd), nextActive = b.less(nextKey, waveEnd);
  AheadState state = AheadState::from(loop.getRegionIterArgs(), blocks);
  state.output = math.held(state.output);
  adjust(parts, state);
  Softmax::Denominator denominator = rules.denominators(tileKey)(state.sum, state.scores, state.offset);

  waitFor(b, kCopies);
  // The new sum, the next scores, the fragments of P^T.
  Values first = b.usually(
      active,
      [&] {
        Value tile = loop.getInductionVar();
        UsualWayOp::create(b, b.both(b.isFalse(b.less(tile, usual.first)), b.less(tile, usual.end)));
        return b.usually(
            nextActive,
            [&] {
              return exponentiate(parts, state, denominator, products.scores(query, tileKey, readerOf(k)));
            },
            [&] {
              // The last tile of the wave. An offset that looks different keeps the code generator from
              // sharing the exponents of both sides before the branch, where no MFMA hides them.
              atLastTile(nextKey);
              AheadState last = state;
              last.offset = b.opaque(state.offset);
              return exponentiate(parts, last, denominator, noScores);
            });
      },
      [&] {
        Values unchanged = joined({state.sum}, noScores);
        unchanged.append(products.probabilityFragments(), b.undef(math.fragment));
        return unchanged;
      });
  Value sum = first[0];
  ArrayRef<Value> nextScores = ArrayRef<Value>(first).slice(1, blocks);
  ArrayRef<Value> probabilities = ArrayRef<Value>(first).drop_front(1 + blocks);

  waitFor(b, vCopies);
  Values carried = b.usually(
      active,
      [&] {
        AheadState next;
        next.sum = sum;
        setScores(next, rules.applyIf(nextActive, nextScores, nextKey));
        // The maximum of the next scores, in the shadow of the product.
        Values unknown(3, b.undef(b.getF32Type()));
        unknown.push_back(b.undef(b.getI32Type()));
        auto readV = readerOf(v);
        next.output = products.addValues(
            state.output, probabilities, allRules, tileKey, state.hidden,
            {readV, readV, /*isTile=*/!v.isByColumns(), v.stepsByColumns()}, unknown, [&](Values &values) {
              includeScores(parts, next, state.maximum, nextActive);
              values.append({next.maximum, next.offset, next.factor, next.raised});
            });
        next.raised = next.output.pop_back_val();
        next.factor = next.output.pop_back_val();
        next.offset = next.output.pop_back_val();
        next.maximum = next.output.pop_back_val();
        return next.flatten();
      },
      [&] {
        // The wave is done: its scores would only take registers.
        AheadState unchanged = state;
        unchanged.sum = sum;
        unchanged.offset = unchanged.factor = b.undef(b.getF32Type());
        unchanged.raised = b.i32(0);
        unchanged.scores = noScores;
        return unchanged.flatten();
      });
  AheadState next = AheadState::from(carried, blocks);
  next.output = math.held(next.output);
  BarrierOp::create(b);
  scf::YieldOp::create(b, next.flatten());
  b.setInsertionPointAfter(loop);
  AheadState last = AheadState::from(loop.getResults(), blocks);
  return {last.maximum, last.sum, math.held(last.output, /*settles=*/true)};
}

} // namespace sluice

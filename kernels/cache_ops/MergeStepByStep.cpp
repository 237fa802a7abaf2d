//===- MergeStepByStep.cpp - merging any rows -----------------------------------------------------------===//
#include "cache_ops/MergeStore.h"
#include "cache_ops/MergeWays.h"

using namespace mlir;

namespace sluice {

namespace {

/// A row's chunks, one after the other.
struct RowSteps {
  const MergeRow &row;
  const PartLses &lses;
  const PartChunks &chunks;
  const CountedParts &counted;
  const MergePlace &place;
  const MergeStore &store;
  Value sink;

  struct Merged {
    MergeWeights weights;
    Value sum; // of all weights
  };
  /// Merges a chunk. `loaded`: the LSEs of the lane's first `depth` parts.
  Merged mergeChunk(Value number, ArrayRef<Value> loaded, unsigned depth) const;

private:
  SmallVector<Value> nextLses(Value first, unsigned depth) const;
};

/// The LSEs of the lane's parts from `first` on, as many as it handles at a time.
SmallVector<Value> RowSteps::nextLses(Value first, unsigned depth) const {
  SmallVector<Value> values = counted.lses(first, 0, lses.load(first, 0, depth));
  // Otherwise each would be waited for at its use, together with the rows that may have been loaded before.
  for (Value &lse : values)
    lse = row.b.opaque(lse);
  return values;
}

RowSteps::Merged RowSteps::mergeChunk(Value number, ArrayRef<Value> loaded, unsigned depth) const {
  MergeEmitter &b = row.b;
  Value parts = row.arguments["parts"], round = b.mul(row.lanes.slots, b.i32(depth));
  Value start = chunks.startOf(number);
  MergeChunk chunk = {number, b.both(place.isWanted, b.less(number, row.arguments["row_chunks"]))};
  auto loadFirst = [&](unsigned begin, ArrayRef<Value> partLses) {
    SmallVector<Value> countedLses = counted.lses(b.i32(0), begin, partLses);
    return chunks.load(chunk, start, b.i32(0), begin, countedLses);
  };
  LaneParts one = loadFirst(0, loaded.take_front());
  LaneParts others = b.branch(
      severalPerLane(row), [&] { return loadFirst(1, loaded.drop_front()); },
      [&] { return LaneParts::none(row, depth - 1); });

  Value maximum = largest(row, one.lses);
  for (Value lse : others.lses)
    maximum = b.maxF(maximum, lse);
  maximum = b.loop(round, parts, round, maximum, [&](Value first, Value before) {
    return b.maxF(before, largest(row, nextLses(first, depth)));
  });
  MergeWeights weights(row, maximum, sink);

  MergeSums sums = weights.add(one, chunk, MergeSums::zero(row));
  sums =
      b.branch(severalPerLane(row), [&] { return weights.add(others, chunk, sums); }, [&] { return sums; });
  sums = b.loop(round, parts, round, sums, [&](Value first, const MergeSums &before) {
    LaneParts more = chunks.load(chunk, start, first, 0, nextLses(first, depth));
    return weights.add(more, chunk, before);
  });
  return {weights, store.storeChunk(weights, sums, chunk)};
}

/// What decides which parts a row has, if it may be one of a cascade.
std::optional<CascadeRow> findCascadeRow(const MergeRow &row, const MergePlace &place, TokensAre tokens) {
  if (tokens == TokensAre::InSequences) return {};
  return CascadeRow{place.isLong, seesPrefix(row)};
}

} // namespace

void mergeStepByStep(const MergeRow &row, MergeCode code, unsigned depth) {
  MergeEmitter &b = row.b;
  const PartLses lses(row, code);
  const SmallVector<Value> loaded = lses.loadFirst(depth);
  const PartChunks chunks(row, code);
  const Value sink = loadSink(row);
  const ResultScale scale = loadScale(row);
  const TokensAre tokens = code == MergeCode::Special ? TokensAre::InSequences : TokensAre::InCascade;
  const MergePlace place = findPlace(row, tokens);
  const CountedParts counted(row, code, findCascadeRow(row, place, tokens));
  const MergeStore store(row, place, findResult(row, place), scale);
  const RowSteps steps = {row, lses, chunks, counted, place, store, sink};

  const Value firstChunk = row.lanes.firstChunk;
  const RowSteps::Merged first = steps.mergeChunk(firstChunk, loaded, depth);
  // In a separate loop: LLVM computes loop invariants before a loop, at the point where rows should be read.
  // Keeping them takes registers, and long rows hide latency with their lanes.
  constexpr unsigned loopDepth = 2;
  Value lanes = b.shiftLeft(b.i32(1), row.lanes.lanesLog2), end = row.arguments["row_chunks"];
  b.loop(lanes, end, lanes, [&](Value before) {
    Value number = b.add(before, firstChunk);
    steps.mergeChunk(number, lses.loadFirst(loopDepth), loopDepth);
  });
  store.storeLse(first.weights, first.sum);
}

} // namespace sluice

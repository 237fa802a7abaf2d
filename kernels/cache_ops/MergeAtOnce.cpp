//===- MergeAtOnce.cpp - merging contiguous rows of few parts -------------------------------------------===//
#include "cache_ops/MergeStore.h"
#include "cache_ops/MergeWays.h"

using namespace mlir;

namespace sluice {

/// For numbers known to fit in 24 bits, as those of few rows do.
static Value product24(MergeEmitter &b, Value x, Value y) {
  Value mask = b.i32(0xffffff);
  return b.mul(b.bitAnd(x, mask), b.bitAnd(y, mask));
}

/// The lane's parts of its first chunk.
static LaneParts loadParts(const MergeRow &row, unsigned count) {
  MergeEmitter &b = row.b;
  const MergeArguments &arguments = row.arguments;
  LaneParts parts;
  SmallVector<Value> partRows;
  for (unsigned i = 0; i < count; ++i) {
    Value part = presentPart(row, partBeforeSlot(row, b.i32(0), i));
    partRows.push_back(b.add(product24(b, part, arguments["rows"]), row.number));
    parts.lses.push_back(b.load(b.getF32Type(), arguments["partial_lse"], b.zeroExtend(partRows.back()), 4));
  }
  for (Value partRow : partRows) {
    Value chunksBefore = product24(b, partRow, arguments["row_chunks"]);
    Value element =
        b.add(b.mul(chunksBefore, b.i32(chunkElements)), row.lanes.firstElement(b, row.lanes.firstChunk));
    parts.chunks.push_back(loadChunk(row, arguments["partial"], b.zeroExtend(element)));
  }
  return parts;
}

void mergeAtOnce(const MergeRow &row, MergeCode code, unsigned count) {
  MergeEmitter &b = row.b;
  Value hasChunk = b.both(row.exists, b.less(row.lanes.firstChunk, row.arguments["row_chunks"]));
  // Lanes without a row would read another workgroup's row, which may be stored meanwhile.
  LaneParts loaded =
      b.branch(hasChunk, [&] { return loadParts(row, count); }, [&] { return LaneParts::none(row, count); });
  MergePlace place = findPlace(row, TokensAre::InSequences);
  MergeChunk chunk = {row.lanes.firstChunk, b.both(hasChunk, place.isWanted)};
  Value start = findResult(row, place);
  Value sink = loadSink(row);
  MergeStore store(row, place, start, loadScale(row));
  LaneParts parts = {CountedParts(row, code).lses(b.i32(0), 0, loaded.lses), loaded.chunks};
  MergeWeights weights(row, largest(row, parts.lses), sink);
  MergeSums sums = weights.add(parts, chunk, MergeSums::zero(row));
  Value sum = store.storeChunk(weights, sums, chunk);
  store.storeLse(weights, sum);
}

} // namespace sluice

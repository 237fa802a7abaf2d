//===- Merge.cpp - merging partial results of attention -------------------------------------------------===//
//
// A launch should take little longer than memory takes to answer. A few contiguous parts are merged at once:
// the arguments that their addresses depend on are in registers when a wave starts, and their rows are read
// without waiting for their LSEs, which say whether the parts count. Other parts are merged step by step, in
// three round trips to memory: the arguments, the LSEs of a row, and the rows of its parts that count. Either
// way lanes divide a row both by chunks of 8 elements and by parts: lanes with the same chunk are the row's
// slots, up to 16, and slot s of n has parts s, s + n and so on. A lane loads up to four parts before it
// waits for one of them. Then the slots' sums are added up, pair by pair. The largest LSE m, weights exp(LSE
// - m) and the place of the result are computed while the rows that they do not depend on are in flight.
// Instructions keep the order in which they are built here.
//
// Parts that do not count are not added, even if they contain NaN. Tokens that a sequence does not have, and
// sequences that are not to be merged, are not written. Step by step, only their LSEs are read.
//
// In a cascade the last parts are over keys that several sequences share, and a row has a place among all
// rows instead of one in its sequence. The arguments say which rows have which parts: LSEs of other parts are
// garbage. A cascade is always merged step by step, and never specially.
//
// The order in which parts are added depends only on their numbers and the row's width: more slots than
// parts, or more parts that do not count, only add zeros. So the bits do not depend on how many parts without
// a weight follow.
//
// Everything of a row is read before it is written: o may be one of the parts, and lse one of their LSEs. The
// wave that stores a chunk has read it from all parts. All waves of a row read its LSEs, so they meet at a
// barrier before one of them stores the result's.
//
// The pieces are values, each in the files of its name:
//
//   MergeArguments               the kernel's arguments
//   MergeLanes                   a lane's chunk, slot and row
//   MergeRow                     the row among those of the parts, and its place in the result
//   MergeParts                   LSEs and chunks of the lane's parts, and which parts count
//   MergeWeights                 weights, with the sink's, and sums
//   MergeStore                   a chunk of the result, and its LSE
//   MergeAtOnce, MergeStepByStep the ways, which compose the others
//
//===----------------------------------------------------------------------------------------------------===//
#include "cache_ops/MergeWays.h"

using namespace mlir;

namespace sluice {

/// Fewer parts in flight leave the registers of the other ways as many waves as without this one.
static void mergeSpecially(const MergeRow &row) {
  MergeEmitter &b = row.b;
  b.when(row.arguments.may(package::merge_specially_at_once),
         [&] { mergeAtOnce(row, MergeCode::Special, 1); });
  b.when(row.arguments.may(package::merge_specially), [&] { mergeStepByStep(row, MergeCode::Special, 2); });
}

void buildMerge(gpu::GPUFuncOp kernel, const CacheOpVariant &variant) {
  constexpr unsigned most = package::merge_parts_of_lane;
  MergeEmitter b(kernel);
  b.setInsertionPointToStart(&kernel.getBody().front());
  const Type partial = b.elementType(variant.from);
  const Type result = variant.to == "e4m3fnuz" ? Type(b.getI8Type()) : b.elementType(variant.to);
  const MergeArguments arguments(b, kernel);
  const MergeLanes lanes(b, arguments["lane_division"], arguments["row_chunks"], partial);
  const MergeRow row = findRow(b, arguments, lanes, partial, result);

  // Consecutive: LLVM would give branches of one condition a common end, which takes moves.
  b.when(arguments.may(package::merge_at_once), [&] { mergeAtOnce(row, MergeCode::Usual, 1); });
  b.when(arguments.may(package::merge_several_at_once), [&] { mergeAtOnce(row, MergeCode::Usual, most); });
  b.when(b.isFalse(arguments.may(package::merge_at_once | package::merge_several_at_once)), [&] {
    b.branch(
        arguments.may(package::merge_specially | package::merge_specially_at_once),
        [&] { mergeSpecially(row); }, [&] { mergeStepByStep(row, MergeCode::Usual, most); });
  });
}

} // namespace sluice

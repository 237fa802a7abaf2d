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
//===----------------------------------------------------------------------------------------------------===//
#include "attention/Fp8Math.h"
#include "cache_ops/CacheOpEmitter.h"
#include "cache_ops/MergeLanes.h"

#include "llvm/ADT/StringMap.h"
#include "llvm/Support/SaveAndRestore.h"

#include <limits>

namespace sluice {

using namespace mlir;

namespace {

constexpr unsigned chunkElements = package::cache_op_chunk_elements;
constexpr unsigned runElements = MergeLanes::runElements;
constexpr double negativeInfinity = -std::numeric_limits<double>::infinity();

class MergeBuilder {
public:
  MergeBuilder(gpu::GPUFuncOp kernel, const CacheOpVariant &variant)
      : b(kernel), kernel(kernel), partial(b.elementType(variant.from)),
        result(variant.to == "e4m3fnuz" ? Type(b.getI8Type()) : b.elementType(variant.to)) {
    b.setInsertionPointToStart(&kernel.getBody().front());
  }

  void build() {
    // Loads all arguments that are not in registers at once, to wait for memory once, and last one first:
    // code that uses the pointers at the front comes right after their load. Those of mergeSpecially only are
    // loaded there.
    for (auto [field, parameter] :
         llvm::reverse(llvm::zip_equal(package::merge_kernarg_fields, kernel.getArguments())))
      if (field.offset < package::merge_usual_bytes)
        arguments[field.name] = field.offset < package::merge_preloaded_bytes
                                    ? Value(parameter)
                                    : b.argument(StringRef(field.name.data(), field.name.size()));
    division = MergeLanes(b, argument("lane_division"), argument("row_chunks"), partial);
    Value above = b.mul(ROCDL::BlockIdYOp::create(b, b.getI32Type()), argument("row_step"));
    Value before = b.shiftLeft(ROCDL::BlockIdXOp::create(b, b.getI32Type()), division.rowsLog2);
    findRow(b.add(above, before));
    // Consecutive: LLVM would give branches of one condition a common end, which takes moves.
    b.when(may(package::merge_at_once), [&] { mergeAtOnce(1); });
    b.when(may(package::merge_several_at_once), [&] { mergeAtOnce(depth); });
    b.when(b.isFalse(may(package::merge_at_once | package::merge_several_at_once)), [&] {
      b.branch(
          may(package::merge_specially | package::merge_specially_at_once),
          [&] {
            mergeSpecially();
            return SmallVector<Value>();
          },
          [&] {
            mergeStepByStep();
            return SmallVector<Value>();
          });
    });
  }

private:
  Value argument(StringRef name) { return arguments.at(name); }
  Value may(uint32_t mode) {
    return b.isFalse(b.equal(b.bitAnd(b.opaqueScalar(argument("mode")), b.i32(mode)), b.i32(0)));
  }
  void findRow(Value first) {
    row = b.add(first, division.rowOfGroup);
    exists = b.lessUnsigned(row, argument("rows"));
    row = b.select(exists, row, b.i32(0));
  }

  CacheOpEmitter::Division byHeads() {
    return b.divide(row, argument("heads"), argument("heads_magic"), argument("heads_shift"));
  }
  CacheOpEmitter::Division byTokens(Value token) {
    return b.divide(token, argument("tokens"), argument("tokens_magic"), argument("tokens_shift"));
  }

  Value loadOfSequence(Value numbers, Value sequence, unsigned after) {
    Value index = b.add(b.zeroExtend(sequence), b.i64(after));
    return b.load(b.getI32Type(), numbers, index, 4);
  }

  /// In a cascade, whether the sequence of a token has to be searched ...
  Value isSearched() { return b.less(b.i32(0), b.opaqueScalar(argument("searched_batch"))); }
  /// ... which is the last one that starts at or before it, or any if none does.
  Value searchSequence(Value token) {
    Value batch = argument("searched_batch");
    Value steps = b.sub(b.i32(32), b.leadingZeros(b.add(batch, b.i32(1))));
    Value count = b.countStarts(argument("q_starts"), batch, steps, token);
    return b.clamp(b.sub(count, b.i32(1)), b.i32(0), b.sub(batch, b.i32(1)));
  }

  enum class Rows { ofSequences, ofCascade };

  /// Whether the row's sequence has such a token and should be merged; its sequence; its token in the result;
  /// and whether the sequence has more than max_tokens.
  SmallVector<Value> findToken(Rows rows) {
    Value token = byHeads().quotient;
    CacheOpEmitter::Division place = byTokens(token);
    Value starts = argument("q_starts"), lengths = argument("q_lengths");
    SmallVector<Value> found = b.branch(
        b.isNull(starts),
        [&] { return SmallVector<Value>{place.quotient, place.rest, b.i32(0), argument("most_tokens")}; },
        [&] {
          Value sequence = place.quotient, tokenOfSequence = place.rest;
          if (rows == Rows::ofCascade)
            sequence = b.branch(
                isSearched(), [&] { return SmallVector<Value>{searchSequence(token)}; },
                [&] { return SmallVector<Value>{place.quotient}; })[0];
          Value end = argument("q_rows");
          Value start = b.clamp(loadOfSequence(starts, sequence, 0), b.i32(0), end);
          Value next = b.clamp(loadOfSequence(starts, sequence, 1), start, end);
          // As an unsigned number it is too large if the search found no sequence.
          if (rows == Rows::ofCascade)
            tokenOfSequence = b.select(isSearched(), b.sub(token, start), place.rest);
          return SmallVector<Value>{sequence, tokenOfSequence, start,
                                    b.minS(b.sub(next, start), argument("most_tokens"))};
        });
    Value sequence = found[0], tokenOfSequence = found[1], start = found[2];
    Value tokens = b.branch(
        b.isNull(lengths), [&] { return SmallVector<Value>{found[3]}; },
        // Only lanes that load it wait for it, and not for the LSEs of all others.
        [&] {
          Value given = b.opaque(loadOfSequence(lengths, sequence, 0));
          return SmallVector<Value>{b.clamp(given, b.i32(0), found[3])};
        })[0];
    Value isLong = b.less(argument("max_tokens"), tokens), isSkipped = isLong;
    if (rows == Rows::ofCascade) isSkipped = b.both(isLong, b.isNull(argument("prefix_starts")));
    Value has = b.both(b.lessUnsigned(tokenOfSequence, tokens), b.isFalse(isSkipped));
    return {b.both(exists, has), sequence, b.add(start, tokenOfSequence), isLong};
  }

  /// Finds whether the row is wanted, and its place in the result.
  void findResult(Rows rows) {
    SmallVector<Value> found = b.branch(
        may(package::merge_to_plain_rows),
        [&] {
          Value isLong = b.less(argument("max_tokens"), argument("most_tokens"));
          return SmallVector<Value>{exists, b.i32(0), b.i32(0), isLong};
        },
        [&] { return findToken(rows); });
    wanted = found[0];
    sequence = found[1];
    outputToken = found[2];
    isLong = found[3];
  }

  /// Finds whether the row sees a prefix, and so has parts over its keys.
  void findPrefix() {
    Value prefixes = argument("prefix_starts");
    seesPrefix = b.branch(
        b.isNull(prefixes), [&] { return SmallVector<Value>{b.boolean(false)}; },
        [&] {
          Value token = byHeads().quotient;
          Value first = loadOfSequence(prefixes, b.i32(0), 0);
          Value end = loadOfSequence(prefixes, argument("prefix_count"), 0);
          return SmallVector<Value>{b.both(b.isFalse(b.less(token, first)), b.less(token, end))};
        })[0];
  }

  /// Whether a row has this part.
  Value hasPart(Value part) {
    Value isOwn = b.less(part, b.select(isLong, b.i32(1), argument("own_parts")));
    Value isOfPrefix = b.both(seesPrefix, b.isFalse(b.less(part, argument("first_prefix_part"))));
    return b.either(isOwn, isOfPrefix);
  }

  /// An index of a row, and the name of the argument that is its stride.
  struct Step {
    Value index;
    StringRef stride;
  };
  /// Indices have 32 bits and strides 64. The products are summed piece by piece, which costs less than
  /// adding whole products, or than adding them one by one to a pointer; `opaque` keeps LLVM from doing that.
  Value advanceBy(StringRef tensor, Type type, ArrayRef<Step> steps) {
    Value low = b.i64(0), high = b.i32(0);
    for (const Step &step : steps) {
      Value stride = argument((tensor + step.stride).str());
      low = b.add(low, b.mul(b.zeroExtend(step.index), b.zeroExtend(b.truncateInteger(stride))));
      high = b.add(high, b.mul(step.index, b.truncateInteger(b.shiftRight(stride, b.i64(32)))));
    }
    Value offset = b.add(low, b.shiftLeft(b.zeroExtend(high), b.i64(32)));
    return b.advance(argument(tensor), type, b.opaque(offset));
  }

  /// The first element of the row in the lane's first part, or in part 0 if it has no part or parts are
  /// listed.
  Value rowOf(StringRef tensor, Type type) {
    CacheOpEmitter::Division place = byHeads();
    Value hasPart = isPresent(b.i32(0));
    if (isSpecial) hasPart = b.both(hasPart, b.isFalse(may(package::merge_listed_parts)));
    Value part = b.select(hasPart, division.slot, b.i32(0));
    return advanceBy(
        tensor, type,
        {{part, "_part_stride"}, {place.quotient, "_token_stride"}, {place.rest, "_head_stride"}});
  }
  Value rowOfLses() {
    Value row = rowOf("partial_lse", b.getF32Type());
    if (!isSpecial) return row;
    return b.branch(
        may(package::merge_lse_sequences),
        [&] {
          Value sequence = b.zeroExtend(byTokens(byHeads().quotient).quotient);
          Value skipped = b.mul(sequence, b.argument("partial_lse_sequence_skip"));
          return SmallVector<Value>{b.advance(row, b.getF32Type(), skipped)};
        },
        [&] { return SmallVector<Value>{row}; })[0];
  }
  /// The first element of the row in a tensor of the result, whose rows have `width` elements.
  Value outputRowOf(StringRef tensor, Type type, Value width) {
    return b.branch(
        may(package::merge_to_plain_rows),
        [&] {
          Value element = b.mul(b.zeroExtend(row), b.zeroExtend(width));
          return SmallVector<Value>{b.advance(argument(tensor), type, element)};
        },
        [&] {
          return SmallVector<Value>{advanceBy(tensor, type,
                                              {{sequence, "_batch_stride"},
                                               {outputToken, "_token_stride"},
                                               {byHeads().rest, "_head_stride"}})};
        })[0];
  }
  Value outputRow() { return outputRowOf("o", result, b.mul(argument("row_chunks"), b.i32(chunkElements))); }

  /// For numbers known to fit in 24 bits, as those of few rows do.
  Value product24(Value x, Value y) {
    Value mask = b.i32(0xffffff);
    return b.mul(b.bitAnd(x, mask), b.bitAnd(y, mask));
  }

  Value loadChunk(Value pointer, Value element) {
    if (!partial.isF32()) return b.load(b.chunkOf(partial), pointer, element, 16);
    auto run = VectorType::get(runElements, partial);
    Value first = b.load(run, pointer, element, 16);
    Value second = b.load(run, pointer, b.add(element, b.zeroExtend(division.toSecondRun)), 16);
    return vector::ShuffleOp::create(b, first, second, ArrayRef<int64_t>{0, 1, 2, 3, 4, 5, 6, 7});
  }

  /// Merges contiguous rows, with `count` parts in each lane: all their reads are in flight before anything
  /// is waited for.
  void mergeAtOnce(unsigned count) {
    Value mine = b.both(exists, b.less(division.firstChunk, argument("row_chunks")));
    // Lanes without a row would read another workgroup's row, which may be stored meanwhile.
    SmallVector<Value> loaded = b.branch(
        mine,
        [&] {
          SmallVector<Value> values, rows;
          for (unsigned i = 0; i < count; ++i) {
            Value part = partBeforeSlot(b.i32(0), i);
            part = b.select(isPresent(part), b.add(division.slot, part), b.i32(0));
            rows.push_back(b.add(product24(part, argument("rows")), row));
            values.push_back(b.load(b.getF32Type(), argument("partial_lse"), b.zeroExtend(rows[i]), 4));
          }
          for (Value ofPart : rows) {
            Value chunksBefore = product24(ofPart, argument("row_chunks"));
            Value element = b.add(b.mul(chunksBefore, b.i32(chunkElements)),
                                  division.firstElement(b, division.firstChunk));
            values.push_back(loadChunk(argument("partial"), b.zeroExtend(element)));
          }
          return values;
        },
        [&] {
          SmallVector<Value> values(count, b.f32(negativeInfinity));
          values.append(count, b.undef(b.chunkOf(partial)));
          return values;
        });
    findResult(Rows::ofSequences);
    matters = b.both(mine, wanted);
    Value outputs = outputRow();
    sink = loadSink();
    loadScale();
    SmallVector<Value> lses = withoutAbsent(b.i32(0), 0, ArrayRef(loaded).take_front(count));
    findOffset(largest(lses));
    SmallVector<Value> sums = addParts(lses, ArrayRef(loaded).drop_front(count), noSums());
    storeLse(storeChunk(sums, division.firstChunk, outputs));
  }

  void mergeStepByStep() {
    lses = rowOfLses();
    SmallVector<Value> loaded = loadFirstLses();
    Value rows = rowOf("partial", partial);
    sink = loadSink();
    loadScale();
    findResult(isSpecial ? Rows::ofSequences : Rows::ofCascade);
    if (!isSpecial) findPrefix();
    Value outputs = outputRow();

    Value sum = mergeChunk(loaded, division.firstChunk, rows, outputs), offsetOfSum = offset;
    // In a separate loop: LLVM computes loop invariants before a loop, at the point where rows should be
    // read. Keeping them takes registers, and long rows hide latency with their lanes.
    llvm::SaveAndRestore shallow(depth, 2u);
    Value lanes = b.shiftLeft(b.i32(1), division.lanesLog2), end = argument("row_chunks");
    b.loop(lanes, end, lanes, {}, [&](Value before, ValueRange) {
      mergeChunk(loadFirstLses(), b.add(before, division.firstChunk), rows, outputs);
      return SmallVector<Value>();
    });
    offset = offsetOfSum; // not that of the loop
    storeLse(sum);
  }

  /// With code of its own, which asks for the bits after merge_specially. Fewer parts in flight leave the
  /// registers of the other ways as many waves as without this one.
  void mergeSpecially() {
    llvm::SaveAndRestore special(isSpecial, true);
    llvm::SaveAndRestore shallow(depth, 2u);
    b.when(may(package::merge_specially_at_once), [&] { mergeAtOnce(1); });
    b.when(may(package::merge_specially), [&] { mergeStepByStep(); });
  }

  /// The row's first lane stores it, when all have read the LSEs of the parts.
  void storeLse(Value sum) {
    b.when(b.isFalse(b.isNull(argument("lse"))), [&] {
      ROCDL::SBarrierOp::create(b);
      b.when(b.both(wanted, b.both(b.equal(division.firstChunk, b.i32(0)), b.equal(division.slot, b.i32(0)))),
             [&] {
               // The sink has no limit here.
               Value lse = b.fma(b.log2(sum), argument("unit_per_log2"), b.maxF(offset, sink));
               b.store(lse, outputRowOf("lse", b.getF32Type(), b.i32(1)), b.i64(0), 4);
             });
    });
  }

  /// A sink acts as a part whose rows are 0.
  Value loadSink() {
    Value sinks = argument("sink_logits");
    return b.branch(
        b.isNull(sinks), [&] { return SmallVector<Value>{b.f32(negativeInfinity)}; },
        [&] {
          return SmallVector<Value>{b.mulF(b.load(b.getF32Type(), sinks, b.zeroExtend(byHeads().rest), 4),
                                           argument("unit_per_nat"))};
        })[0];
  }

  bool isFp8() const { return result.isInteger(8); }

  /// Finds what FP8 results are divided by, which is 1 without a scale.
  void loadScale() {
    if (!isFp8()) return;
    Value scales = argument("o_scale");
    SmallVector<Value> found = b.branch(
        b.isNull(scales), [&] { return SmallVector<Value>{b.f32(1), b.i32(0)}; },
        [&] {
          Value index = b.select(may(package::merge_o_scale_heads), byHeads().rest, b.i32(0));
          Value scale = b.load(b.getF32Type(), scales, b.zeroExtend(index), 4);
          Emitter::Divisor divisor = b.divisorOf(scale);
          return SmallVector<Value>{divisor.inverse, divisor.exponent};
        });
    scaleOfO = {found[0], found[1]};
  }

  Value rounded(ArrayRef<Value> elements) {
    if (isFp8()) return fp8::rounded(b, elements);
    Value wide = b.pack(VectorType::get(runElements, b.getF32Type()), elements);
    return result.isF32() ? wide : b.round(VectorType::get(runElements, result), wide);
  }

  /// The lane's parts are slot + first + i * slots, with `first` a multiple of depth * slots.
  Value partBeforeSlot(Value first, unsigned i) { return b.add(first, b.mul(division.slots, b.i32(i))); }

  // Comparisons are repeated rather than kept in registers of lanes: hence `opaqueScalar`, here and below.
  Value severalPerLane() { return b.less(b.opaqueScalar(division.slots), argument("parts")); }

  Value isPresent(Value part) { return b.less(b.add(division.slot, part), argument("parts")); }

  /// From rowOf(tensor) to the lane's parts number `begin` to `end` - 1; to any part for those past the last.
  SmallVector<Value> distancesOf(StringRef tensor, Value first, unsigned begin, unsigned end) {
    auto byStride = [&] {
      SmallVector<Value> distances;
      for (unsigned i = begin; i < end; ++i)
        distances.push_back(
            b.mul(b.zeroExtend(partBeforeSlot(first, i)), argument((tensor + "_part_stride").str())));
      return distances;
    };
    if (!isSpecial) return byStride();
    return b.branch(
        may(package::merge_listed_parts),
        [&] {
          SmallVector<Value> distances;
          const package::KernargField &list =
              *llvm::find_if(package::merge_kernarg_fields, [&](const package::KernargField &field) {
                return StringRef(field.name.data(), field.name.size()) == (tensor + "_distance_0").str();
              });
          Value start = b.advance(b.kernargSegment(), b.getI8Type(), b.i32(list.offset));
          for (unsigned i = begin; i < end; ++i) {
            Value part = partBeforeSlot(first, i);
            part = b.select(isPresent(part), b.add(division.slot, part), b.i32(0));
            distances.push_back(b.load(b.getI64Type(), start, b.zeroExtend(part), 8));
          }
          return distances;
        },
        byStride);
  }

  /// The LSEs of the lane's parts number `begin` to `end` - 1; undefined for those past the last part.
  SmallVector<Value> loadLses(Value first, unsigned begin, unsigned end) {
    SmallVector<Value> distances = distancesOf("partial_lse", first, begin, end), values;
    for (unsigned i = begin; i < end; ++i) {
      Value &distance = distances[i - begin];
      distance = b.select(isPresent(partBeforeSlot(first, i)), distance, b.i64(0));
    }
    // Lanes without a row would read another workgroup's row, which may store its LSE meanwhile.
    return b.branch(
        exists,
        [&] {
          for (Value distance : distances)
            values.push_back(b.load(b.getF32Type(), lses, distance, 4));
          return values;
        },
        [&] { return SmallVector<Value>(end - begin, b.f32(0)); });
  }

  /// The LSEs of the lane's first parts, as many as it handles at a time.
  SmallVector<Value> loadFirstLses() {
    SmallVector<Value> loaded = loadLses(b.i32(0), 0, 1);
    loaded.append(b.branch(
        severalPerLane(), [&] { return loadLses(b.i32(0), 1, depth); },
        [&] { return SmallVector<Value>(depth - 1, b.f32(0)); }));
    return loaded;
  }

  /// LSEs from number `begin` on, with -infinity for those past the last part, for those that mark empty
  /// parts, and for those that a row of a cascade does not have.
  SmallVector<Value> withoutAbsent(Value first, unsigned begin, ValueRange loaded) {
    Value empty = b.f32(negativeInfinity);
    if (isSpecial) empty = b.select(may(package::merge_infinity_is_empty), b.f32(-negativeInfinity), empty);
    SmallVector<Value> values;
    for (auto [i, lse] : llvm::enumerate(loaded)) {
      Value part = partBeforeSlot(first, begin + i), counted = isPresent(part);
      if (isSpecial)
        counted = b.both(counted, b.compareF(arith::CmpFPredicate::UNE, lse, empty));
      else if (seesPrefix)
        counted = b.both(counted, hasPart(b.add(division.slot, part)));
      values.push_back(b.select(counted, lse, b.f32(negativeInfinity)));
    }
    return values;
  }
  SmallVector<Value> nextLses(Value first) {
    SmallVector<Value> values = withoutAbsent(first, 0, loadLses(first, 0, depth));
    // Otherwise each would be waited for at its use, together with the rows that may have been loaded before.
    for (Value &lse : values)
      lse = b.opaque(lse);
    return values;
  }

  Value counts(Value lse) {
    return b.both(b.compareF(arith::CmpFPredicate::UNE, lse, b.f32(negativeInfinity)), matters);
  }

  /// Chunks of the same parts, as they are in memory; undefined for those that do not count.
  SmallVector<Value> loadChunks(Value first, unsigned begin, ValueRange ofLane) {
    SmallVector<Value> values;
    for (auto [lse, distance] :
         llvm::zip_equal(ofLane, distancesOf("partial", first, begin, begin + ofLane.size())))
      values.push_back(b.branch(
          counts(lse), [&, distance = distance] { return SmallVector<Value>{loadChunk(chunks, distance)}; },
          [&] { return SmallVector<Value>{b.undef(b.chunkOf(partial))}; })[0]);
    return values;
  }

  /// exp(lse - offset), or 0 if lse is -infinity.
  Value weight(Value lse) { return b.exp2(b.mulF(b.subF(lse, offset), argument("log2_per_unit"))); }

  SmallVector<Value> noSums() { return SmallVector<Value>(chunkElements + 1, b.f32(0)); }

  /// Sums of weighted elements, followed by the sum of weights, after adding more parts that count.
  SmallVector<Value> addParts(ValueRange ofLane, ValueRange chunks, ValueRange sums) {
    SmallVector<Value> after(sums);
    for (auto [lse, chunk] : llvm::zip_equal(ofLane, chunks)) {
      Value factor = weight(lse);
      after = b.branch(
          counts(lse),
          [&, chunk = chunk] {
            Value wide = partial.isF32() ? chunk : b.extend(b.chunkOf(b.getF32Type()), chunk);
            SmallVector<Value> more;
            for (unsigned e = 0; e < chunkElements; ++e)
              more.push_back(b.fma(factor, b.extract(wide, e), after[e]));
            more.push_back(b.addF(after.back(), factor));
            return more;
          },
          [&] { return after; });
    }
    return after;
  }

  /// Returns the largest LSE that is a number, and the sum of all exponentials relative to it.
  Value mergeChunk(ValueRange loaded, Value chunk, Value rows, Value outputs) {
    Value parts = argument("parts"), round = b.mul(division.slots, b.i32(depth));
    chunks = b.advance(rows, partial, b.zeroExtend(division.firstElement(b, chunk)));
    matters = b.both(wanted, b.less(chunk, argument("row_chunks")));
    SmallVector<Value> one = withoutAbsent(b.i32(0), 0, loaded.take_front());
    SmallVector<Value> chunksOfOne = loadChunks(b.i32(0), 0, one);
    SmallVector<Value> both = b.branch(
        severalPerLane(),
        [&] {
          SmallVector<Value> others = withoutAbsent(b.i32(0), 1, loaded.drop_front());
          others.append(loadChunks(b.i32(0), 1, others));
          return others;
        },
        [&] {
          SmallVector<Value> none(depth - 1, b.f32(negativeInfinity));
          none.append(depth - 1, b.undef(b.chunkOf(partial)));
          return none;
        });
    auto others = ArrayRef(both).take_front(depth - 1);
    auto chunksOfOthers = ArrayRef(both).drop_front(depth - 1);

    Value maximum = largest(one);
    for (Value lse : others)
      maximum = b.maxF(maximum, lse);
    maximum = b.loop(round, parts, round, {maximum}, [&](Value first, ValueRange before) {
      return SmallVector<Value>{b.maxF(before[0], largest(nextLses(first)))};
    })[0];
    findOffset(maximum);

    SmallVector<Value> sums = addParts(one, chunksOfOne, noSums());
    sums = b.branch(
        severalPerLane(), [&] { return addParts(others, chunksOfOthers, sums); }, [&] { return sums; });
    sums = b.loop(round, parts, round, sums, [&](Value first, ValueRange before) {
      SmallVector<Value> more = nextLses(first);
      return addParts(more, loadChunks(first, 0, more), before);
    });
    return storeChunk(sums, chunk, outputs);
  }

  Value largest(ValueRange ofLane) {
    Value most = ofLane[0];
    for (Value lse : ofLane.drop_front())
      most = b.maxF(most, lse);
    return most;
  }

  /// The largest number in place of a sink that is infinite, as large logits are in units of base 2: its
  /// distance to itself is then a number.
  Value limited(Value sink) { return b.minF(sink, b.f32(std::numeric_limits<float>::max())); }

  /// Sets the offset that exponents are relative to: the largest LSE that is a number, of all slots and the
  /// sink.
  void findOffset(Value ofLane) {
    Value maximum = division.join(b, ofLane, [&](Value x, Value y) { return b.maxF(x, y); })[0];
    // NaN is never a maximum, and +infinity is not a number.
    maximum = b.maxF(b.maxF(maximum, limited(sink)), b.f32(negativeInfinity));
    // If no part counts, exponents are relative to 0, which gives 0; relative to -infinity they would be NaN.
    offset = b.select(b.equalF(maximum, b.f32(negativeInfinity)), b.f32(0), maximum);
  }

  /// Stores the chunk of a lane's sums with those of all slots, and returns the sum of all exponentials.
  Value storeChunk(ValueRange ofLane, Value chunk, Value outputs) {
    SmallVector<Value> sums = division.join(b, ofLane, [&](Value x, Value y) { return b.addF(x, y); });
    Value sum = b.addF(sums.pop_back_val(), weight(limited(sink)));
    Value inverse = b.select(b.equalF(sum, b.f32(0)), b.f32(0), b.reciprocal(sum));
    if (isFp8()) inverse = b.mulF(inverse, scaleOfO.inverse);
    Value element = division.firstElement(b, chunk);
    // Two slots store a run each; all slots have both runs.
    auto storeRun = [&](Value stores, ValueRange run, Value begin) {
      b.when(b.both(matters, stores), [&] {
        SmallVector<Value> elements;
        for (Value value : run) {
          value = b.mulF(value, inverse);
          elements.push_back(isFp8() ? b.timesPowerOf2(value, scaleOfO.exponent) : value);
        }
        b.store(rounded(elements), outputs, b.zeroExtend(begin),
                runElements * result.getIntOrFloatBitWidth() / 8);
      });
    };
    ValueRange low = ValueRange(sums).take_front(runElements),
               high = ValueRange(sums).drop_front(runElements);
    Value isFirst = b.equal(division.slot, b.i32(0)), afterFirst = b.add(element, division.toSecondRun);
    b.branch(
        b.less(b.i32(0), b.opaqueScalar(division.slotsLog2)),
        [&] {
          SmallVector<Value> mine;
          for (auto [x, y] : llvm::zip_equal(low, high))
            mine.push_back(b.select(isFirst, x, y));
          storeRun(b.lessUnsigned(division.slot, b.i32(2)), mine, b.select(isFirst, element, afterFirst));
          return SmallVector<Value>();
        },
        [&] {
          storeRun(isFirst, low, element);
          storeRun(isFirst, high, afterFirst);
          return SmallVector<Value>();
        });
    return sum;
  }

  CacheOpEmitterOf<package::merge_kernarg_fields> b;
  gpu::GPUFuncOp kernel;
  Type partial, result;
  unsigned depth = package::merge_parts_of_lane;
  bool isSpecial = false; // whether the code is for merge_specially or merge_specially_at_once
  llvm::StringMap<Value> arguments;
  MergeLanes division;
  Value row, sequence, outputToken;
  Value isLong, seesPrefix;  // i1; the latter only of a row that is merged step by step, but not specially
  Value exists;              // the row ...
  Value wanted;              // ... and its sequence is merged
  Value lses, chunks;        // of the lane's first part
  Value matters;             // whether the chunk is stored
  Value sink;                // in the LSEs' unit; -infinity without one
  Value offset;              // exponents are (LSE - offset) * log2_per_unit
  Emitter::Divisor scaleOfO; // of FP8 results
};

} // namespace

void buildMerge(gpu::GPUFuncOp kernel, const CacheOpVariant &variant) {
  MergeBuilder(kernel, variant).build();
}

} // namespace sluice

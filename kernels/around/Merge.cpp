//===- Merge.cpp - results of attention over parts of the keys become one -------------------------------===//
//
// A launch is to take little longer than memory takes to answer three times: with the arguments, with the
// LSEs of a row, and with its parts. So lanes divide a row both by chunks of 8 elements and by parts: lanes
// with the same chunk are the row's slots, up to 16, and slot s of n has parts s, s + n and so on. A lane
// loads up to four parts before it waits for one of them. Then the slots' sums are added up, pair by pair.
// The largest LSE m, weights exp(LSE - m) and the place of the result are computed while the rows that they
// do not depend on are on their way. Instructions keep the order in which they are built here.
//
// Parts that do not count are not read, which is why rows wait for LSEs. Tokens that a sequence does not
// have, and sequences that are not to be merged, are not read either, nor written; only their LSEs are,
// before it is known that they do not matter.
//
// The order in which parts are added follows from their numbers and the row's width: with more slots than
// parts, or with more parts that do not count, only zeros are added. So bits do not depend on how many parts
// without a weight follow.
//
// Everything of a row is read before it is written: o may be one of the parts, and lse one of their LSEs.
// The wave that stores a chunk has read it from all parts. The LSEs of a row are read by all of its waves,
// which therefore meet at a barrier before one of them stores the result's.
//
//===----------------------------------------------------------------------------------------------------===//
#include "around/AroundEmitter.h"

#include "llvm/ADT/StringMap.h"

#include <limits>

namespace sluice {

using namespace mlir;

namespace {

constexpr unsigned chunkElements = package::around_chunk_elements;
constexpr unsigned waveLanes = 64;
constexpr double negativeInfinity = -std::numeric_limits<double>::infinity();

class MergeBuilder {
public:
  MergeBuilder(gpu::GPUFuncOp kernel, const AroundVariant &variant)
      : b(kernel), partial(b.elementType(variant.from)), result(b.elementType(variant.to)) {
    b.setInsertionPointToStart(&kernel.getBody().front());
  }

  void build() {
    // All at once, to wait for memory once, and from the last on: code that uses the pointers at the front
    // comes right after their load.
    for (const package::KernargField &field : llvm::reverse(package::merge_kernarg_fields))
      arguments[field.name] = b.argument(StringRef(field.name.data(), field.name.size()));
    findPlace();
    Value above = b.mul(ROCDL::BlockIdYOp::create(b, b.getI32Type()), argument("row_step"));
    Value before = b.shiftLeft(ROCDL::BlockIdXOp::create(b, b.getI32Type()), argument("groups_log2"));
    mergeRows(b.add(above, before));
  }

private:
  Value argument(StringRef name) { return arguments.at(name); }
  Value lowBits(Value number, Value bits) {
    return b.bitAnd(number, b.sub(b.shiftLeft(b.i32(1), bits), b.i32(1)));
  }

  /// Which chunk, part and row of those that the workgroup has at a time are the lane's.
  void findPlace() {
    Value thread = ROCDL::ThreadIdXOp::create(b, b.getI32Type());
    Value place = argument("slot_place"), slotsLog2 = argument("slots_log2");
    lane = b.bitAnd(thread, b.i32(waveLanes - 1));
    slots = b.shiftLeft(b.i32(1), slotsLog2);
    slot = lowBits(b.shiftRight(thread, place), slotsLog2);
    Value above = b.shiftRight(thread, b.add(place, slotsLog2));
    Value unit = b.bitOr(lowBits(thread, place), b.shiftLeft(above, place));
    firstChunk = lowBits(unit, argument("lanes_log2"));
    rowOfGroup = b.shiftRight(unit, argument("lanes_log2"));
  }

  void findRow(Value row) {
    AroundEmitter::Division place =
        b.divide(row, argument("heads"), argument("heads_magic"), argument("heads_shift"));
    AroundEmitter::Division ofSequence =
        b.divide(place.quotient, argument("tokens"), argument("tokens_magic"), argument("tokens_shift"));
    head = place.rest;
    token = place.quotient;
    sequence = ofSequence.quotient;
    tokenOfSequence = ofSequence.rest;
  }

  Value loadOfSequence(Value numbers, unsigned after) {
    Value index = b.add(b.zeroExtend(sequence), b.i64(after));
    return b.load(b.getI32Type(), numbers, index, 4);
  }

  /// Whether the row's sequence has such a token, and is to be merged; also finds where its tokens begin.
  Value isWanted() {
    Value starts = argument("q_starts"), lengths = argument("q_lengths");
    SmallVector<Value> place = b.branch(
        b.isNull(starts), [&] { return SmallVector<Value>{b.i32(0), argument("tokens")}; },
        [&] {
          Value start = loadOfSequence(starts, 0);
          Value end = loadOfSequence(starts, 1);
          return SmallVector<Value>{start, b.sub(end, start)};
        });
    Value tokens = b.branch(
        b.isNull(lengths), [&] { return SmallVector<Value>{place[1]}; },
        // The wait for it is for those who load it, and not for the LSEs of all others.
        [&] { return SmallVector<Value>{b.opaque(loadOfSequence(lengths, 0))}; })[0];
    outputToken = b.add(place[0], tokenOfSequence);
    return b.both(b.less(tokenOfSequence, tokens), b.isFalse(b.less(argument("max_tokens"), tokens)));
  }

  /// An index of a row, and by what the argument of that name multiplies it.
  struct Step {
    Value index;
    StringRef stride;
  };
  /// Factors have 32 bits and strides 64. The products are added as they come, which costs less than adding
  /// whole products, and one by one to a pointer; `opaque` keeps LLVM from that.
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

  /// The first element of the row in the lane's first part, or in part 0 if it has none.
  Value rowOf(StringRef tensor, Type type) {
    Value part = b.select(isPresent(b.i32(0)), slot, b.i32(0));
    return advanceBy(tensor, type,
                     {{part, "_part_stride"}, {token, "_token_stride"}, {head, "_head_stride"}});
  }
  /// The first element of the row in a tensor of the result.
  Value outputRowOf(StringRef tensor, Type type) {
    return advanceBy(tensor, type,
                     {{sequence, "_batch_stride"}, {outputToken, "_token_stride"}, {head, "_head_stride"}});
  }

  void mergeRows(Value first) {
    Value row = b.add(first, rowOfGroup);
    exists = b.lessUnsigned(row, argument("rows"));
    findRow(b.select(exists, row, b.i32(0)));
    lses = rowOf("partial_lse", b.getF32Type());
    SmallVector<Value> loaded = loadFirstLses();
    Value rows = rowOf("partial", partial), sink = loadSink();
    wanted = b.both(exists, isWanted());
    Value outputs = outputRowOf("o", result);

    SmallVector<Value> merged = mergeChunk(loaded, sink, firstChunk, rows, outputs);
    // In a loop of its own: LLVM computes what does not change in a loop before it, when rows should be read.
    // Keeping that takes registers, and long rows hide latency with their lanes.
    depth = 2;
    Value lanes = b.shiftLeft(b.i32(1), argument("lanes_log2")), end = argument("row_chunks");
    b.loop(lanes, end, lanes, {}, [&](Value before, ValueRange) {
      mergeChunk(loadFirstLses(), sink, b.add(before, firstChunk), rows, outputs);
      return SmallVector<Value>();
    });
    b.when(b.isFalse(b.isNull(argument("lse"))), [&] {
      ROCDL::SBarrierOp::create(b);
      b.when(b.both(wanted, b.both(b.equal(firstChunk, b.i32(0)), b.equal(slot, b.i32(0)))), [&] {
        Value lse = b.fma(b.log2(merged[1]), argument("unit_per_log2"), merged[0]);
        b.store(lse, outputRowOf("lse", b.getF32Type()), b.i64(0), 4);
      });
    });
  }

  /// A sink is a part whose rows are 0.
  Value loadSink() {
    Value sinks = argument("sink_logits");
    return b.branch(
        b.isNull(sinks), [&] { return SmallVector<Value>{b.f32(negativeInfinity)}; },
        [&] {
          return SmallVector<Value>{
              b.mulF(b.load(b.getF32Type(), sinks, b.zeroExtend(head), 4), argument("unit_per_nat"))};
        })[0];
  }

  /// The lane's parts are slot + first + i * slots, with `first` a multiple of depth * slots.
  Value partBeforeSlot(Value first, unsigned i) { return b.add(first, b.mul(slots, b.i32(i))); }

  // What is compared again is not kept in registers of lanes: hence `opaqueScalar`, here and below.
  Value severalPerLane() { return b.less(b.opaqueScalar(slots), argument("parts")); }

  Value isPresent(Value part) { return b.less(b.add(slot, part), argument("parts")); }

  /// LSEs of the lane's parts from the begin-th to the one before the end-th; anything for those past the
  /// end.
  SmallVector<Value> loadLses(Value first, unsigned begin, unsigned end) {
    SmallVector<Value> distances, values;
    for (unsigned i = begin; i < end; ++i) {
      Value part = partBeforeSlot(first, i);
      Value distance = b.mul(b.zeroExtend(part), argument("partial_lse_part_stride"));
      distances.push_back(b.select(isPresent(part), distance, b.i64(0)));
    }
    // Lanes without a row would read that of another workgroup, which may store its LSE meanwhile.
    return b.branch(
        exists,
        [&] {
          for (Value distance : distances)
            values.push_back(b.load(b.getF32Type(), lses, distance, 4));
          return values;
        },
        [&] { return SmallVector<Value>(end - begin, b.f32(0)); });
  }

  /// Of the first parts of the lane, as many as it has at a time.
  SmallVector<Value> loadFirstLses() {
    SmallVector<Value> loaded = loadLses(b.i32(0), 0, 1);
    loaded.append(b.branch(
        severalPerLane(), [&] { return loadLses(b.i32(0), 1, depth); },
        [&] { return SmallVector<Value>(depth - 1, b.f32(0)); }));
    return loaded;
  }

  /// LSEs from the begin-th on, with -infinity for those past the end.
  SmallVector<Value> withoutAbsent(Value first, unsigned begin, ValueRange loaded) {
    SmallVector<Value> values;
    for (auto [i, lse] : llvm::enumerate(loaded))
      values.push_back(b.select(isPresent(partBeforeSlot(first, begin + i)), lse, b.f32(negativeInfinity)));
    return values;
  }
  SmallVector<Value> nextLses(Value first) {
    SmallVector<Value> values = withoutAbsent(first, 0, loadLses(first, 0, depth));
    // Each where it is used would be waited for there, and with it the rows that may have been loaded before.
    for (Value &lse : values)
      lse = b.opaque(lse);
    return values;
  }

  /// Chunks of the same parts, as they are in memory; 0 of those that do not count.
  SmallVector<Value> loadChunks(Value first, unsigned begin, ValueRange ofLane) {
    Type type = b.chunkOf(partial);
    SmallVector<Value> values;
    for (auto [i, lse] : llvm::enumerate(ofLane)) {
      Value part = partBeforeSlot(first, begin + i);
      Value distance = b.mul(b.zeroExtend(part), argument("partial_part_stride"));
      Value counts = b.compareF(arith::CmpFPredicate::UNE, lse, b.f32(negativeInfinity));
      counts = b.both(counts, matters);
      values.push_back(b.branch(
          counts, [&] { return SmallVector<Value>{b.load(type, chunks, distance, 16)}; },
          [&] { return SmallVector<Value>{arith::ConstantOp::create(b, b.getZeroAttr(type))}; })[0]);
    }
    return values;
  }

  /// exp(lse - offset), or 0 if lse is -infinity.
  Value weight(Value lse) { return b.exp2(b.mulF(b.subF(lse, offset), argument("log2_per_unit"))); }

  /// Sums of weighted elements, and behind them of weights, with those of more parts.
  SmallVector<Value> addParts(ValueRange ofLane, ValueRange chunks, ValueRange sums) {
    SmallVector<Value> after(sums);
    for (auto [lse, chunk] : llvm::zip_equal(ofLane, chunks)) {
      Value factor = weight(lse);
      Value wide = partial.isF32() ? chunk : b.extend(b.chunkOf(b.getF32Type()), chunk);
      for (unsigned e = 0; e < chunkElements; ++e)
        after[e] = b.fma(factor, b.extract(wide, e), after[e]);
      after.back() = b.addF(after.back(), factor);
    }
    return after;
  }

  using Join = llvm::function_ref<Value(Value, Value)>;

  /// Joins the slots' values: all slots get the same result. More slots than there are parts join the same
  /// pairs, and some with 0.
  SmallVector<Value> joinSlots(ValueRange values, Join join, unsigned step = 0) {
    if (step == package::merge_most_slots_log2) return SmallVector<Value>(values);
    return b.branch(
        b.less(b.i32(step), b.opaqueScalar(argument("slots_log2"))),
        [&] {
          SmallVector<Value> joined;
          for (Value value : values)
            joined.push_back(fromOtherSlot(value, step));
          for (auto [value, other] : llvm::zip_equal(joined, values))
            value = join(value, other);
          return joinSlots(joined, join, step + 1);
        },
        [&] { return SmallVector<Value>(values); });
  }

  /// Of the lane whose number differs in bit 3, 2, 4 or 5. Where the first step has made equal what differs
  /// in bit 3, rotating by 4 leads to the same value as changing bit 2.
  Value fromOtherSlot(Value value, unsigned step) {
    if (step < 2) return b.rotateRow(value, step == 0 ? 8 : 4);
    return b.fromLane(value, lane, 4u << step);
  }

  /// Returns the largest LSE that is a number, and the sum of all exponentials relative to it.
  SmallVector<Value> mergeChunk(ValueRange loaded, Value sink, Value chunk, Value rows, Value outputs) {
    Value parts = argument("parts"), round = b.mul(slots, b.i32(depth));
    Value element = b.zeroExtend(b.mul(chunk, b.i32(chunkElements)));
    chunks = b.advance(rows, partial, element);
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

    Value maximum = one[0];
    for (Value lse : others)
      maximum = b.maxF(maximum, lse);
    maximum = b.loop(round, parts, round, {maximum}, [&](Value first, ValueRange before) {
      Value most = before[0];
      for (Value lse : nextLses(first))
        most = b.maxF(most, lse);
      return SmallVector<Value>{most};
    })[0];
    maximum = joinSlots(maximum, [&](Value x, Value y) { return b.maxF(x, y); })[0];
    // A NaN alone is no maximum, and +infinity is no number.
    maximum = b.maxF(b.maxF(maximum, sink), b.f32(negativeInfinity));
    // No part counts: exponents relative to 0 are 0, relative to -infinity they would be NaN.
    offset = b.select(b.equalF(maximum, b.f32(negativeInfinity)), b.f32(0), maximum);

    SmallVector<Value> sums(chunkElements + 1, b.f32(0));
    sums = addParts(one, chunksOfOne, sums);
    sums = b.branch(
        severalPerLane(), [&] { return addParts(others, chunksOfOthers, sums); }, [&] { return sums; });
    sums = b.loop(round, parts, round, sums, [&](Value first, ValueRange before) {
      SmallVector<Value> more = nextLses(first);
      return addParts(more, loadChunks(first, 0, more), before);
    });
    sums = joinSlots(sums, [&](Value x, Value y) { return b.addF(x, y); });

    Value sum = b.addF(sums.pop_back_val(), weight(sink));
    Value inverse = b.select(b.equalF(sum, b.f32(0)), b.f32(0), b.reciprocal(sum));
    b.when(b.both(matters, b.equal(slot, b.i32(0))), [&] {
      for (Value &value : sums)
        value = b.mulF(value, inverse);
      Value merged = b.pack(b.chunkOf(b.getF32Type()), sums);
      b.store(result.isF32() ? merged : b.round(b.chunkOf(result), merged), outputs, element, 16);
    });
    return {maximum, sum};
  }

  AroundEmitterOf<package::merge_kernarg_fields> b;
  Type partial, result;
  unsigned depth = 4; // of its parts that a lane has under way
  llvm::StringMap<Value> arguments;
  Value lane;                   // of the wave
  Value slots, slot;            // of a row, and which of them the lane is in
  Value firstChunk, rowOfGroup; // of the lane
  Value token, head;            // of the row, in the parts
  Value sequence, tokenOfSequence, outputToken;
  Value exists;       // the row ...
  Value wanted;       // ... and its sequence wants it
  Value lses, chunks; // of the lane's first part
  Value matters;      // the chunk
  Value offset;       // exponents are (LSE - offset) * log2_per_unit
};

} // namespace

void buildMerge(gpu::GPUFuncOp kernel, const AroundVariant &variant) {
  MergeBuilder(kernel, variant).build();
}

} // namespace sluice

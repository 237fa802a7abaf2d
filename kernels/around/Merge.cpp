//===- Merge.cpp - results of attention over parts of the keys become one -------------------------------===//
//
// A group of 2^lanes_log2 lanes of one wave has one row, that is a token and a head; a lane has chunks of 8
// elements of it. All lanes first go over the row's LSEs, for their maximum m and the sum of exp(LSE - m),
// then over its parts, for the sum of exp(LSE - m) * part; parts that do not count are not read. Four parts
// are under way at a time.
//
// In the parts all sequences have the same number of tokens. Tokens that a sequence does not have, and
// sequences that are not to be merged, are not read either, nor written.
//
// Everything of a row is read by the wave that writes it, before it writes it: o may be one of the parts, and
// lse one of their LSEs.
//
//===----------------------------------------------------------------------------------------------------===//
#include "around/AroundEmitter.h"

#include <limits>

namespace sluice {

using namespace mlir;

namespace {

constexpr unsigned chunkElements = package::around_chunk_elements;
constexpr unsigned partsAtATime = 4;
constexpr double negativeInfinity = -std::numeric_limits<double>::infinity();

class MergeBuilder {
public:
  MergeBuilder(gpu::GPUFuncOp kernel, const AroundVariant &variant)
      : b(kernel, kernargFields(variant)), partial(b.elementType(variant.from)),
        result(b.elementType(variant.to)) {
    b.setInsertionPointToStart(&kernel.getBody().front());
  }

  void build() {
    Value thread = ROCDL::ThreadIdXOp::create(b, b.getI32Type());
    Value lanesLog2 = b.argument("lanes_log2");
    lanes = b.shiftLeft(b.i32(1), lanesLog2);
    lane = b.bitAnd(thread, b.sub(lanes, b.i32(1)));
    Value firstRow =
        b.add(b.shiftLeft(ROCDL::BlockIdXOp::create(b, b.getI32Type()), b.argument("groups_log2")),
              b.shiftRight(thread, lanesLog2));
    b.loop(b.zeroExtend(firstRow), b.zeroExtend(b.argument("rows")), b.zeroExtend(b.argument("row_step")), {},
           [&](Value row, ValueRange) {
             findRow(b.truncateInteger(row));
             b.when(isWanted(), [&] { mergeRow(); });
             return SmallVector<Value>();
           });
  }

private:
  void findRow(Value row) {
    AroundEmitter::Division place =
        b.divide(row, b.argument("heads"), b.argument("heads_magic"), b.argument("heads_shift"));
    AroundEmitter::Division ofSequence = b.divide(place.quotient, b.argument("tokens"),
                                                  b.argument("tokens_magic"), b.argument("tokens_shift"));
    head = b.zeroExtend(place.rest);
    token = b.zeroExtend(place.quotient);
    sequence = b.zeroExtend(ofSequence.quotient);
    tokenOfSequence = ofSequence.rest;
  }

  Value loadOfSequence(Value numbers, Value index) { return b.load(b.getI32Type(), numbers, index, 4); }

  /// Whether the row's sequence has such a token, and is to be merged; also finds where its tokens begin.
  Value isWanted() {
    Value starts = b.argument("q_starts"), lengths = b.argument("q_lengths");
    SmallVector<Value> place = b.branch(
        b.isNull(starts), [&] { return SmallVector<Value>{b.i32(0), b.argument("tokens")}; },
        [&] {
          Value start = loadOfSequence(starts, sequence);
          Value end = loadOfSequence(starts, b.add(sequence, b.i64(1)));
          return SmallVector<Value>{start, b.sub(end, start)};
        });
    Value tokens = b.branch(
        b.isNull(lengths), [&] { return SmallVector<Value>{place[1]}; },
        [&] { return SmallVector<Value>{loadOfSequence(lengths, sequence)}; })[0];
    outputToken = b.add(b.zeroExtend(place[0]), b.zeroExtend(tokenOfSequence));
    return b.both(b.less(tokenOfSequence, tokens), b.isFalse(b.less(b.argument("max_tokens"), tokens)));
  }

  /// The first element of the row in a tensor of the parts, and in one of the result.
  Value rowOf(StringRef tensor, Type type) { return advanceTo(tensor, type, token, b.i64(0)); }
  Value outputRowOf(StringRef tensor, Type type) {
    Value batch = b.mul(sequence, b.argument((tensor + "_batch_stride").str()));
    return advanceTo(tensor, type, outputToken, batch);
  }
  Value advanceTo(StringRef tensor, Type type, Value token, Value before) {
    Value ofToken = b.mul(token, b.argument((tensor + "_token_stride").str()));
    Value ofHead = b.mul(head, b.argument((tensor + "_head_stride").str()));
    return b.advance(b.argument(tensor), type, b.add(before, b.add(ofToken, ofHead)));
  }

  void mergeRow() {
    lses = rowOf("partial_lse", b.getF32Type());
    log2PerUnit = b.argument("log2_per_unit");

    auto [maximum, sum] = sumOfLses();
    // No part counts: exponents relative to 0 are 0, relative to -infinity they would be NaN.
    Value none = b.equalF(maximum, b.f32(negativeInfinity));
    offset = b.select(none, b.f32(0), maximum);
    Value inverse = b.select(b.equalF(sum, b.f32(0)), b.f32(0), b.reciprocal(sum));

    Value rows = rowOf("partial", partial), outputs = outputRowOf("o", result);
    b.loop(lane, b.argument("row_chunks"), lanes, {}, [&](Value chunk, ValueRange) {
      Value element = b.zeroExtend(b.mul(chunk, b.i32(chunkElements)));
      b.store(mergeChunk(b.advance(rows, partial, element), inverse), outputs, element, 16);
      return SmallVector<Value>();
    });
    Value wanted = b.isFalse(b.isNull(b.argument("lse")));
    b.when(b.both(wanted, b.equal(lane, b.i32(0))), [&] {
      Value lse = b.fma(b.log2(sum), b.argument("unit_per_log2"), maximum);
      b.store(lse, outputRowOf("lse", b.getF32Type()), b.i64(0), 4);
    });
  }

  /// LSEs of parts `first` and following; -infinity for those past the end.
  SmallVector<Value> someLses(Value first) {
    Value parts = b.argument("parts"), stride = b.argument("partial_lse_part_stride");
    SmallVector<Value> values;
    for (unsigned i = 0; i < partsAtATime; ++i) {
      Value part = b.add(first, b.i32(i));
      Value read = b.minS(part, b.sub(parts, b.i32(1)));
      Value value = b.load(b.getF32Type(), lses, b.mul(b.zeroExtend(read), stride), 4);
      values.push_back(b.select(b.less(part, parts), value, b.f32(negativeInfinity)));
    }
    return values;
  }

  /// exp(lse - from), for a finite `from`, or -infinity if lse is.
  Value weight(Value lse, Value from) { return b.exp2(b.mulF(b.subF(lse, from), log2PerUnit)); }

  /// The maximum of all LSEs that are numbers, and the sum of all exponentials relative to it.
  std::pair<Value, Value> sumOfLses() {
    Value sinks = b.argument("sink_logits");
    // A sink is a part whose rows are 0.
    SmallVector<Value> initial = b.branch(
        b.isNull(sinks), [&] { return SmallVector<Value>{b.f32(negativeInfinity), b.f32(0)}; },
        [&] {
          Value sink = b.mulF(b.load(b.getF32Type(), sinks, head, 4), b.argument("unit_per_nat"));
          Value from = b.select(b.equalF(sink, b.f32(negativeInfinity)), b.f32(0), sink);
          return SmallVector<Value>{b.maxF(sink, b.f32(negativeInfinity)), weight(sink, from)};
        });
    SmallVector<Value> state = b.loop(b.i32(0), b.argument("parts"), b.i32(partsAtATime), initial,
                                      [&](Value first, ValueRange before) {
                                        SmallVector<Value> values = someLses(first);
                                        Value maximum = before[0];
                                        for (Value value : values)
                                          maximum = b.maxF(maximum, value);
                                        Value none = b.equalF(maximum, b.f32(negativeInfinity));
                                        Value from = b.select(none, b.f32(0), maximum);
                                        Value sum = b.mulF(before[1], weight(before[0], from));
                                        for (Value value : values)
                                          sum = b.addF(sum, weight(value, from));
                                        return SmallVector<Value>{maximum, sum};
                                      });
    return {state[0], state[1]};
  }

  Value mergeChunk(Value rows, Value inverse) {
    auto eightType = b.chunkOf(b.getF32Type());
    Value zero = arith::ConstantOp::create(b, DenseElementsAttr::get(eightType, 0.0f));
    SmallVector<Value> sums(chunkElements, b.f32(0));
    Value stride = b.argument("partial_part_stride");
    sums =
        b.loop(b.i32(0), b.argument("parts"), b.i32(partsAtATime), sums, [&](Value first, ValueRange before) {
          SmallVector<Value> values = someLses(first), chunks;
          for (auto [i, lse] : llvm::enumerate(values)) {
            Value part = b.zeroExtend(b.add(first, b.i32(i)));
            Value counts = b.compareF(arith::CmpFPredicate::UNE, lse, b.f32(negativeInfinity));
            chunks.push_back(b.branch(
                counts,
                [&] {
                  Value chunk = b.load(b.chunkOf(partial), rows, b.mul(part, stride), 16);
                  return SmallVector<Value>{partial.isF32() ? chunk : b.extend(eightType, chunk)};
                },
                [&] { return SmallVector<Value>{zero}; })[0]);
          }
          SmallVector<Value> after(before);
          for (auto [lse, chunk] : llvm::zip_equal(values, chunks)) {
            Value factor = weight(lse, offset);
            for (unsigned e = 0; e < chunkElements; ++e)
              after[e] = b.fma(factor, b.extract(chunk, e), after[e]);
          }
          return after;
        });
    for (Value &sum : sums)
      sum = b.mulF(sum, inverse);
    Value merged = b.pack(eightType, sums);
    return result.isF32() ? merged : b.round(b.chunkOf(result), merged);
  }

  AroundEmitter b;
  Type partial, result;
  Value lanes, lane; // of a row
  Value token, head; // of the row, in the parts
  Value sequence, tokenOfSequence, outputToken;
  Value lses;                // of the row's first part
  Value offset, log2PerUnit; // exponents are (LSE - offset) * log2PerUnit
};

} // namespace

void buildMerge(gpu::GPUFuncOp kernel, const AroundVariant &variant) {
  MergeBuilder(kernel, variant).build();
}

} // namespace sluice

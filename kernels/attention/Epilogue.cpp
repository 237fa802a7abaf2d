//===- Epilogue.cpp - O and LSE of the rows when all keys are done --------------------------------------===//
#include "attention/Epilogue.h"

#include "attention/Fp8Math.h"

#include <algorithm>

using namespace mlir;

namespace sluice {

constexpr unsigned lineBytes = 128; // of memory, which a store should fill

Value Epilogue::sumOfGroups(const RowState &state) const {
  return math.overGroups(state.sum, rows.lane, [&](Value x, Value y) { return b.addF(x, y); });
}

Value Epilogue::sinkOfHead(Value sinks) const {
  return b.advance(sinks, b.getF32Type(), b.zeroExtend(rows.qHead));
}

Value Epilogue::withScale(Value weight) const {
  return arguments.scaled(weight, "v_scale", package::score_v_scale_heads, rows.kvHead);
}

Epilogue::Weight Epilogue::overScaleOfO(Value weight) const {
  Value scales = arguments.late("o_scale");
  return b.branch(
      b.isNull(scales), [&] { return Weight{weight, b.i32(0)}; },
      [&] {
        Value index = b.select(arguments.flag(package::score_o_scale_heads), rows.qHead, b.i32(0));
        Value place = b.advance(scales, b.getF32Type(), b.zeroExtend(index));
        Value scale = LLVM::LoadOp::create(b, b.getF32Type(), place, /*alignment=*/4);
        Emitter::Divisor divisor = b.divisorOf(scale);
        return Weight{b.mulF(weight, divisor.inverse), divisor.exponent};
      });
}

Value Epilogue::weighted(Value element, Weight weight) const {
  Value product = b.mulF(element, weight.factor);
  return weight.exponent ? b.timesPowerOf2(product, weight.exponent) : product;
}

void Epilogue::storeLse(Value lse, Value place) const {
  LLVM::StoreOp::create(b, lse, place, /*alignment=*/4);
}

/// Looks different for each type. Otherwise LLVM compares columns with it once for all types, and keeps the
/// results in scalar registers that it does not have.
Value Epilogue::columnLimit(Type type) const {
  return b.opaqueScalar(arguments.late("head_dim_v"), b.i32(type.getIntOrFloatBitWidth()));
}

Value Epilogue::chunkOf(ArrayRef<Value> elements, Type type) const {
  if (type.isInteger(8)) return fp8::rounded(b, elements);
  Value chunk = b.pack(VectorType::get(elements.size(), b.getF32Type()), elements);
  return type.isF32() ? chunk : arith::TruncFOp::create(b, VectorType::get(elements.size(), type), chunk);
}

/// The registers of a chunk of bytes.
static SmallVector<Value> wordsOf(Emitter &b, Value chunk) {
  unsigned words = cast<VectorType>(chunk.getType()).getNumElements() / 4;
  Value all = b.bitcast(VectorType::get(words, b.getI32Type()), chunk);
  SmallVector<Value> results;
  for (unsigned word = 0; word < words; ++word)
    results.push_back(b.extract(all, word));
  return results;
}

void Epilogue::eachChunk(ArrayRef<Value> output, Weight weight, Type type, Store store) const {
  // Four registers starting at 4 * group are rows of a tile of O^T, and 4 * columns neighbouring columns of O
  // in all tiles of a read: register r of tile m is column columns * r + m of them.
  const MfmaLayout &layout = math.layout;
  const bool isFp8 = type.isInteger(8);
  unsigned tile = 0;
  for (const ColumnRead &read : columns) {
    for (unsigned group = 0; group < layout.results() / 4; ++group) {
      unsigned firstOfChunk = read.headColumn + layout.rowOf(4 * group) * read.columns;
      SmallVector<Value> elements;
      for (unsigned r = 0; r < 4; ++r)
        for (unsigned m = 0; m < read.columns; ++m)
          elements.push_back(isFp8 ? b.extract(output[tile + m], 4 * group + r)
                                   : weighted(b.extract(output[tile + m], 4 * group + r), weight));
      unsigned atATime = std::min<unsigned>(16 * 8 / type.getIntOrFloatBitWidth(), elements.size());
      for (unsigned first = 0; first < elements.size(); first += atATime) {
        Value chunk;
        if (isFp8) {
          // Conversions to FP8 compare: chunk by chunk, or there are not enough scalar registers.
          SmallVector<Value> results;
          for (Value element : ArrayRef<Value>(elements).slice(first, atATime))
            results.push_back(weighted(element, weight));
          chunk = chunkOf(results, type);
          for (Value word : wordsOf(b, chunk))
            weight.factor = b.after(weight.factor, word);
        } else {
          chunk = chunkOf(ArrayRef<Value>(elements).slice(first, atATime), type);
        }
        Value column = b.add(b.i32(firstOfChunk + first), b.mul(rows.laneGroup, b.i32(4 * read.columns)));
        store(firstOfChunk + first, firstColumn ? b.add(column, firstColumn) : column, chunk);
      }
    }
    tile += read.columns;
  }
}

void Epilogue::storeTile(const RowState &state, const KeyRange &keys, unsigned tileQ) const {
  unsigned neighbours = 0; // columns of all lane groups together
  unsigned all = 0;
  for (const ColumnRead &read : columns) {
    neighbours = std::max(neighbours, 4 * math.layout.groups() * read.columns);
    all = std::max(all, read.headColumn + math.layout.rows * read.columns);
  }
  auto store = [&](Value row, Weight weight, Type type) {
    // A line, if the head fills it: the first panel is full.
    unsigned lineColumns = lineBytes * 8 / type.getIntOrFloatBitWidth();
    unsigned panelColumns = std::max(std::min(lineColumns, llvm::bit_floor(all)), neighbours);
    SmallVector<Value> firstColumns, chunks;
    SmallVector<int32_t> panelChunks;
    eachChunk(state.output, weight, type, [&](unsigned first, Value column, Value chunk) {
      panelChunks.resize(first / panelColumns + 1);
      ++panelChunks.back();
      firstColumns.push_back(column);
      chunks.push_back(chunk);
    });
    // Computed from the wave's number: computed as a difference of rows, its range would not be visible in
    // the machine code.
    Value inTile = b.add(b.mul(rows.wave, b.i32(math.layout.rows)), rows.laneRow);
    StoreTileOp::create(b, row, inTile, b.sub(rows.end, rows.first), columnLimit(type), firstColumns, chunks,
                        tileQ, panelColumns, panelChunks);
  };
  finish(state.maximum, sumOfGroups(state), keys, {b.boolean(true), math.holdsOutput()}, store);
}

void Epilogue::storeRows(const RowState &state, const KeyRange &keys) const {
  Value isFirst = firstColumn ? b.equal(rows.waveOfRows, b.i32(0)) : b.boolean(true);
  storeRows(state.maximum, sumOfGroups(state), keys, {isFirst, math.holdsOutput()},
            [&](Weight weight, Type type, Store store) { eachChunk(state.output, weight, type, store); });
}

void Epilogue::storeRows(const JoinedState &state, const KeyRange &keys) const {
  Value isFirst = b.equal(rows.wave, b.i32(0));
  storeRows(state.maximum, state.sum, keys, {isFirst, true}, [&](Weight weight, Type type, Store store) {
    ArrayRef<Value> left = state.output;
    for (const ColumnRead &read : columns) {
      SmallVector<Value> elements;
      for (Value element : left.take_front(read.columns))
        elements.push_back(weighted(element, weight));
      left = left.drop_front(read.columns);
      Value rowOfTile = b.add(b.mul(rows.laneGroup, b.i32(4)), rows.wave);
      Value column = b.add(b.i32(read.headColumn), b.mul(rowOfTile, b.i32(read.laneStep)));
      unsigned neighbours = read.ownStep == 1 ? elements.size() : 1;
      unsigned atATime = std::min<unsigned>(16 * 8 / type.getIntOrFloatBitWidth(), neighbours);
      for (unsigned first = 0; first < elements.size(); first += atATime)
        store(read.headColumn + first * read.ownStep, b.add(column, b.i32(first * read.ownStep)),
              chunkOf(ArrayRef<Value>(elements).slice(first, atATime), type));
    }
  });
}

void Epilogue::storeRows(Value maximum, Value sum, const KeyRange &keys, StoresLse storesLse,
                         EachChunk eachChunk) const {
  auto store = [&](Value row, Weight weight, Type type) {
    Value limit = columnLimit(type);
    b.when(b.less(rows.row, rows.end), [&] {
      eachChunk(weight, type, [&](unsigned, Value column, Value chunk) {
        b.when(b.less(column, limit), [&] {
          unsigned bytes = type.getIntOrFloatBitWidth() / 8;
          LLVM::StoreOp::create(b, chunk, b.advance(row, type, column),
                                /*alignment=*/bytes * cast<VectorType>(chunk.getType()).getNumElements());
        });
      });
    });
  };
  finish(maximum, sum, keys, storesLse, store);
}

void Epilogue::finish(Value maximum, Value sum, const KeyRange &keys, StoresLse storesLse,
                      function_ref<void(Value row, Weight weight, Type type)> store) const {
  Value partial = arguments.flag(package::score_partial);
  Value sinks = arguments.late("sink_logits"), sink = sinkOfHead(sinks);
  // Splits leave the sink to the merge.
  Value hasSink = b.isFalse(b.either(b.isNull(sinks), partial));
  TileMath::Result finished =
      math.finish(maximum, scoreFactor, sum, hasSink, sink, arguments.late("lse_per_log2"));
  Value weight = withScale(finished.weight);
  Value firstRow = b.select(partial, b.i32(0), rows.sequence.firstRow);
  auto finishLse = [&] {
    Value lse = arguments.late("lse");
    Value isMine = b.both(storesLse.condition, b.equal(rows.laneGroup, b.i32(0)));
    Value stores = b.both(b.both(b.less(rows.row, rows.end), isMine), b.isFalse(b.isNull(lse)));
    b.when(stores, [&] {
      Value splitOffset = addresses.offsetOfSplit("lse");
      Value offset = b.add(addresses.offsetOfRow("lse", firstRow), splitOffset);
      storeLse(finished.lse, b.advance(lse, b.getF32Type(), offset));
    });
  };
  if (storesLse.isFirst) finishLse();
  // A split without keys has no weight in the merge, even if its row of O is garbage.
  Value hasKeys = b.less(b.i32(0), keys.keyLimit); // in a register
  b.when(b.isFalse(b.both(partial, b.isFalse(hasKeys))), [&] {
    Value offset = addresses.offsetOfRow("o", firstRow);
    offset = b.add(offset, addresses.offsetOfSplit("o"));
    auto storeAs = [&](Type type, Weight weightOfType) {
      store(b.advance(arguments.late("o"), type, offset), weightOfType, type);
    };
    Value isWide = b.either(partial, arguments.flag(package::score_o_f32));
    b.branch(
        isWide, [&] { return storeAs(b.getF32Type(), {weight}); },
        [&] {
          if (!math.hasE4m3Fnuz()) return storeAs(result, {weight});
          return b.branch(
              arguments.flag(package::score_o_fp8),
              [&] { return storeAs(b.getI8Type(), overScaleOfO(weight)); },
              [&] { return storeAs(result, {weight}); });
        });
  });
  if (!storesLse.isFirst) finishLse();
}

} // namespace sluice

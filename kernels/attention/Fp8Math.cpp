//===- Fp8Math.cpp - operands of FP8 products, made in registers ----------------------------------------===//
#include "attention/Fp8Math.h"
#include "dialect/Transpose.h"

using namespace mlir;

namespace sluice::fp8 {

static Value operand(Emitter &b, Value low, Value high) {
  return b.pack(VectorType::get(2, b.getI32Type()), {low, high});
}

Value fromProbabilities(Emitter &b, ArrayRef<Value> eight) {
  auto word = [&](unsigned first) -> Value {
    auto convert = [&](unsigned pair, Value other) -> Value {
      return ROCDL::CvtPkFp8F32Op::create(b, b.getI32Type(), eight[first + 2 * pair],
                                          eight[first + 2 * pair + 1], other, /*wordSel=*/pair == 1);
    };
    // A conversion keeps the other half of the register that it writes. The first one has nothing to keep,
    // and reuses the register of an operand, which needs no instruction.
    return convert(1, convert(0, b.bitcast(b.getI32Type(), eight[first])));
  };
  return operand(b, word(0), word(4));
}

Value rounded(Emitter &b, ArrayRef<Value> numbers) {
  constexpr double largest = 240;
  SmallVector<Value> limited;
  for (Value number : numbers) {
    Value within = b.minF(b.maxF(number, b.f32(-largest)), b.f32(largest));
    Value isNan = arith::CmpFOp::create(b, arith::CmpFPredicate::UNO, number, number);
    limited.push_back(b.select(isNan, number, within));
  }
  auto pair = [&](unsigned first, Value other, bool isHigh) -> Value {
    Value second = limited[std::min<size_t>(first + 1, limited.size() - 1)];
    return ROCDL::CvtPkFp8F32Op::create(b, b.getI32Type(), limited[first], second, other, isHigh);
  };
  auto bytes = VectorType::get(numbers.size(), b.getI8Type());
  if (numbers.size() < 4) {
    auto type = b.getIntegerType(8 * numbers.size());
    return b.bitcast(bytes, arith::TruncIOp::create(b, type, pair(0, b.i32(0), false)));
  }
  SmallVector<Value> words;
  for (unsigned first = 0; first < numbers.size(); first += 4)
    words.push_back(pair(first + 2, pair(first, b.i32(0), false), true));
  return b.bitcast(bytes, b.pack(VectorType::get(words.size(), b.getI32Type()), words));
}

static SmallVector<Value> transposeColumn(Emitter &b, ArrayRef<Value> rows) {
  auto word = [&](ArrayRef<Value> four) {
    Value bytes = b.i32(0);
    for (auto [index, row] : llvm::enumerate(four)) {
      Value byte = arith::ExtUIOp::create(b, b.getI32Type(), b.extract(row, 0));
      bytes = b.bitOr(bytes, b.shiftLeft(byte, b.i32(8 * index)));
    }
    return bytes;
  };
  return {operand(b, word(rows.take_front(4)), word(rows.drop_front(4)))};
}

SmallVector<Value> transpose(Emitter &b, ArrayRef<Value> rows) {
  unsigned columns = cast<VectorType>(rows[0].getType()).getNumElements(), words = columns / 4;
  if (columns == 1) return transposeColumn(b, rows);
  SmallVector<Value> rowWords;
  for (Value row : rows)
    rowWords.push_back(b.bitcast(VectorType::get(words, b.getI32Type()), row));
  SmallVector<Value> operands;
  for (unsigned word = 0; word < words; ++word) {
    SmallVector<Value> wordOfEachRow;
    for (Value row : rowWords)
      wordOfEachRow.push_back(b.extract(row, word));
    ArrayRef<Value> all(wordOfEachRow);
    for (auto [low, high] :
         llvm::zip_equal(transposeBytes(b, all.take_front(4)), transposeBytes(b, all.drop_front(4))))
      operands.push_back(operand(b, low, high));
  }
  return operands;
}

Value nans(Emitter &b, Value operand) {
  // A byte is NaN if its XOR with NaN is 0. Adding to the lower bits carries into NaN's bit if any of them is
  // set: the sums stay within their bytes.
  auto all = [&](uint32_t byte) -> Value {
    auto type = cast<ShapedType>(operand.getType());
    return arith::ConstantOp::create(b, DenseElementsAttr::get(type, llvm::APInt(32, byte * 0x01010101u)));
  };
  Value rest = b.bitXor(operand, all(nan)), lower = all(nan - 1);
  Value carried = b.add(b.bitAnd(rest, lower), lower);
  Value isOther = b.bitOr(b.bitOr(carried, rest), lower);
  return b.bitXor(isOther, all(0xff));
}

} // namespace sluice::fp8

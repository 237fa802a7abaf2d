//===- KeyBlocks.cpp - rows of K and V in blocks of elements with a common scale ------------------------===//
#include "attention/KeyBlocks.h"

#include "llvm/ADT/StringSwitch.h"

using namespace mlir;

namespace sluice {

namespace {
constexpr unsigned q8Bytes = 34, q4Bytes = 18, scaleBytesOfBlock = 2;
} // namespace

std::optional<KeyBlocks::Kind> KeyBlocks::kindOf(StringRef name) {
  return llvm::StringSwitch<std::optional<Kind>>(name)
      .Case("q8_0", Kind::q8_0)
      .Case("q4_0", Kind::q4_0)
      .Case("u4", Kind::u4)
      .Default(std::nullopt);
}

unsigned KeyBlocks::rowBytes(unsigned elements) const {
  unsigned blocks = elements / blockElements;
  return kind == Kind::u4 ? elements / 2 : blocks * (kind == Kind::q8_0 ? q8Bytes : q4Bytes);
}

Value KeyBlocks::loadAt(Value address, Value offset, Type type, unsigned alignment) const {
  return LLVM::LoadOp::create(b, type, b.advance(address, b.getI8Type(), b.zeroExtend(offset)), alignment);
}

Value KeyBlocks::load(Value row, Value column, Value scale) const {
  auto two = VectorType::get(2, b.getI32Type()), three = VectorType::get(3, b.getI32Type());
  if (kind == Kind::u4) {
    Value data = loadAt(row, b.shiftRight(column, b.i32(1)), b.getI32Type(), /*alignment=*/4);
    return b.pack(two, {data, scale});
  }
  unsigned bytes = kind == Kind::q8_0 ? q8Bytes : q4Bytes;
  Value block = b.mul(b.shiftRight(column, b.i32(llvm::Log2_32(blockElements))), b.i32(bytes));
  unsigned inData = kind == Kind::q8_0 ? blockElements : blockElements / 2;
  Value place = b.add(block, b.bitAnd(column, b.i32(inData - 1)));
  Value ofBlock = arith::ExtUIOp::create(b, b.getI32Type(), loadAt(row, block, b.getI16Type(), 2));
  Value data = loadAt(row, b.add(place, b.i32(scaleBytesOfBlock)), two, /*alignment=*/2);
  return b.pack(three, {b.extract(data, 0), b.extract(data, 1), ofBlock});
}

/// The chosen halves of eight bytes, as eight bytes.
Value KeyBlocks::unpackNibbles(Value bytes, Value isUpper) const {
  Value shift = b.select(isUpper, b.i32(4), b.i32(0));
  SmallVector<Value> words;
  for (unsigned n = 0; n < 2; ++n)
    words.push_back(b.bitAnd(b.shiftRight(b.extract(bytes, n), shift), b.i32(0x0f0f0f0f)));
  return b.pack(VectorType::get(2, b.getI32Type()), words);
}

/// Two of eight bytes, from `first` on, with a scale: a dword. `numbers`: unsigned bytes. F16 goes through
/// 1024 + n, whose last bits are n; `scale` and `subtracted` are then pairs of F16, else F32.
Value KeyBlocks::pairOf(Value numbers, unsigned first, Value scale, Value subtracted) const {
  Value word = b.extract(numbers, first / 4);
  unsigned at = first % 4;
  if (element.isF16()) {
    auto pair = VectorType::get(2, element);
    // Bytes {at, 0x64, at + 1, 0x64}.
    uint32_t selector = 0x04000400u | at | (at + 1) << 16;
    Value above = b.bitcast(pair, b.permuteBytes(b.i32(0x64646464), word, selector));
    Value exact = b.addF(above, arith::ConstantOp::create(
                                    b, DenseElementsAttr::get(pair, b.getF16FloatAttr(-1024).getValue())));
    return b.bitcast(b.getI32Type(), b.mulF(b.subF(exact, subtracted), scale));
  }
  auto rounded = [&](unsigned place) {
    Value byte = b.bitAnd(b.shiftRight(word, b.i32(8 * place)), b.i32(0xff));
    Value number = arith::UIToFPOp::create(b, b.getF32Type(), byte);
    Value product = b.mulF(b.subF(number, subtracted), scale);
    // To the nearest number of 8 bits; a tie away from zero.
    return b.add(b.bitcast(b.getI32Type(), product), b.i32(0x8000));
  };
  return b.permuteBytes(rounded(at + 1), rounded(at), 0x07060302);
}

Value KeyBlocks::elements(Value loaded, Value column) const {
  auto two = VectorType::get(2, b.getI32Type());
  Value numbers, scaleBits, subtractedBits;
  auto half = [&](uint32_t bits) { return b.i32(int32_t(bits)); };
  switch (kind) {
  case Kind::q8_0: {
    // Signed bytes plus 128.
    SmallVector<Value> words;
    for (unsigned n = 0; n < 2; ++n)
      words.push_back(b.bitXor(b.extract(loaded, n), b.i32(int32_t(0x80808080u))));
    numbers = b.pack(two, words);
    scaleBits = b.extract(loaded, 2);
    subtractedBits = half(0x5800); // 128
    break;
  }
  case Kind::q4_0: {
    Value isUpper = b.isFalse(b.equal(b.bitAnd(column, b.i32(blockElements / 2)), b.i32(0)));
    numbers = unpackNibbles(b.pack(two, {b.extract(loaded, 0), b.extract(loaded, 1)}), isUpper);
    scaleBits = b.extract(loaded, 2);
    subtractedBits = half(0x4800); // 8
    break;
  }
  case Kind::u4: {
    // Each byte has two neighbouring elements.
    Value word = b.extract(loaded, 0);
    Value low = b.bitAnd(word, b.i32(0x0f0f0f0f)),
          high = b.bitAnd(b.shiftRight(word, b.i32(4)), b.i32(0x0f0f0f0f));
    numbers = b.pack(two, {b.permuteBytes(high, low, 0x05010400), b.permuteBytes(high, low, 0x07030602)});
    Value both = b.extract(loaded, 1);
    scaleBits = b.bitAnd(both, b.i32(0xffff));
    subtractedBits = b.shiftRight(both, b.i32(16));
    break;
  }
  }
  auto number = [&](Value bits) -> Value {
    Value f16 = b.bitcast(b.getF16Type(), arith::TruncIOp::create(b, b.getI16Type(), bits));
    if (!element.isF16()) return arith::ExtFOp::create(b, b.getF32Type(), f16);
    return b.pack(VectorType::get(2, element), {f16, f16});
  };
  Value scale = number(scaleBits), subtracted = number(subtractedBits);
  SmallVector<Value> pairs;
  for (unsigned first = 0; first < loadElements; first += 2)
    pairs.push_back(pairOf(numbers, first, scale, subtracted));
  return b.bitcast(VectorType::get(loadElements, element),
                   b.pack(VectorType::get(pairs.size(), b.getI32Type()), pairs));
}

} // namespace sluice

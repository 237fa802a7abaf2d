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

unsigned KeyBlocks::blockBytes() const {
  return kind == Kind::u4 ? blockElements / 2 : kind == Kind::q8_0 ? q8Bytes : q4Bytes;
}

Value KeyBlocks::offsetOfNumbers(Value column) const {
  if (kind == Kind::u4) return b.shiftRight(column, b.i32(1));
  Value block = b.mul(b.shiftRight(column, b.i32(llvm::Log2_32(blockElements))), b.i32(blockBytes()));
  unsigned inData = kind == Kind::q8_0 ? blockElements : blockElements / 2;
  return b.add(b.add(block, b.bitAnd(column, b.i32(inData - 1))), b.i32(scaleBytesOfBlock));
}

Value KeyBlocks::load(Value place) const {
  if (kind == Kind::u4) return LLVM::LoadOp::create(b, b.getI32Type(), place, /*alignment=*/4);
  return LLVM::LoadOp::create(b, VectorType::get(2, b.getI32Type()), place, /*alignment=*/2);
}

/// The lower halves of a dword's bytes. Opaque, or LLVM would take each out on its own.
Value KeyBlocks::lowerHalves(Value dword) const {
  return b.opaque(b.bitAnd(dword, b.i32(0x0f0f0f0f)));
}

/// A byte from 0 to 15 is, as a number of E4M3, a multiple of the smallest: those up to 7 are denormal, and
/// the others have the exponent after that and the same distance from one another.
float KeyBlocks::unit() const {
  if (kind == Kind::q8_0 || fp8 == Fp8Flavour::None) return 1;
  return fp8 == Fp8Flavour::Fnuz ? 0x1p-10f : 0x1p-9f;
}

/// Bytes from 0 to 15: two at a time if the chip converts E4M3.
SmallVector<Value> KeyBlocks::unsignedBytePairs(Value dword) const {
  auto two = VectorType::get(2, b.getF32Type());
  if (fp8 != Fp8Flavour::None)
    return {ROCDL::CvtPkF32Fp8Op::create(b, two, dword, /*wordSel=*/false),
            ROCDL::CvtPkF32Fp8Op::create(b, two, dword, /*wordSel=*/true)};
  auto number = [&](unsigned byte) -> Value { // v_cvt_f32_ubyte
    return arith::UIToFPOp::create(b, b.getF32Type(),
                                   b.bitAnd(b.shiftRight(dword, b.i32(8 * byte)), b.i32(0xff)));
  };
  return {b.pack(two, {number(0), number(1)}), b.pack(two, {number(2), number(3)})};
}

SmallVector<Value> KeyBlocks::signedBytePairs(Value dword) const {
  auto number = [&](unsigned byte) -> Value {
    Value upper = b.shiftLeft(dword, b.i32(24 - 8 * byte));
    return arith::SIToFPOp::create(b, b.getF32Type(), arith::ShRSIOp::create(b, upper, b.i32(24)));
  };
  auto two = VectorType::get(2, b.getF32Type());
  return {b.pack(two, {number(0), number(1)}), b.pack(two, {number(2), number(3)})};
}

SmallVector<Value> KeyBlocks::pairsOf(Value loaded, Value column) const {
  Values pairs, bytes;
  switch (kind) {
  case Kind::q8_0:
    for (unsigned n = 0; n < 2; ++n)
      llvm::append_range(pairs, signedBytePairs(b.extract(loaded, n)));
    return pairs;
  case Kind::q4_0: {
    Value isUpper = b.isFalse(b.equal(b.bitAnd(column, b.i32(blockElements / 2)), b.i32(0)));
    Value shift = b.select(isUpper, b.i32(4), b.i32(0));
    for (unsigned n = 0; n < 2; ++n)
      bytes.push_back(lowerHalves(b.shiftRight(b.extract(loaded, n), shift)));
    break;
  }
  case Kind::u4: // each byte has two neighbouring elements
    bytes = {lowerHalves(loaded), lowerHalves(b.shiftRight(loaded, b.i32(4)))};
    break;
  }
  for (Value dword : bytes)
    llvm::append_range(pairs, unsignedBytePairs(dword));
  return pairs;
}

SmallVector<Value> KeyBlocks::fragmentsOf(Value loaded, Value column) const {
  Values dwords;
  for (Value pair : pairsOf(loaded, column)) {
    Value low = b.extract(pair, 0), high = b.extract(pair, 1);
    if (element.isF16()) {
      Value halves = ROCDL::CvtPkRtz::create(b, VectorType::get(2, element), low, high);
      dwords.push_back(b.bitcast(b.getI32Type(), halves));
    } else {
      auto bits = [&](Value number) { return b.bitcast(b.getI32Type(), number); };
      dwords.push_back(b.permuteBytes(bits(high), bits(low), 0x07060302));
    }
  }
  auto two = VectorType::get(2, b.getI32Type());
  auto four = VectorType::get(4, element);
  return {b.bitcast(four, b.pack(two, {dwords[0], dwords[1]})),
          b.bitcast(four, b.pack(two, {dwords[2], dwords[3]}))};
}

} // namespace sluice

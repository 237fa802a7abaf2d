//===- NonFinite.cpp - keeping infinity and NaN in V to the rows that see their keys --------------------===//
#include "attention/NonFinite.h"
#include "attention/Fp8Math.h"

#include "llvm/ADT/APFloat.h"

#include <limits>

using namespace mlir;

namespace sluice {

constexpr unsigned magnitude = 0x7fff; // all bits but the sign's
constexpr unsigned negativeUnit = 128; // more than any tile has keys
constexpr double floatInfinity = std::numeric_limits<double>::infinity();

static unsigned bitsOf(Type element, double value) {
  llvm::APFloat number(value);
  bool inexact;
  number.convert(cast<FloatType>(element).getFloatSemantics(), llvm::APFloat::rmNearestTiesToEven, &inexact);
  return number.bitcastToAPInt().getZExtValue();
}

NonFinite::NonFinite(Emitter &b, TileMath &math, Type element)
    : b(b), math(math), element(element), infinity(isFp8() ? 0 : bitsOf(element, floatInfinity)) {}

Value NonFinite::splat(VectorType type, unsigned bits) const {
  return arith::ConstantOp::create(b, DenseElementsAttr::get(type, llvm::APInt(16, bits)));
}

/// Adds `value`, a few elements, to the summary `seen` of others. FP8: the bytes that are NaN. BF16:
/// magnitudes, of which the largest is kept. F16: 0 times the elements, which is NaN if they are not finite,
/// and stays NaN in a sum: a single instruction for two elements.
Value NonFinite::include(Value seen, Value value) const {
  if (isFp8()) return b.bitOr(seen, fp8::nans(b, value));
  auto type = cast<VectorType>(value.getType());
  if (type.getElementType() == element) {
    Value zero = arith::ConstantOp::create(b, b.getZeroAttr(type));
    return b.fma(value, zero, seen);
  }
  return arith::MaxUIOp::create(b, seen, b.bitAnd(value, splat(type, magnitude)));
}

/// The type of `elements` elements for include().
VectorType NonFinite::partsOf(unsigned elements) const {
  return isFp8() ? math.fragment : VectorType::get(elements, element.isF16() ? element : b.getI16Type());
}

/// Whether any lane has seen a non-finite element.
Value NonFinite::hasSeen(Value seen) const {
  if (isFp8()) {
    Value any = b.bitOr(b.extract(seen, 0), b.extract(seen, 1));
    return b.anyLane(b.isFalse(b.equal(any, b.i32(0))));
  }
  auto type = cast<VectorType>(seen.getType());
  for (unsigned half = type.getNumElements() / 2; half > 0; half /= 2)
    seen = include(b.slice(seen, 0, half), b.slice(seen, half, half));
  Value last = b.extract(seen, 0);
  if (type.getElementType() == element)
    return b.anyLane(arith::CmpFOp::create(b, arith::CmpFPredicate::UNO, last, last));
  last = arith::ExtUIOp::create(b, b.getI32Type(), last);
  return b.anyLane(b.isFalse(b.lessUnsigned(last, b.i32(infinity))));
}

Value NonFinite::isIn(Extent extent, Value lane, Read read) const {
  constexpr unsigned width = 8; // elements that a lane reads at once
  unsigned lanesPerRow = extent.columns / width, rowsAtOnce = MfmaLayout::lanes / lanesPerRow;
  Value key = b.shiftRight(lane, b.i32(llvm::Log2_32(lanesPerRow)));
  Value column = b.mul(b.bitAnd(lane, b.i32(lanesPerRow - 1)), b.i32(width));
  VectorType parts = partsOf(width);
  Value seen = arith::ConstantOp::create(b, b.getZeroAttr(parts));
  for (unsigned first = 0; first < extent.keys;) {
    // Several at a time: loaded one after the other, each would be waited for.
    Values rows;
    for (; first < extent.keys && rows.size() < 8; first += rowsAtOnce)
      rows.push_back(b.bitcast(parts, read(width, b.add(key, b.i32(first)), column)));
    for (Value row : rows)
      seen = include(seen, row);
  }
  return hasSeen(seen);
}

Value NonFinite::isIn(function_ref<void(function_ref<void(Value)>)> each) const {
  VectorType parts = partsOf(math.layout.elements());
  Value seen = arith::ConstantOp::create(b, b.getZeroAttr(parts));
  each([&](Value fragment) { seen = include(seen, b.bitcast(parts, fragment)); });
  return hasSeen(seen);
}

SmallVector<Value> NonFinite::visible(ArrayRef<Value> blocks) const {
  Value hidden = b.f32(-floatInfinity);
  Values scores, fragments;
  for (Value block : blocks)
    for (unsigned r = 0; r < math.layout.results(); ++r)
      scores.push_back(b.extract(block, r));
  for (ArrayRef<Value> left = scores; !left.empty(); left = left.drop_front(math.layout.elements())) {
    Values sees;
    for (Value score : left.take_front(math.layout.elements()))
      sees.push_back(b.isFalse(b.equalF(score, hidden)));
    fragments.push_back(ones(sees));
  }
  return fragments;
}

/// A fragment of 1 where `isOne`, else 0.
Value NonFinite::ones(ArrayRef<Value> isOne) const {
  if (isFp8()) {
    Values words(2, b.i32(0));
    for (auto [index, is] : llvm::enumerate(isOne)) {
      Value one = b.select(is, b.i32(fp8::one << 8 * (index % 4)), b.i32(0));
      words[index / 4] = b.bitOr(words[index / 4], one);
    }
    return b.pack(math.fragment, words);
  }
  Value one = arith::ConstantOp::create(b, b.getFloatAttr(element, 1));
  Value zero = arith::ConstantOp::create(b, b.getFloatAttr(element, 0));
  Values elements;
  for (Value is : isOne)
    elements.push_back(b.select(is, one, zero));
  return b.pack(math.fragment, elements);
}

NonFinite::Split NonFinite::split(Value fragment) const {
  if (isFp8()) {
    Value nans = fp8::nans(b, fragment);
    // NaN's bit, shifted right by one, gives the bits of 1.
    static_assert(fp8::nan >> 1 == fp8::one);
    Value place = arith::ConstantOp::create(b, DenseElementsAttr::get(math.fragment, llvm::APInt(32, 1)));
    return {b.bitXor(fragment, nans), b.shiftRight(nans, place)};
  }
  auto words = VectorType::get(4, b.getI16Type());
  auto code = [&](double value) { return splat(words, bitsOf(element, value)); };
  auto compare = [&](arith::CmpIPredicate predicate, Value x, Value y) -> Value {
    return arith::CmpIOp::create(b, predicate, x, y);
  };
  Value zero = splat(words, 0), bits = b.bitcast(words, fragment);
  Value size = b.bitAnd(bits, splat(words, magnitude));
  Value finite = compare(arith::CmpIPredicate::ult, size, splat(words, infinity));
  Value clean = b.select(finite, bits, zero);
  Value infinite = b.select(compare(arith::CmpIPredicate::slt, bits, zero), code(negativeUnit), code(1));
  Value isInfinity = compare(arith::CmpIPredicate::eq, size, splat(words, infinity));
  Value codes = b.select(finite, zero, b.select(isInfinity, infinite, code(negativeUnit + 1)));
  return {b.bitcast(math.fragment, clean), b.bitcast(math.fragment, codes)};
}

/// `output` with the infinities that `counts` counts.
Value NonFinite::deliver(Value output, Value counts) const {
  Values elements;
  for (unsigned r = 0; r < math.layout.results(); ++r) {
    Value count = arith::FPToUIOp::create(b, b.getI32Type(), b.extract(counts, r));
    if (isFp8()) count = b.mul(count, b.i32(negativeUnit + 1)); // all are NaN
    auto infinityIf = [&](Value missing, double sign) {
      return b.select(missing, b.f32(0), b.f32(sign * floatInfinity));
    };
    Value positives = b.bitAnd(count, b.i32(negativeUnit - 1));
    Value plus = infinityIf(b.equal(positives, b.i32(0)), 1);
    Value minus = infinityIf(b.lessUnsigned(count, b.i32(negativeUnit)), -1);
    elements.push_back(b.addF(b.addF(b.extract(output, r), plus), minus));
  }
  return b.pack(math.accumulator, elements);
}

/// A fragment of V^T, with each key read separately.
Value NonFinite::fragmentOfKeys(ReadKeys read) const {
  Values keys;
  for (unsigned k = 0; k < math.layout.elements(); ++k)
    keys.push_back(read(1, k));
  return math.transpose(keys)[0];
}

/// The same for a tile by columns, where four keys are neighbours.
Value NonFinite::fragmentOfQuads(ReadKeys read) const {
  constexpr unsigned quad = ColumnLayout::quadRows;
  unsigned wordsOfQuad = quad * math.layout.elementBytes / 4;
  Values words;
  for (unsigned k = 0; k < math.layout.elements(); k += quad) {
    Value dwords = b.bitcast(VectorType::get(wordsOfQuad, b.getI32Type()), read(quad, k));
    for (unsigned n = 0; n < wordsOfQuad; ++n)
      words.push_back(b.extract(dwords, n));
  }
  return b.bitcast(math.fragment, b.pack(VectorType::get(words.size(), b.getI32Type()), words));
}

/// The tiles with products and counts added to tile `number`: held tiles have no registers to move to.
SmallVector<Value> NonFinite::addInPlace(ArrayRef<Value> tiles, Value number, ArrayRef<Value> clean,
                                         ArrayRef<Value> probabilities, Value counts) const {
  auto addTo = [&](Value tile) {
    for (auto [fragment, p] : llvm::zip_equal(clean, probabilities))
      tile = math.mfmaOfOutput(fragment, p, tile);
    return deliver(math.settledOutput(tile), counts);
  };
  Values next;
  for (auto [index, tile] : llvm::enumerate(math.held(Values(tiles)))) {
    Value isTurn = b.equal(number, b.i32(index));
    next.push_back(b.branch(
        isTurn, [&, tile = tile] { return math.held(addTo(tile)).front(); },
        [&, tile = tile] { return tile; }));
  }
  return math.held(next);
}

SmallVector<Value> NonFinite::accumulate(ArrayRef<Value> output, ArrayRef<Value> probabilities,
                                         ArrayRef<Value> visible, Value firstColumn, unsigned ownStep,
                                         Value laneKey, bool byColumns, Read read) const {
  auto addTile = [&](Value number, Values tiles) {
    Value own = ownStep == 1 ? number : b.mul(number, b.i32(ownStep));
    Value column = b.add(firstColumn, own), counts = math.zeros(), first = tiles.front();
    Values clean;
    for (auto [index, p, sees] : llvm::enumerate(probabilities, visible)) {
      auto readKeys = [&](unsigned count, unsigned k) {
        Value key = b.i32(math.layout.rowOf(index * math.layout.elements() + k));
        return read(count, b.add(key, laneKey), column);
      };
      Split parts = split(byColumns ? fragmentOfQuads(readKeys) : fragmentOfKeys(readKeys));
      if (math.holdsOutput())
        clean.push_back(parts.clean);
      else
        first = math.mfma(parts.clean, p, first);
      counts = math.mfma(parts.codes, sees, counts);
      // One after the other, which takes fewer registers than reading ahead.
      createWaveFence(b, b.getLoc());
    }
    if (math.holdsOutput())
      return addInPlace(tiles, number, clean, probabilities, math.settle(counts).front());
    // Tiles are rotated through the first position.
    Values settled = math.settle({first, counts});
    Values next(llvm::drop_begin(tiles));
    next.push_back(deliver(settled[0], settled[1]));
    return next;
  };
  // A loop: this rarely runs, and unrolled it would be longer than the rest of the kernel.
  return math.held(b.loop(b.i32(0), b.i32(output.size()), b.i32(1), Values(output), addTile));
}

} // namespace sluice

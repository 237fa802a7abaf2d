//===- TileMath.cpp - the arithmetic of a wave on a tile of keys ----------------------------------------===//
#include "attention/TileMath.h"

#include "attention/Fp8Math.h"
#include "dialect/Transpose.h"

#include <limits>
#include <numbers>

using namespace mlir;

namespace sluice {

constexpr double negativeInfinity = -std::numeric_limits<double>::infinity();

Value TileMath::mfma(Value a, Value bFragment, Value c) {
  MfmaShape shape = layout.shape();
  if (isFp8()) {
    auto bytes = VectorType::get(layout.elements(), element);
    a = vector::BitCastOp::create(b, bytes, a);
    bFragment = vector::BitCastOp::create(b, bytes, bFragment);
  }
  return amdgpu::MFMAOp::create(b, accumulator, shape.rows, shape.columns, shape.depth, /*blocks=*/1, a,
                                bFragment, c);
}

Value TileMath::mfmaOfFloats(Value a, Value bOfLane, Value c) {
  return amdgpu::MFMAOp::create(b, accumulator, 16, 16, 4, /*blocks=*/1, a, bOfLane, c);
}

Value TileMath::onesFragment() {
  llvm::APFloat one(1.0f);
  bool loses = false;
  one.convert(cast<FloatType>(element).getFloatSemantics(), llvm::APFloat::rmNearestTiesToEven, &loses);
  return arith::ConstantOp::create(b, DenseElementsAttr::get(fragment, one));
}

Value TileMath::mfmaOfOutput(Value a, Value bFragment, Value output) {
  Value sum = mfma(a, bFragment, output);
  if (outputIsHeld) sum.getDefiningOp()->setAttr("sluice.held", b.getUnitAttr());
  return sum;
}

SmallVector<Value> TileMath::held(ArrayRef<Value> output, bool settles) {
  if (!outputIsHeld) return Values(output);
  Values tiles;
  for (Value tile : output)
    tiles.push_back(HoldOp::create(b, accumulator, tile, settles));
  return tiles;
}

Value TileMath::zeros() {
  return arith::ConstantOp::create(b, DenseElementsAttr::get(accumulator, 0.0f));
}

SmallVector<Value> TileMath::settle(ArrayRef<Value> blocks) {
  std::string constraints;
  for (size_t n = 0; n < blocks.size(); ++n)
    constraints += "=v,";
  for (size_t n = 0; n < blocks.size(); ++n)
    constraints += std::to_string(n) + (n + 1 == blocks.size() ? "" : ",");
  SmallVector<Type> types(blocks.size(), accumulator);
  bool isOne = blocks.size() == 1;
  Type type = isOne ? Type(accumulator) : LLVM::LLVMStructType::getLiteral(b.getContext(), types);
  // Eight wait states: more than the seven that a result of four passes needs.
  auto assembly = LLVM::InlineAsmOp::create(b, type, blocks, /*asm_string=*/"s_nop 7", constraints,
                                            /*has_side_effects=*/false, /*is_align_stack=*/false,
                                            LLVM::TailCallKind::None, LLVM::AsmDialectAttr(), ArrayAttr());
  if (isOne) return {assembly.getRes()};
  Values results;
  for (size_t n = 0; n < blocks.size(); ++n)
    results.push_back(LLVM::ExtractValueOp::create(b, assembly.getRes(), n));
  return results;
}

Value TileMath::overGroups(Value value, Value lane, llvm::function_ref<Value(Value, Value)> combine) {
  for (unsigned flip = layout.rows; flip < layout.lanes; flip *= 2)
    value = combine(value, b.fromLane(value, lane, flip));
  return value;
}

Value TileMath::maximum(ArrayRef<Value> blocks, Value lane) {
  Value result = b.extract(blocks[0], 0);
  for (auto [index, block] : llvm::enumerate(blocks))
    for (unsigned r = index == 0; r < layout.results(); ++r)
      result = b.maxF(result, b.extract(block, r));
  return overGroups(result, lane, [&](Value x, Value y) { return b.maxF(x, y); });
}

Value TileMath::isLarge(Value offset) {
  constexpr double largest = 1 << 16; // errors of up to 2^-8 in an exponent
  return arith::CmpFOp::create(b, arith::CmpFPredicate::OGT, math::AbsFOp::create(b, offset), b.f32(largest));
}

Value TileMath::centre(Values &blocks, Value offset, Value offsetOfZero, Value reference) {
  // Separately per row: its results do not depend on the other rows of the wave.
  Value large = isLarge(offset), centre = b.select(large, reference, b.f32(0));
  for (Value &block : blocks) {
    Values elements;
    for (unsigned r = 0; r < layout.results(); ++r)
      elements.push_back(b.subF(b.extract(block, r), centre));
    block = b.pack(accumulator, elements);
  }
  return b.select(large, offsetOfZero, offset);
}

SmallVector<Value> TileMath::exponentiate(ArrayRef<Value> blocks, Value factor, Value offset, Value &sum,
                                          AddExponentials add) {
  // Two chains of additions: a single one would be as long as the exponentials it waits for.
  Value sums[2] = {sum, b.f32(0)};
  Values exponentials, fragments;
  for (Value block : blocks) {
    for (unsigned r = 0; r < layout.results(); ++r) {
      Value p = b.exp2(b.fma(b.extract(block, r), factor, offset));
      if (!add) sums[r % 2] = b.addF(sums[r % 2], p);
      exponentials.push_back(p);
      if (exponentials.size() % layout.elements() == 0)
        fragments.push_back(toFragment(ArrayRef<Value>(exponentials).take_back(layout.elements())));
    }
  }
  sum = add ? add(sum, exponentials) : b.addF(sums[0], sums[1]);
  return fragments;
}

double TileMath::factorOfP() const {
  if (isFp8()) return fp8::factorOfP;
  if (!cutsP()) return 1;
  const double halfOfLastPlace = element.isF16() ? 0x1p-11 : 0x1p-8; // of a number between 1 and 2
  return 1 + halfOfLastPlace / 1.44;
}

/// Probabilities as a B fragment, with factorOfP().
Value TileMath::toFragment(ArrayRef<Value> probabilities) {
  if (isFp8()) return fp8::fromProbabilities(b, probabilities);
  Value low = toPair(probabilities[0], probabilities[1]), high = toPair(probabilities[2], probabilities[3]);
  return b.bitcast(fragment, b.pack(VectorType::get(2, b.getI32Type()), {low, high}));
}

Value TileMath::toPair(Value first, Value second) {
  auto pair = VectorType::get(2, element);
  if (element.isF16()) return b.bitcast(b.getI32Type(), ROCDL::CvtPkRtz::create(b, pair, first, second));
  if (chip.packedBf16Conversion) {
    Value both = b.pack(VectorType::get(2, b.getF32Type()), {first, second});
    return b.bitcast(b.getI32Type(), arith::TruncFOp::create(b, pair, both));
  }
  auto bits = [&](Value value) { return b.bitcast(b.getI32Type(), value); };
  return b.permuteBytes(bits(second), bits(first), 0x07060302);
}

SmallVector<Value> TileMath::fragments(Value row, unsigned columns) {
  if (columns == layout.elements()) return {b.bitcast(fragment, row)};
  Values parts;
  for (unsigned first = 0; first < columns; first += layout.elements())
    parts.push_back(b.slice(row, first, layout.elements()));
  return parts;
}

SmallVector<Value> TileMath::transpose(ArrayRef<Value> rows) {
  if (isFp8()) return fp8::transpose(b, rows);
  unsigned columns = cast<VectorType>(rows[0].getType()).getNumElements();
  if (columns == 1) {
    Values elements;
    for (Value row : rows)
      elements.push_back(b.extract(row, 0));
    return {b.pack(fragment, elements)};
  }
  auto words = VectorType::get(columns / 2, b.getI32Type());
  Values rowWords;
  for (Value row : rows)
    rowWords.push_back(b.bitcast(words, row));
  Values fragments;
  for (unsigned word = 0; word < columns / 2; ++word) {
    Values wordOfEachRow;
    for (Value row : rowWords)
      wordOfEachRow.push_back(b.extract(row, word));
    for (Value column : transposeHalves(b, wordOfEachRow))
      fragments.push_back(b.bitcast(fragment, column));
  }
  return fragments;
}

SmallVector<Value> TileMath::scaled(ArrayRef<Value> output, Value factor) {
  Values scaled;
  for (Value tile : held(output)) {
    Values elements;
    for (unsigned r = 0; r < layout.results(); ++r)
      elements.push_back(b.mulF(b.extract(tile, r), factor));
    llvm::append_range(scaled, held(b.pack(accumulator, elements)));
  }
  return scaled;
}

SmallVector<Value> TileMath::rescale(ArrayRef<Value> output, Value factor) {
  return held(b.branch(
      b.anyLane(isChange(factor)), [&] { return scaled(output, factor); }, [&] { return Values(output); }));
}

TileMath::Result TileMath::finish(Value maximum, Value factor, Value sum, Value hasSink, Value sinkLogit,
                                  Value lsePerLog2) {
  sum = b.mulF(sum, b.f32(1 / factorOfP()));
  // No visible key: the sum is exactly 0. A NaN sum stays NaN.
  Value empty = b.equalF(sum, b.f32(0)), none = b.f32(negativeInfinity);
  auto inverse = [&](Value x) { return b.select(b.equalF(x, b.f32(0)), b.f32(0), b.reciprocal(x)); };
  Result result = b.branch(
      hasSink,
      [&] {
        Value logit = LLVM::LoadOp::create(b, b.getF32Type(), sinkLogit, /*alignment=*/4);
        Value sink = b.mulF(logit, b.f32(std::numbers::log2e));
        Value keys = b.select(empty, none, b.mulF(maximum, factor));
        // A logit may be infinite in units of exponents, but its distance to itself is 0.
        Value limited = b.minF(sink, b.f32(std::numeric_limits<float>::max()));
        Value larger = b.maxF(keys, limited);
        Value reference = b.select(b.equalF(larger, none), b.f32(0), larger);
        Value weight = b.exp2(b.subF(keys, reference));
        Value sinkWeight = b.exp2(b.subF(limited, reference)), total = b.fma(sum, weight, sinkWeight);
        // Without keys that count, the sink is the result, to the last bit.
        Value sinkAlone = b.select(b.equalF(lsePerLog2, b.f32(1)), sink, logit);
        Value lse = b.mulF(b.addF(reference, b.log2(total)), lsePerLog2);
        Value isAlone = b.equalF(total, sinkWeight);
        return Result{b.mulF(weight, inverse(total)), b.select(isAlone, sinkAlone, lse)};
      },
      [&] {
        Value log2 = b.select(empty, none, b.fma(maximum, factor, b.log2(sum)));
        return Result{inverse(sum), b.mulF(log2, lsePerLog2)};
      });
  if (isFp8()) result.weight = b.mulF(result.weight, b.f32(1 / factorOfP()));
  return result;
}

} // namespace sluice

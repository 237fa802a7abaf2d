//===- Widen.cpp - bytes of E4M3FNUZ, E5M2FNUZ or integers to F16 or BF16 -------------------------------===//
#include "dialect/Widen.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/ROCDLDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace sluice {

Value widenBytes(ImplicitLocOpBuilder &b, Value bytes, Type type, Type element) {
  auto bitcast = [&](Type type, Value a) -> Value { return LLVM::BitcastOp::create(b, type, a); };
  auto extract = [&](Value vector, unsigned index) -> Value {
    return vector::ExtractOp::create(b, vector, index);
  };
  unsigned count = cast<VectorType>(bytes.getType()).getNumElements();
  auto two = VectorType::get(2, b.getF32Type());
  SmallVector<Value> words;
  if (count >= 4) {
    Value all = bitcast(VectorType::get(count / 4, b.getI32Type()), bytes);
    for (unsigned n = 0; n < count / 4; ++n)
      words.push_back(extract(all, n));
  } else {
    auto integer = IntegerType::get(b.getContext(), 8 * count);
    words.push_back(arith::ExtUIOp::create(b, b.getI32Type(), bitcast(integer, bytes)));
  }
  // Numbers 2n and 2n + 1 as F32.
  auto pairOf = [&](unsigned n) -> std::pair<Value, Value> {
    if (type.isInteger(8)) {
      auto integer = [&](unsigned place) -> Value {
        auto constant = [&](int32_t value) -> Value {
          return arith::ConstantOp::create(b, b.getI32IntegerAttr(value));
        };
        // The byte, with its sign.
        Value upper = arith::ShLIOp::create(b, words[n / 2], constant(24 - 8 * int32_t(place)));
        Value extended = arith::ShRSIOp::create(b, upper, constant(24));
        return arith::SIToFPOp::create(b, b.getF32Type(), extended);
      };
      unsigned first = n % 2 * 2;
      return {integer(first), integer(first + 1)};
    }
    bool isHigh = n % 2 == 1;
    Value pair = isa<Float8E5M2FNUZType, Float8E5M2Type>(type)
                     ? ROCDL::CvtPkF32Bf8Op::create(b, two, words[n / 2], isHigh).getResult()
                     : ROCDL::CvtPkF32Fp8Op::create(b, two, words[n / 2], isHigh).getResult();
    return {extract(pair, 0), extract(pair, 1)};
  };
  SmallVector<Value> halves;
  for (unsigned n = 0; n < (count + 1) / 2; ++n) {
    auto [first, second] = pairOf(n);
    if (element.isF16()) {
      halves.push_back(
          bitcast(b.getI32Type(), ROCDL::CvtPkRtz::create(b, VectorType::get(2, element), first, second)));
    } else {
      Value low = bitcast(b.getI32Type(), first), high = bitcast(b.getI32Type(), second);
      Value upperHalves = arith::ConstantOp::create(b, b.getI32IntegerAttr(0x07060302));
      halves.push_back(LLVM::CallIntrinsicOp::create(b, b.getI32Type(), b.getStringAttr("llvm.amdgcn.perm"),
                                                     ValueRange{high, low, upperHalves})
                           .getResult(0));
    }
  }
  if (count == 1) {
    Value narrow = arith::TruncIOp::create(b, b.getI16Type(), halves[0]);
    return bitcast(VectorType::get(1, element), narrow);
  }
  return bitcast(VectorType::get(count, element),
                 vector::FromElementsOp::create(b, VectorType::get(count / 2, b.getI32Type()), halves));
}

} // namespace sluice

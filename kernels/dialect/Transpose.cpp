//===- Transpose.cpp - four rows of bytes or halves to columns ------------------------------------------===//
#include "dialect/Transpose.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace sluice {

namespace {

constexpr uint32_t lowHalves = 0x05040100, highHalves = 0x07060302;

Value permute(ImplicitLocOpBuilder &b, Value upper, Value lower, uint32_t selector) {
  Value bytes = arith::ConstantOp::create(b, b.getI32IntegerAttr(int32_t(selector)));
  return LLVM::CallIntrinsicOp::create(b, b.getI32Type(), b.getStringAttr("llvm.amdgcn.perm"),
                                       ValueRange{upper, lower, bytes})
      .getResult(0);
}

} // namespace

SmallVector<Value> transposeBytes(ImplicitLocOpBuilder &b, ArrayRef<Value> rows) {
  // Bytes of neighbouring columns of two rows each, then of one column of all.
  SmallVector<Value> columns;
  for (uint32_t pair : {0x05010400u, 0x07030602u}) {
    Value upper = permute(b, rows[1], rows[0], pair), lower = permute(b, rows[3], rows[2], pair);
    for (uint32_t half : {lowHalves, highHalves})
      columns.push_back(permute(b, lower, upper, half));
  }
  return columns;
}

SmallVector<Value> transposeHalves(ImplicitLocOpBuilder &b, ArrayRef<Value> rows) {
  auto type = VectorType::get(2, b.getI32Type());
  SmallVector<Value> columns;
  for (uint32_t half : {lowHalves, highHalves}) {
    Value first = permute(b, rows[1], rows[0], half), last = permute(b, rows[3], rows[2], half);
    columns.push_back(vector::FromElementsOp::create(b, type, ValueRange{first, last}));
  }
  return columns;
}

} // namespace sluice

//===- TransposeBytes.cpp - four rows of bytes to columns -----------------------------------------------===//
#include "dialect/TransposeBytes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;

namespace sluice {

SmallVector<Value> transposeBytes(ImplicitLocOpBuilder &b, ArrayRef<Value> rows) {
  auto permute = [&](Value upper, Value lower, uint32_t selector) -> Value {
    Value bytes = arith::ConstantOp::create(b, b.getI32IntegerAttr(int32_t(selector)));
    return LLVM::CallIntrinsicOp::create(b, b.getI32Type(), b.getStringAttr("llvm.amdgcn.perm"),
                                         ValueRange{upper, lower, bytes})
        .getResult(0);
  };
  // Bytes of neighbouring columns of two rows each, then of one column of all.
  constexpr uint32_t pairs[] = {0x05010400, 0x07030602}, halves[] = {0x05040100, 0x07060302};
  SmallVector<Value> columns;
  for (uint32_t pair : pairs) {
    Value upper = permute(rows[1], rows[0], pair), lower = permute(rows[3], rows[2], pair);
    for (uint32_t half : halves)
      columns.push_back(permute(lower, upper, half));
  }
  return columns;
}

} // namespace sluice

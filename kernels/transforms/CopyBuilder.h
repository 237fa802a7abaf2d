//===- CopyBuilder.h - short spellings for what copies compute --------------------------------*- C++ -*-===//
#pragma once

#include "dialect/Sluice.h"
#include "mlir/Dialect/LLVMIR/ROCDLDialect.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "llvm/Support/MathExtras.h"

namespace sluice {

class CopyBuilder : public mlir::ImplicitLocOpBuilder {
public:
  using Value = mlir::Value;
  using ImplicitLocOpBuilder::ImplicitLocOpBuilder;

  Value i32(int64_t value) { return mlir::arith::ConstantOp::create(*this, getI32IntegerAttr(value)); }
  Value i64(int64_t value) { return mlir::arith::ConstantOp::create(*this, getI64IntegerAttr(value)); }
  Value add(Value a, Value b) { return mlir::arith::AddIOp::create(*this, a, b); }
  Value sub(Value a, Value b) { return mlir::arith::SubIOp::create(*this, a, b); }
  Value mul(Value a, Value b) { return mlir::arith::MulIOp::create(*this, a, b); }
  Value divide(Value a, Value b) { return mlir::arith::DivUIOp::create(*this, a, b); }
  Value remainder(Value a, Value b) { return mlir::arith::RemUIOp::create(*this, a, b); }
  /// floor(a * b / 2^32)
  Value mulHigh(Value a, Value b) { return mlir::arith::MulUIExtendedOp::create(*this, a, b).getHigh(); }
  Value shiftLeft(Value a, Value b) { return mlir::arith::ShLIOp::create(*this, a, b); }
  Value shiftRight(Value a, Value b) { return mlir::arith::ShRUIOp::create(*this, a, b); }
  Value bitOr(Value a, Value b) { return mlir::arith::OrIOp::create(*this, a, b); }
  Value signExtend(Value a) { return mlir::arith::ExtSIOp::create(*this, getI64Type(), a); }
  Value zeroExtend(Value a) { return mlir::arith::ExtUIOp::create(*this, getI64Type(), a); }
  Value truncate(Value a) { return mlir::arith::TruncIOp::create(*this, getI32Type(), a); }
  Value compare(mlir::arith::CmpIPredicate predicate, Value a, Value b) {
    return mlir::arith::CmpIOp::create(*this, predicate, a, b);
  }
  Value less(Value a, Value b) { return compare(mlir::arith::CmpIPredicate::slt, a, b); }
  Value equal(Value a, Value b) { return compare(mlir::arith::CmpIPredicate::eq, a, b); }
  Value positive(Value a) { return compare(mlir::arith::CmpIPredicate::sgt, a, i32(0)); }
  Value both(Value a, Value b) { return mlir::arith::AndIOp::create(*this, a, b); }
  Value either(Value a, Value b) { return mlir::arith::OrIOp::create(*this, a, b); }
  Value isFalse(Value condition) {
    return mlir::arith::XOrIOp::create(*this, condition,
                                       mlir::arith::ConstantOp::create(*this, getBoolAttr(true)));
  }
  Value select(Value condition, Value yes, Value no) {
    return mlir::arith::SelectOp::create(*this, condition, yes, no);
  }
  Value waveUniform(Value a) { return mlir::ROCDL::ReadfirstlaneOp::create(*this, a.getType(), a); }
  /// The number of a thread's lane, and the number of its wave.
  Value laneOf(Value thread, unsigned lanes) {
    return mlir::arith::AndIOp::create(*this, thread, i32(lanes - 1));
  }
  Value waveOf(Value thread, unsigned lanes) { return shiftRight(thread, i32(llvm::Log2_32(lanes))); }
  /// The value that lane number `lane` of the wave has.
  Value fromLane(Value value, Value lane) { return fromByte(value, shiftLeft(lane, i32(2))); }
  /// The same, addressed by four times the lane's number.
  Value fromByte(Value value, Value address) {
    return mlir::ROCDL::DsBpermuteOp::create(*this, getI32Type(), address, value);
  }
  /// The same wave-uniform value, but not known before this point: everything that depends on it stays after
  /// the memory operations and barriers above. Emits no instruction.
  Value inOrder(Value a) {
    return mlir::LLVM::InlineAsmOp::create(*this, a.getType(), a, /*asm_string=*/"", "=s,0",
                                           /*has_side_effects=*/true, /*is_align_stack=*/false,
                                           mlir::LLVM::TailCallKind::None, mlir::LLVM::AsmDialectAttr(),
                                           mlir::ArrayAttr())
        .getRes();
  }
  /// The same for a value per lane.
  Value inLanes(Value a) {
    return mlir::LLVM::InlineAsmOp::create(*this, a.getType(), a, /*asm_string=*/"", "=v,0",
                                           /*has_side_effects=*/true, /*is_align_stack=*/false,
                                           mlir::LLVM::TailCallKind::None, mlir::LLVM::AsmDialectAttr(),
                                           mlir::ArrayAttr())
        .getRes();
  }
  Value advance(Value pointer, Value bytes) {
    return mlir::LLVM::GEPOp::create(*this, pointer.getType(), getI8Type(), pointer,
                                     llvm::ArrayRef<mlir::LLVM::GEPArg>{bytes});
  }
  /// The halves of a 64-bit number, the lower one first.
  std::pair<Value, Value> halves(Value a) { return {truncate(a), truncate(shiftRight(a, i64(32)))}; }
  Value joined(Value low, Value high) { return bitOr(zeroExtend(low), shiftLeft(zeroExtend(high), i64(32))); }
  Value toInteger(Value pointer) { return mlir::LLVM::PtrToIntOp::create(*this, getI64Type(), pointer); }
  Value toPointer(Value bits) {
    return mlir::LLVM::IntToPtrOp::create(*this, mlir::LLVM::LLVMPointerType::get(getContext(), 1), bits);
  }
  /// A raw buffer of `extent` bytes: 32-bit data and number format, no swizzle, no thread-id addressing
  /// (word 3 of a buffer resource on gfx9).
  Value buffer(Value base, Value extent) {
    constexpr int32_t rawBufferFlags = 0x00027000;
    Value stride = mlir::arith::ConstantOp::create(*this, getI16IntegerAttr(0));
    return mlir::ROCDL::MakeBufferRsrcOp::create(*this, mlir::LLVM::LLVMPointerType::get(getContext(), 8),
                                                 base, stride, extent, i32(rawBufferFlags));
  }
};

} // namespace sluice

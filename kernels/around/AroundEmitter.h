//===- AroundEmitter.h - short spellings for rows in memory -----------------------------------*- C++ -*-===//
//
// What append and merge share: arguments by name, rows divided among lanes, chunks of eight elements.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include "around/Around.h"
#include "attention/Emitter.h"

#include <functional>

namespace sluice {

class AroundEmitter : public Emitter {
public:
  AroundEmitter(mlir::gpu::GPUFuncOp kernel, llvm::ArrayRef<package::KernargField> fields)
      : Emitter(kernel.getLoc(), kernel.getContext()), fields(fields) {}

  /// A kernel argument by its name, loaded where it is used.
  Value argument(llvm::StringRef name);
  /// Either k_<name> or v_<name>: where `side` is 1 instead of 0.
  Value sideArgument(llvm::StringRef name, Value side);

  mlir::Type elementType(llvm::StringRef name);
  mlir::VectorType chunkOf(mlir::Type type) {
    return mlir::VectorType::get(package::around_chunk_elements, type);
  }

  Value load(mlir::Type type, Value pointer, Value index, unsigned alignment) {
    return mlir::LLVM::LoadOp::create(*this, type, advance(pointer, scalarOf(type), index), alignment);
  }
  void store(Value value, Value pointer, Value index, unsigned alignment) {
    mlir::LLVM::StoreOp::create(*this, value, advance(pointer, scalarOf(value.getType()), index), alignment);
  }

  Value shiftRightSigned(Value a, Value b) { return mlir::arith::ShRSIOp::create(*this, a, b); }
  Value compareF(mlir::arith::CmpFPredicate predicate, Value a, Value b) {
    return mlir::arith::CmpFOp::create(*this, predicate, a, b);
  }
  Value minF(Value a, Value b) { return mlir::arith::MinNumFOp::create(*this, a, b); }
  Value extend(mlir::Type type, Value a) { return mlir::arith::ExtFOp::create(*this, type, a); }
  Value round(mlir::Type type, Value a) { return mlir::arith::TruncFOp::create(*this, type, a); }
  Value truncateInteger(Value a) { return mlir::arith::TruncIOp::create(*this, getI32Type(), a); }

  /// for (i = first; i < end; i += step) carried = body(i, carried), with unsigned numbers that the steps do
  /// not take beyond their type.
  using LoopBody = llvm::function_ref<llvm::SmallVector<Value>(Value, mlir::ValueRange)>;
  llvm::SmallVector<Value> loop(Value first, Value end, Value step, mlir::ValueRange carried, LoopBody body);

private:
  static mlir::Type scalarOf(mlir::Type type) {
    auto vector = llvm::dyn_cast<mlir::VectorType>(type);
    return vector ? vector.getElementType() : type;
  }
  const package::KernargField &field(llvm::StringRef name);
  mlir::Type typeOf(package::KernargKind kind);

  llvm::ArrayRef<package::KernargField> fields;
};

} // namespace sluice

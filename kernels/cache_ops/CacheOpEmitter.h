//===- CacheOpEmitter.h - short spellings for rows in memory ----------------------------------*- C++ -*-===//
//
// Shared by all cache operations: arguments, rows divided among lanes, chunks of eight elements.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include "attention/Emitter.h"
#include "attention/KernargName.h"
#include "cache_ops/CacheOps.h"

#include <array>
#include <functional>

namespace sluice {

inline constexpr unsigned chunkElements = package::cache_op_chunk_elements;

/// Where an argument is in the kernarg table: `number` times `stride` bytes after `offset`, if it is in one
/// of several equal structs.
struct ArgumentPlace {
  uint32_t offset = 0, stride = 0;
  mlir::Value number = {};
};

class CacheOpEmitter : public Emitter {
public:
  explicit CacheOpEmitter(mlir::gpu::GPUFuncOp kernel) : Emitter(kernel.getLoc(), kernel.getContext()) {}

  mlir::Type elementType(llvm::StringRef name);
  mlir::VectorType chunkOf(mlir::Type type) { return mlir::VectorType::get(chunkElements, type); }

  Value load(mlir::Type type, Value pointer, Value index, unsigned alignment) {
    return mlir::LLVM::LoadOp::create(*this, type, advance(pointer, scalarOf(type), index), alignment);
  }
  void store(Value value, Value pointer, Value index, unsigned alignment) {
    mlir::LLVM::StoreOp::create(*this, value, advance(pointer, scalarOf(value.getType()), index), alignment);
  }

  using Two = std::array<Value, 2>;

  Value shiftRightSigned(Value a, Value b) { return mlir::arith::ShRSIOp::create(*this, a, b); }
  Value compareF(mlir::arith::CmpFPredicate predicate, Value a, Value b) {
    return mlir::arith::CmpFOp::create(*this, predicate, a, b);
  }
  Value extend(mlir::Type type, Value a) { return mlir::arith::ExtFOp::create(*this, type, a); }
  Value round(mlir::Type type, Value a) { return mlir::arith::TruncFOp::create(*this, type, a); }
  /// The value of the lane `count` before, wrapping around within the row of 16 lanes.
  Value rotateRow(Value value, unsigned count);
  /// The value of a lane whose neighbouring 2^step lanes differ from this lane's, if those all have one
  /// value: of the lane's number with bit `step` flipped for steps 0 and 1. Steps below 4.
  Value exchange(Value value, unsigned step);
  /// Joins the values of 2^lanesLog2 neighbouring lanes of a wave, all of them active: each gets the result.
  using Join = llvm::function_ref<Value(Value, Value)>;
  Value joinLanes(Value value, Value lanesLog2, Join join, unsigned step = 0);
  /// An F32 number without its fraction, limited to what an i32 holds; 0 for NaN. The instruction itself:
  /// LLVM's conversion has no value for NaN, and its saturating one takes seven instructions.
  Value toInteger(Value a);
  Value truncateInteger(Value a) { return mlir::arith::TruncIOp::create(*this, getI32Type(), a); }

  /// The number of the batch + 1 starts that are at or before a row, in `steps` steps: the bits of batch + 1.
  Value countStarts(Value starts, Value batch, Value steps, Value row);

  Value loadArgument(const ArgumentPlace &place, package::KernargKind kind);

private:
  static mlir::Type scalarOf(mlir::Type type) {
    auto vector = llvm::dyn_cast<mlir::VectorType>(type);
    return vector ? vector.getElementType() : type;
  }
  mlir::Type typeOf(package::KernargKind kind);
  Value crossLanes(Value value, unsigned control);
};

/// Uses the arguments of the kernarg table `fields`.
template <const auto &fields> class CacheOpEmitterOf : public CacheOpEmitter {
public:
  using CacheOpEmitter::CacheOpEmitter;
  using Name = KernargName<fields>;

  /// A kernel argument by its name, loaded where it is used.
  Value argument(Name name) { return loadArgument({name.field().offset}, name.field().kind); }
};

} // namespace sluice

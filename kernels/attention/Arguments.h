//===- Arguments.h - the arguments of an attention kernel, and its sequence -------------------*- C++ -*-===//
#pragma once

#include "attention/Emitter.h"
#include "attention/KernargName.h"
#include "attention/Kernel.h"

#include <concepts>

namespace sluice {

class Arguments {
public:
  using Value = mlir::Value;
  using Name = KernargName<package::attention_kernarg_fields>;

  Arguments(mlir::gpu::GPUFuncOp kernel, Emitter &emitter) : kernel(kernel), b(emitter) {}

  Value operator[](Name name) const { return mlir::gpu::GPUFuncOp(kernel).getArgument(name.index); }
  /// For composed names, and for pointers to this member.
  template <std::same_as<llvm::StringRef> Text> Value operator[](Text name) const {
    return (*this)[Name(name)];
  }

  /// The same value, loaded where it is used. LLVM loads parameters on entry; those that only a branch or the
  /// code after the loop needs would occupy scalar registers throughout the loop.
  Value late(Name name) const { return b.loadKernarg(name.field().offset, (*this)[name].getType(), segment); }

  template <std::same_as<llvm::StringRef> Text> Value late(Text name) const { return late(Name(name)); }

  /// Arguments whose late loads stay in the loop in which `changing`, a wave-uniform i32, changes, although
  /// the arguments themselves do not.
  Arguments inLoop(Value changing) const {
    Arguments result = *this;
    result.segment = b.opaqueScalar(b.kernargSegment(), changing);
    return result;
  }

  /// Reads a word of each line of the kernarg segment and waits once for all of them: late loads then hit the
  /// scalar cache, and nothing waits for memory line by line.
  void fetchLines() const;

  /// Whether a bit of score_flags is set; loaded where it is used.
  Value flag(package::ScoreFlag bit) const { return flags(bit); }
  /// Whether any of several bits is.
  Value flags(uint32_t bits) const {
    return b.isFalse(b.equal(b.bitAnd(late("score_flags"), b.i32(int32_t(bits))), b.i32(0)));
  }

  /// value * factor[head], or factor[0] if `perHead` is not set; `value` without such a factor.
  Value scaled(Value value, Name factor, package::ScoreFlag perHead, Value head) const;

  /// An element of an array, or `otherwise` if the array is missing. All wave-uniform.
  Value elementOr(Name array, mlir::Type type, Value index, Value otherwise) const;

private:
  mlir::gpu::GPUFuncOp kernel;
  Emitter &b;
  Value segment; // of the kernarg, if it is opaque
};

/// The position of the rows and keys of a sequence: see calls::Args. All wave-uniform.
struct Sequence {
  mlir::Value batch;    // its number
  mlir::Value firstRow; // rows of q, o and lse before its own if sequences are packed; else 0
  mlir::Value rows;     // tokens
  mlir::Value firstKey; // the same for rows of k and v
  mlir::Value keys;
};

/// Reads starts and lengths from memory if there are any. For any values, the rows and keys are among the
/// tensors' rows, and no more than q_len and kv_len.
Sequence readSequence(Emitter &b, const Arguments &arguments, mlir::Value batch);

} // namespace sluice

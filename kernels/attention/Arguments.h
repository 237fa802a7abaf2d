//===- Arguments.h - the arguments of an attention kernel, and its sequence -------------------*- C++ -*-===//
#pragma once

#include "attention/Emitter.h"
#include "attention/Kernel.h"

namespace sluice {

class Arguments {
public:
  using Value = mlir::Value;

  Arguments(mlir::gpu::GPUFuncOp kernel, Emitter &emitter) : kernel(kernel), b(emitter) {}

  Value operator[](llvm::StringRef name) const { return attentionParameter(kernel, name); }

  /// The same value, loaded where it is used. LLVM loads parameters on entry; those that only a branch or the
  /// code behind the loop needs would fill the scalar registers all through it.
  Value late(llvm::StringRef name) const {
    return b.loadKernarg(attentionParameterOffset(name), (*this)[name].getType());
  }

  /// Whether a bit of score_flags is set; loaded where it is used.
  Value flag(package::ScoreFlag bit) const {
    return b.isFalse(b.equal(b.bitAnd(late("score_flags"), b.i32(int32_t(bit))), b.i32(0)));
  }

  /// value * factor[head], or factor[0] where `perHead` is not set; `value` if there is no such factor.
  Value scaled(Value value, llvm::StringRef factor, package::ScoreFlag perHead, Value head) const;

  /// An element of an array that may be missing: `otherwise` then. All wave-uniform.
  Value elementOr(llvm::StringRef array, mlir::Type type, Value index, Value otherwise) const;

private:
  mlir::gpu::GPUFuncOp kernel;
  Emitter &b;
};

/// Where the rows and keys of a sequence are: see sluice_args. All wave-uniform.
struct Sequence {
  mlir::Value batch;    // its number
  mlir::Value firstRow; // rows of q, o and lse before its own, where they are packed; else 0
  mlir::Value rows;     // tokens
  mlir::Value firstKey; // rows of k and v, likewise
  mlir::Value keys;
};

/// Reads starts and lengths from memory where there are any.
Sequence readSequence(Emitter &b, const Arguments &arguments, mlir::Value batch);

} // namespace sluice

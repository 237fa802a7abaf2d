//===- KeyBlocks.h - rows of K and V in blocks of elements with a common scale ----------------*- C++ -*-===//
//
//   q8_0   ggml's blocks of 34 bytes: an F16 scale, then 32 signed bytes
//   q4_0   ggml's blocks of 18 bytes: an F16 scale, then 16 bytes; byte i has element i in its lower half and
//          i + 16 in its upper half, each as a number that is 8 too large
//   u4     two elements per byte, the even one in the lower half; the F16 scales of groups of elements, and
//          numbers to subtract from the elements (8 without them), are in arrays of their own
//
// A lane loads eight neighbouring elements of a row and their scale into one value, which the loop carries,
// and makes elements of the arithmetic when it needs them: scale * number, rounded to nearest. Rows count
// bytes. (ggml's blocks: ggml-common.h of llama.cpp, block_q8_0 and block_q4_0.)
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include "attention/Emitter.h"

#include <optional>

namespace sluice {

class KeyBlocks {
public:
  using Value = mlir::Value;
  enum class Kind { q8_0, q4_0, u4 };
  static std::optional<Kind> kindOf(llvm::StringRef name);

  /// The elements of a load, and those of a block of ggml.
  static constexpr unsigned loadElements = 8, blockElements = 32;

  KeyBlocks(Emitter &b, Kind kind, mlir::Type element) : b(b), kind(kind), element(element) {}

  bool hasArrays() const { return kind == Kind::u4; }
  /// Bytes of a row of so many elements, a multiple of 32; and of its scales in an array.
  unsigned rowBytes(unsigned elements) const;
  static unsigned scaleBytes(unsigned elements) { return elements / blockElements * 2; }

  /// Eight elements of a row from `column` on, a multiple of 8. For u4, their scale and number to subtract,
  /// as F16 in the halves of a dword; else null.
  Value load(Value row, Value column, Value scale) const;
  /// What `load` returned as elements of the arithmetic.
  Value elements(Value loaded, Value column) const;

private:
  Value loadAt(Value address, Value offset, mlir::Type type, unsigned alignment) const;
  Value pairOf(Value numbers, unsigned first, Value scale, Value subtracted) const;
  Value unpackNibbles(Value bytes, Value isUpper) const;

  Emitter &b;
  Kind kind;
  mlir::Type element;
};

} // namespace sluice

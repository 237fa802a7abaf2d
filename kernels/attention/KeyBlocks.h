//===- KeyBlocks.h - rows of K and V in blocks of elements with a common scale ----------------*- C++ -*-===//
//
//   q8_0   ggml's blocks of 34 bytes: an F16 scale, then 32 signed bytes
//   q4_0   ggml's blocks of 18 bytes: an F16 scale, then 16 bytes; byte i has element i in its lower half and
//          i + 16 in its upper half, each as a number that is 8 too large
//   u4     two elements per byte, the even one in the lower half; the F16 scales of groups of elements, and
//          numbers to subtract from the elements (8 without them), are in arrays of their own
//
// A lane loads eight neighbouring numbers of a row into one value, which the loop carries, and unpacks them
// when it needs them. Rows count bytes. (ggml's blocks: ggml-common.h of llama.cpp, block_q8_0 and
// block_q4_0.)
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include "attention/Emitter.h"
#include "target/Chips.h"

#include <optional>

namespace sluice {

class KeyBlocks {
public:
  using Value = mlir::Value;
  using Values = llvm::SmallVector<Value>;
  enum class Kind { q8_0, q4_0, u4 };
  static std::optional<Kind> kindOf(llvm::StringRef name);

  /// The elements of a load, and those of a block.
  static constexpr unsigned loadElements = 8, blockElements = 32;

  KeyBlocks(Emitter &b, Kind kind, mlir::Type element, const Chip &chip)
      : b(b), kind(kind), element(element), fp8(chip.fp8) {}

  /// Whether scales are in arrays; else a block begins with its scale.
  bool hasArrays() const { return kind == Kind::u4; }
  unsigned blockBytes() const;
  /// The bytes of a row of `elements`, a multiple of 32. If its scales are in an array, they take fewer.
  unsigned rowBytes(unsigned elements) const { return elements / blockElements * blockBytes(); }
  /// What to subtract from the numbers, if no array has it.
  float subtracted() const { return kind == Kind::q8_0 ? 0 : 8; }
  bool subtracts() const { return hasArrays() || subtracted() != 0; }

  /// Where a row has its numbers from `column` on, a multiple of 8, in bytes.
  Value offsetOfNumbers(Value column) const;
  unsigned offsetOfBlock(unsigned column) const { return column / blockElements * blockBytes(); }
  /// Eight numbers.
  Value load(Value place) const;
  /// What `load` returned, as pairs in F32: the numbers' products with unit(). Pair p has the numbers
  /// orderOf(2 p) and orderOf(2 p + 1).
  Values pairsOf(Value loaded, Value column) const;
  unsigned orderOf(unsigned n) const { return kind == Kind::u4 ? n % 4 * 2 + n / 4 : n; }
  float unit() const;
  /// The same products as fragments of four elements of the arithmetic, in which they are exact.
  Values fragmentsOf(Value loaded, Value column) const;

private:
  Values unsignedBytePairs(Value dword) const;
  Values signedBytePairs(Value dword) const;
  Value lowerHalves(Value dword) const;

  Emitter &b;
  Kind kind;
  mlir::Type element;
  Fp8Flavour fp8;
};

} // namespace sluice

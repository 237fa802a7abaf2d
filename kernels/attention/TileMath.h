//===- TileMath.h - the arithmetic of a wave on a tile of keys --------------------------------*- C++ -*-===//
//
// Scores are S^T: a lane holds those of one row, four neighbouring keys in four neighbouring registers.
// Packed, these are the B fragment of P^T (see MfmaLayout.h), or half of one in FP8. The lane groups of a
// wave hold the same rows and different keys.
//
// A fragment is a vector of elements, or in FP8 two dwords with the bytes, which LLVM keeps as they are.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include "attention/Emitter.h"
#include "attention/MfmaLayout.h"
#include "dialect/Widen.h"

namespace sluice {

class TileMath {
public:
  using Value = mlir::Value;
  using Values = llvm::SmallVector<Value>;

  /// `holdsOutput`: O^T is in AccVGPRs, and takes all of them.
  TileMath(Emitter &b, mlir::Type element, MfmaLayout layout, const Chip &chip, bool holdsOutput)
      : layout(layout), fragment(layout.elementBytes == 1 ? mlir::VectorType::get(2, b.getI32Type())
                                                          : mlir::VectorType::get(4, element)),
        accumulator(mlir::VectorType::get(layout.results(), b.getF32Type())), b(b), chip(chip),
        element(element), outputIsHeld(holdsOutput) {}

  const MfmaLayout layout;
  const mlir::VectorType fragment, accumulator;

  Value mfma(Value a, Value bFragment, Value c);
  /// A product of 16x16 numbers and 4 terms in F32: lane l has A[l % 16][l / 16] and B[l / 16][l % 16].
  Value mfmaOfFloats(Value a, Value bOfLane, Value c);
  /// A fragment of ones.
  Value onesFragment();
  /// The same for a tile of O^T.
  Value mfmaOfOutput(Value a, Value bFragment, Value output);
  /// The same tiles of O^T. If O^T is in AccVGPRs, the tiles that branches and loops yield pass through this:
  /// LLVM keeps a value there only if all its sources and uses are there too. `settles`: they can be read at
  /// once.
  Values held(llvm::ArrayRef<Value> output, bool settles = false);
  bool holdsOutput() const { return outputIsHeld; }
  bool hasE4m3Fnuz() const { return chip.fp8 == Fp8Flavour::Fnuz; }
  /// A tile of O^T, the result of an MFMA, which can be read at once.
  Value settledOutput(Value tile) {
    return (outputIsHeld ? held(tile, /*settles=*/true) : settle(tile)).front();
  }
  Value zeros();
  /// The same results of MFMAs, which can then be read at once on every path. LLVM 22 counts wait states from
  /// one basic block to the next and counts IMPLICIT_DEF, which emits no instruction, as one. So if results
  /// are first read after a branch, the wait comes before the branch, in assembly, which LLVM does not count.
  Values settle(llvm::ArrayRef<Value> blocks);

  /// Combines the values of the lane groups that share a row.
  Value overGroups(Value value, Value lane, llvm::function_ref<Value(Value, Value)> combine);
  /// The largest score of a row.
  Value maximum(llvm::ArrayRef<Value> blocks, Value lane);

  /// `offset`, -reference * factor, makes exponents relative to the reference. Its rounding error is an error
  /// of the exponent. Returns whether the offset is large enough for that to show:
  Value isLarge(Value offset);
  /// Makes the scores of rows with a large offset relative to the reference instead. Returns the offset to
  /// use: for these rows, the one of a reference of 0.
  Value centre(Values &blocks, Value offset, Value offsetOfZero, Value reference);

  /// Exponentials, and sums of them until finish(), are this much larger than P. In FP8 it is fp8::factorOfP,
  /// which also applies to O^T. If 16-bit P is truncated to its type, it adds between 0.35 and 0.69 of an
  /// exponential's last place, half of it on average, so that the truncated value is close to P; numbers of
  /// the type do not change.
  double factorOfP() const;

  /// exp2(score * factor + offset) of all scores as fragments of P^T; adds this lane's to `sum`, or makes the
  /// sum with `add`.
  using AddExponentials = llvm::function_ref<Value(Value sum, llvm::ArrayRef<Value> exponentials)>;
  Values exponentiate(llvm::ArrayRef<Value> blocks, Value factor, Value offset, Value &sum,
                      AddExponentials add = {});

  /// Two numbers, with factorOfP(), as 16-bit numbers in a dword: cut, unless the chip has an instruction
  /// that rounds.
  Value toPair(Value first, Value second);

  /// Neighbouring elements of a row of Q or K, as in memory or as a fragment, to fragments.
  Values fragments(Value row, unsigned columns);

  /// As many rows of n elements as a fragment has keys, to n fragments.
  Values transpose(llvm::ArrayRef<Value> rows);

  /// The tiles of O^T, multiplied by a factor for each row ...
  Values scaled(llvm::ArrayRef<Value> output, Value factor);
  /// ... unless it is 1 for all rows of the wave.
  Values rescale(llvm::ArrayRef<Value> output, Value factor);
  Value isChange(Value factor) { return b.isFalse(b.equalF(factor, b.f32(1))); }

  /// Bytes of `type` as numbers of the element type, exactly.
  Value widen(Value bytes, mlir::Type type) { return widenBytes(b, bytes, type, element); }

  /// Derived from the sums of a row after all keys.
  struct Result {
    Value weight; // converts O^T relative to the maximum to O
    Value lse;    // logarithm of the denominator
    static auto members(auto &of) { return std::tie(of.weight, of.lse); }
  };
  /// `maximum * factor` is to base 2; `sum` of all groups. The row's sink logit, to base e, is read from
  /// `sinkLogit` if there is one. `lsePerLog2` is 1 or, for an LSE to base e, ln(2).
  Result finish(Value maximum, Value factor, Value sum, Value hasSink, Value sinkLogit, Value lsePerLog2);

private:
  bool isFp8() const { return layout.elementBytes == 1; }
  bool cutsP() const { return element.isF16() || (element.isBF16() && !chip.packedBf16Conversion); }
  Value toFragment(llvm::ArrayRef<Value> probabilities);

  Emitter &b;
  const Chip &chip;
  mlir::Type element;
  bool outputIsHeld;
};

} // namespace sluice

//===- MfmaLayout.h - which lane and register holds which element of an MFMA ------------------*- C++ -*-===//
//
// For the shapes R x R x D with f32 results that attention uses, on waves of 64 lanes with E elements of A
// and of B each, which are 8 bytes: 4 of f16 and bf16, 8 of FP8.
//
//   R  E  D    A[i = lane % R][k = E * (lane / R) + 0..E-1]     B[k = E * (lane / R) + 0..E-1][j = lane % R]
//   32 4  8    D[i = 4 * G * (r / 4) + 4 * (lane / R) + r % 4][j = lane % R]  in register r
//   16 4  16   with G = 64 / R lane groups
//   16 8  32
//
// (CDNA3 ISA, "Matrix Arithmetic Instructions": layouts of 32x32x8, 16x16x16 and 16x16x32.) E consecutive D
// registers, packed, are thus the B fragment of E * G rows. With E = 8 the contraction has them in another
// order than D: element k of a lane is row rowOf(k) + 4 * (lane / R), and A must be in the same order.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include "target/Chips.h"

namespace sluice {

struct MfmaLayout {
  static constexpr unsigned lanes = 64;       // of a wave, for which MFMAs are defined
  static constexpr unsigned operandBytes = 8; // of A and of B in a lane

  unsigned rows;             // 32 or 16
  unsigned elementBytes = 2; // of A and B

  unsigned groups() const { return lanes / rows; }
  unsigned elements() const { return operandBytes / elementBytes; } // of A and of B in a lane
  unsigned depth() const { return elements() * groups(); }
  unsigned results() const { return rows * rows / lanes; } // registers of D
  MfmaShape shape() const { return {rows, rows, depth()}; }

  /// Row i of D in register r, without the term 4 * (lane / rows).
  unsigned rowOf(unsigned r) const { return 4 * groups() * (r / 4) + r % 4; }
};

} // namespace sluice

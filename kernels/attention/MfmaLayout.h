//===- MfmaLayout.h - which lane and register holds what of an MFMA -----------------------------*- C++
//-*-===//
//
// Of the shapes R x R x D with f32 results that attention uses, on waves of 64 lanes:
//
//   R  D    A[i = lane % R][k = 4 * (lane / R) + 0..3]      B[k = 4 * (lane / R) + 0..3][j = lane % R]
//   32 8    D[i = 4 * G * (r / 4) + 4 * (lane / R) + r % 4][j = lane % R]  in register r
//   16 16   with G = 64 / R lane groups
//
// (CDNA3 ISA, "Matrix Arithmetic Instructions": layouts of 32x32x8 and 16x16x16.) Four consecutive D
// registers are thus, packed, the B fragment of 4 * G rows.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include "target/Chips.h"

namespace sluice {

struct MfmaLayout {
  unsigned rows; // 32 or 16

  unsigned groups() const { return 64 / rows; }
  unsigned depth() const { return 4 * groups(); }
  unsigned results() const { return rows * rows / 64; } // registers of D
  MfmaShape shape() const { return {rows, rows, depth()}; }

  /// Row i of D in register r, but for 4 * (lane / rows).
  unsigned rowOf(unsigned r) const { return depth() * (r / 4) + r % 4; }
};

} // namespace sluice

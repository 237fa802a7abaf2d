//===- mfma_paths.h - what the routines behind mfma() share ---------------------------------------------===//
//
// The sum of one group of products, as CDNA3 forms it, for one element of D; and the vector routines that do
// the same for 8 or 16 elements at a time. The vector routines hand single elements to redo_element when one
// of the rare cases turns up that they do not carry (an Inf or NaN in C, exponents too far apart for int8).
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include "emulator/exec/mfma.h"

namespace sluice::emulator::detail {

/// Products that are summed exactly before the accumulator comes in.
constexpr uint32_t mfma_group = 8;

/// The bits every NaN result has.
constexpr uint32_t canonical_nan = 0x7fc00000;

/// The 16-bit element of an A or B operand, by the index of element in its lane.
inline uint16_t half_element(const uint32_t *registers, uint32_t lane, uint32_t element) {
  return uint16_t(registers[(element / 2) * 64 + lane] >> (16 * (element % 2)));
}

/// Redoes one element of D (row i, column j of a block) for one group, from the operands' registers.
uint32_t redo_element(const MfmaShape &shape, const uint32_t *a, const uint32_t *b, uint32_t block,
                      uint32_t i, uint32_t j, uint32_t group, uint32_t c);

/// Register and first lane of row i of a block of C; its columns lie in consecutive lanes.
inline uint32_t c_row(const MfmaShape &shape, uint32_t block, uint32_t i) {
  if (shape.m == 4) return i * 64 + 4 * block;
  const uint32_t lane_groups = 64 / shape.n;
  const uint32_t register_index = block * (shape.m * shape.n / 64u) + 4 * (i / (4 * lane_groups)) + i % 4;
  return register_index * 64 + shape.n * ((i / 4) % lane_groups);
}

// d, a, b and c as in mfma(); d does not overlap a or b, and c is d, apart from d, or null. Shapes of 16 or
// 32 columns; a routine returns false, with nothing written, when A or B holds an Inf or a NaN.
bool mfma_half_avx2(const MfmaShape &shape, uint32_t *d, const uint32_t *a, const uint32_t *b,
                    const uint32_t *c, uint32_t c_constant);
bool mfma_half_avx512(const MfmaShape &shape, uint32_t *d, const uint32_t *a, const uint32_t *b,
                      const uint32_t *c, uint32_t c_constant);
void mfma_single_avx2(const MfmaShape &shape, uint32_t *d, const uint32_t *a, const uint32_t *b,
                      const uint32_t *c, uint32_t c_constant);
void mfma_single_avx512(const MfmaShape &shape, uint32_t *d, const uint32_t *a, const uint32_t *b,
                        const uint32_t *c, uint32_t c_constant);

} // namespace sluice::emulator::detail

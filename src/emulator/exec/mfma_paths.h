//===- mfma_paths.h - shared by the routines that implement mfma() --------------------------------------===//
//
// The layout of elements; the plain routines, which execute every shape; and the vector routines, which do
// the same for 8 or 16 elements at a time. The vector routines pass single elements to redo_element in the
// rare cases that they do not support (an Inf or NaN in C, exponents too far apart for int8).
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include <cassert>

#include "emulator/exec/mfma.h"

namespace sluice::emulator::detail {

/// Products of f16 and bf16 that are summed exactly before the accumulator is added.
constexpr uint32_t mfma_group = 8;
/// The same for fp8 and bf8.
constexpr uint32_t mfma_group_8_bit = 16;

/// The bits of every NaN result.
constexpr uint32_t canonical_nan = 0x7fc00000;

//===--- Layout -----------------------------------------------------------------------------------------===//

// A lane holds runs of consecutive k; the next run is in the next lane that has the same row (column).

inline uint32_t a_run(const MfmaShape &shape) {
  return shape.sparse ? 4 : shape.a_elements();
}
inline uint32_t b_run(const MfmaShape &shape) {
  return shape.sparse ? 8 : shape.b_elements();
}
/// Lanes that share a row of A of a block.
inline uint32_t runs_per_k_step(const MfmaShape &shape) {
  return 64u / (uint32_t(shape.m) * shape.blocks);
}

struct ElementPlace {
  uint32_t lane;
  uint32_t element;
};
/// The place of element k of row (column) `index` of a block of A (B).
inline ElementPlace input_place(const MfmaShape &shape, uint32_t run, uint32_t block, uint32_t index,
                                uint32_t k) {
  const uint32_t lanes = runs_per_k_step(shape);
  const uint32_t lane = index + shape.m * (block + shape.blocks * (k / run % lanes));
  return {lane, k / run / lanes * run + k % run};
}

/// An element of 8, 16 or 32 bits.
inline uint32_t element_bits(const uint32_t *registers, ElementPlace at, uint32_t bits) {
  assert(bits == 8 || bits == 16 || bits == 32);
  const uint32_t first = at.element * bits;
  return registers[first / 32 * 64 + at.lane] >> (first % 32) & (~0u >> (32 - bits));
}

/// Register and first lane of row i of a 32-bit block of C; its columns are in consecutive lanes.
inline uint32_t c_row(const MfmaShape &shape, uint32_t block, uint32_t i) {
  if (shape.m == 4) return i * 64 + 4 * block;
  const uint32_t lane_groups = 64 / shape.n;
  const uint32_t register_index = block * (shape.m * shape.n / 64u) + 4 * (i / (4 * lane_groups)) + i % 4;
  return register_index * 64 + shape.n * ((i / 4) % lane_groups);
}

//===--- Routines ---------------------------------------------------------------------------------------===//

/// What a routine reads and writes, as in mfma(), with the modifiers already applied to A, B and C. d does
/// not overlap a, b or the index; c is d, does not overlap d, or is null.
struct MfmaOperands {
  uint32_t *d;
  const uint32_t *a;
  const uint32_t *b;
  const uint32_t *c;
  uint64_t c_constant;
  const uint32_t *index; // SMFMAC
  uint32_t index_shift;  // bits below the index set in use
};

void mfma_portable(const MfmaShape &shape, const MfmaOperands &operands);

/// Redoes one element of D (row i, column j of a block) for one group of f16 or bf16, from the operands'
/// registers.
uint32_t redo_element(const MfmaShape &shape, const uint32_t *a, const uint32_t *b, uint32_t block,
                      uint32_t i, uint32_t j, uint32_t group, uint32_t c);

// Dense shapes of 16 or 32 columns. If A or B holds an Inf or a NaN, a routine that returns a bool writes
// nothing and returns false.
bool mfma_half_avx2(const MfmaShape &shape, uint32_t *d, const uint32_t *a, const uint32_t *b,
                    const uint32_t *c, uint32_t c_constant);
bool mfma_half_avx512(const MfmaShape &shape, uint32_t *d, const uint32_t *a, const uint32_t *b,
                      const uint32_t *c, uint32_t c_constant);
void mfma_single_avx2(const MfmaShape &shape, uint32_t *d, const uint32_t *a, const uint32_t *b,
                      const uint32_t *c, uint32_t c_constant);
void mfma_single_avx512(const MfmaShape &shape, uint32_t *d, const uint32_t *a, const uint32_t *b,
                        const uint32_t *c, uint32_t c_constant);
bool mfma_8_bit_avx2(const MfmaShape &shape, const MfmaOperands &operands);
bool mfma_8_bit_avx512(const MfmaShape &shape, const MfmaOperands &operands);

} // namespace sluice::emulator::detail

//===- mfma.h - matrix fused multiply-add, shape by shape -----------------------------------------------===//
//
// One routine over (M, N, K, blocks, input types) executes every MFMA and SMFMAC shape on the registers of
// one wave. Sums follow the published bit-exact model of CDNA3, so results equal the hardware's to the last
// bit, and every fast path equals the plain model bit for bit. MFMA ignores EXEC: all 64 lanes take part.
//
// A register is a row of 64 dwords: register r of lane l is row[r * 64 + l].
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include <cstdint>

#include "emulator/isa/mfma_shapes.h"

namespace sluice::emulator {

/// Other inputs.
struct MfmaOptions {
  MfmaModifiers modifiers = {};    // mfma_refusal must accept them
  bool flush_inputs = false;       // f32: subnormals of A and B count as zeros (MODE)
  const uint32_t *index = nullptr; // SMFMAC: the index register
};

/// d = a * b + c. Operands may overlap in any way: everything is read before anything is written. If c is
/// null, every element of C is `c_constant` (an inline constant).
void mfma(const MfmaShape &shape, uint32_t *d, const uint32_t *a, const uint32_t *b, const uint32_t *c,
          uint64_t c_constant = 0, const MfmaOptions &options = {});

/// Whether each pair of indices that SMFMAC selects is in ascending order, as the hardware requires.
bool mfma_index_valid(const MfmaShape &shape, const MfmaModifiers &modifiers, const uint32_t *index);

/// The element that a lane's register holds. For A: row i and k (among those stored); for B: k and column j;
/// for C and D: i and j.
struct MfmaElement {
  uint16_t block;
  uint16_t row;
  uint16_t column;
};
/// `element` counts the elements in a lane: low bits first, then the next register.
MfmaElement mfma_a_element(const MfmaShape &shape, uint32_t lane, uint32_t element);
MfmaElement mfma_b_element(const MfmaShape &shape, uint32_t lane, uint32_t element);
MfmaElement mfma_c_element(const MfmaShape &shape, uint32_t lane, uint32_t element);

/// The instruction sets that have a routine. `mfma` uses the best one the processor has; the tests run each.
enum class MfmaPath : uint8_t { portable, avx2, avx512 };
bool mfma_path_available(MfmaPath path);
void mfma_on_path(MfmaPath path, const MfmaShape &shape, uint32_t *d, const uint32_t *a, const uint32_t *b,
                  const uint32_t *c, uint64_t c_constant = 0, const MfmaOptions &options = {});

} // namespace sluice::emulator

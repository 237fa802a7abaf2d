//===- mfma.h - matrix fused multiply-add, shape by shape -----------------------------------------------===//
//
// One routine over (M, N, K, blocks, input type) executes every MFMA shape on the registers of one wave.
// Sums follow the published bit-exact model of CDNA3, so results equal the hardware's to the last bit; every
// fast path is bit-equal to the plain model. MFMA ignores EXEC: all 64 lanes take part.
//
// A register is a row of 64 dwords: register r of lane l is row[r * 64 + l].
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace sluice::emulator {

enum class MfmaInput : uint8_t { f16, bf16, f32 };

struct MfmaShape {
  uint16_t m;
  uint16_t n;
  uint16_t k;
  uint16_t blocks;
  MfmaInput input;
  /// Passes of four clocks the matrix core is busy: what the wait states between instructions count in.
  uint8_t passes;

  /// Elements of A (and of B) that one lane holds, consecutive in k.
  uint32_t lane_elements() const { return uint32_t(m) * k * blocks / 64u; }
  /// Registers of A (and of B), and of C (and of D), per lane.
  uint32_t a_registers() const { return input == MfmaInput::f32 ? lane_elements() : lane_elements() / 2u; }
  uint32_t c_registers() const { return uint32_t(m) * n * blocks / 64u; }
  uint64_t multiply_adds() const { return uint64_t(m) * n * k * blocks; }

  friend bool operator==(const MfmaShape &, const MfmaShape &) = default;
};

/// The shape of an MFMA mnemonic as the assembler prints it ("v_mfma_f32_32x32x8_f16"; the older spellings
/// "v_mfma_f32_32x32x8f16" and "v_mfma_f32_32x32x8bf16_1k", either case and an "_e64" ending are understood),
/// or nothing for anything this machine does not execute. The bf16 shapes of half the depth that gfx90a still
/// had ("v_mfma_f32_32x32x4bf16") do not exist on gfx942.
std::optional<MfmaShape> mfma_shape(std::string_view mnemonic);

/// Every shape the machine executes, with the assembler's mnemonic.
struct MfmaInstruction {
  std::string_view mnemonic;
  MfmaShape shape;
};
std::span<const MfmaInstruction> mfma_instructions();

/// The modifier fields of the encoding.
struct MfmaModifiers {
  uint8_t cbsz = 0;
  uint8_t abid = 0;
  uint8_t blgp = 0;
};

/// Why the machine refuses these modifiers with this shape; empty when it executes them.
std::string mfma_refusal(const MfmaShape &shape, const MfmaModifiers &modifiers);

/// d = a * b + c. Operands may overlap in any way: everything is read before anything is written. c may be
/// null, and is then `c_constant` in every element (an inline constant).
void mfma(const MfmaShape &shape, uint32_t *d, const uint32_t *a, const uint32_t *b, const uint32_t *c,
          uint32_t c_constant = 0);

/// Which element a lane's register holds. For A: row i and k; for B: k and column j; for C and D: i and j.
struct MfmaElement {
  uint16_t block;
  uint16_t row;
  uint16_t column;
};
/// `element` counts the elements in a lane: two per register for 16-bit inputs, low half first.
MfmaElement mfma_a_element(const MfmaShape &shape, uint32_t lane, uint32_t element);
MfmaElement mfma_b_element(const MfmaShape &shape, uint32_t lane, uint32_t element);
MfmaElement mfma_c_element(const MfmaShape &shape, uint32_t lane, uint32_t element);

/// The instruction sets a routine exists for. `mfma` uses the best one the processor has; the tests run each.
enum class MfmaPath : uint8_t { portable, avx2, avx512 };
bool mfma_path_available(MfmaPath path);
void mfma_on_path(MfmaPath path, const MfmaShape &shape, uint32_t *d, const uint32_t *a, const uint32_t *b,
                  const uint32_t *c, uint32_t c_constant = 0);

} // namespace sluice::emulator

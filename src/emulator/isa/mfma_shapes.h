//===- mfma_shapes.h - the MFMA and SMFMAC instructions -------------------------------------------------===//
//
// One row per instruction: its extents, types and passes. Everything else about it follows from these.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace sluice::emulator {

enum class MfmaInput : uint8_t { f16, bf16, f32, xf32, f64, i8, fp8, bf8 };
constexpr uint32_t input_bits(MfmaInput input) {
  switch (input) {
  case MfmaInput::f64:
    return 64;
  case MfmaInput::f32:
  case MfmaInput::xf32:
    return 32;
  case MfmaInput::f16:
  case MfmaInput::bf16:
    return 16;
  default:
    return 8;
  }
}

/// As in mnemonics.
std::string_view input_name(MfmaInput input);

/// The unit that executes a shape; the wait states after the instruction depend on it.
enum class MatrixUnit : uint8_t { xdl, sgemm, dgemm };

struct MfmaShape {
  uint16_t m;
  uint16_t n;
  uint16_t k;
  uint16_t blocks;
  MfmaInput input;   // type of A
  MfmaInput b_input; // type of B; has the width of A's
  /// Passes of four clocks that the matrix core is busy. Wait states are counted in these.
  uint8_t passes;
  /// SMFMAC: two of four consecutive k of a row of A are stored, and an index register says which. D is also
  /// the accumulator.
  bool sparse;

  /// Stored elements of a row of A.
  uint32_t stored_k() const { return sparse ? k / 2u : k; }
  /// Elements of A, and of B, that one lane holds.
  uint32_t a_elements() const { return uint32_t(m) * stored_k() * blocks / 64u; }
  uint32_t b_elements() const { return uint32_t(n) * k * blocks / 64u; }
  /// Registers per lane of A, of B, and of C (and of D).
  uint32_t a_registers() const { return a_elements() * input_bits(input) / 32u; }
  uint32_t b_registers() const { return b_elements() * input_bits(b_input) / 32u; }
  uint32_t c_registers() const { return uint32_t(m) * n * blocks / 64u * (input == MfmaInput::f64 ? 2 : 1); }
  uint64_t multiply_adds() const { return uint64_t(m) * n * stored_k() * blocks; }
  /// Sets of indices in an index register: one for each set of A registers that it serves.
  uint32_t index_sets() const { return input_bits(input) == 16 ? 4 : 2; }
  MatrixUnit unit() const {
    return input == MfmaInput::f64   ? MatrixUnit::dgemm
           : input == MfmaInput::f32 ? MatrixUnit::sgemm
                                     : MatrixUnit::xdl;
  }

  friend bool operator==(const MfmaShape &, const MfmaShape &) = default;
};

/// By the mnemonic as LLVM prints it; none for other instructions.
std::optional<MfmaShape> mfma_shape(std::string_view mnemonic);

/// Every shape the machine executes, with the assembler's mnemonic.
struct MfmaInstruction {
  std::string_view mnemonic;
  MfmaShape shape;
};
inline constexpr size_t mfma_instruction_count = 46;
std::span<const MfmaInstruction, mfma_instruction_count> mfma_instructions();

/// The modifier fields of the encoding.
struct MfmaModifiers {
  uint8_t cbsz = 0; // 2^CBSZ blocks take the A of one of them; SMFMAC: not 0 selects the first set of indices
  uint8_t abid = 0; // which of them; SMFMAC: the set of indices
  uint8_t blgp = 0; // pattern of lanes that B is read from; f64: negates A, B, C

  bool none() const { return (cbsz | abid | blgp) == 0; }
};

/// Why the machine refuses these modifiers for this shape; empty if it executes them.
std::string mfma_refusal(const MfmaShape &shape, const MfmaModifiers &modifiers);

} // namespace sluice::emulator

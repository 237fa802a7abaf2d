//===- mfma_shapes.cpp - the MFMA and SMFMAC instructions, and their modifiers --------------------------===//
#include "emulator/isa/mfma_shapes.h"

namespace sluice::emulator {

namespace {

constexpr MfmaShape dense(uint16_t m, uint16_t k, uint16_t blocks, MfmaInput a, MfmaInput b, uint8_t passes) {
  return {m, m, k, blocks, a, b, passes, false};
}
constexpr MfmaShape dense(uint16_t m, uint16_t k, uint16_t blocks, MfmaInput input, uint8_t passes) {
  return dense(m, k, blocks, input, input, passes);
}
constexpr MfmaShape sparse(uint16_t m, uint16_t k, MfmaInput a, MfmaInput b, uint8_t passes) {
  return {m, m, k, 1, a, b, passes, true};
}

using enum MfmaInput;
constexpr MfmaInstruction instruction_table[] = {
    // mnemonic                            m   k  blocks input passes
    {"v_mfma_f32_32x32x1_2b_f32", dense(32, 1, 2, f32, 16)},
    {"v_mfma_f32_16x16x1_4b_f32", dense(16, 1, 4, f32, 8)},
    {"v_mfma_f32_4x4x1_16b_f32", dense(4, 1, 16, f32, 2)},
    {"v_mfma_f32_32x32x2_f32", dense(32, 2, 1, f32, 16)},
    {"v_mfma_f32_16x16x4_f32", dense(16, 4, 1, f32, 8)},
    {"v_mfma_f32_32x32x4_2b_f16", dense(32, 4, 2, f16, 16)},
    {"v_mfma_f32_16x16x4_4b_f16", dense(16, 4, 4, f16, 8)},
    {"v_mfma_f32_4x4x4_16b_f16", dense(4, 4, 16, f16, 2)},
    {"v_mfma_f32_32x32x8_f16", dense(32, 8, 1, f16, 8)},
    {"v_mfma_f32_16x16x16_f16", dense(16, 16, 1, f16, 4)},
    {"v_mfma_f32_32x32x4_2b_bf16", dense(32, 4, 2, bf16, 16)},
    {"v_mfma_f32_16x16x4_4b_bf16", dense(16, 4, 4, bf16, 8)},
    {"v_mfma_f32_4x4x4_16b_bf16", dense(4, 4, 16, bf16, 2)},
    {"v_mfma_f32_32x32x8_bf16", dense(32, 8, 1, bf16, 8)},
    {"v_mfma_f32_16x16x16_bf16", dense(16, 16, 1, bf16, 4)},
    {"v_mfma_i32_32x32x4_2b_i8", dense(32, 4, 2, i8, 16)},
    {"v_mfma_i32_16x16x4_4b_i8", dense(16, 4, 4, i8, 8)},
    {"v_mfma_i32_4x4x4_16b_i8", dense(4, 4, 16, i8, 2)},
    {"v_mfma_i32_32x32x16_i8", dense(32, 16, 1, i8, 8)},
    {"v_mfma_i32_16x16x32_i8", dense(16, 32, 1, i8, 4)},
    {"v_mfma_f32_32x32x4_xf32", dense(32, 4, 1, xf32, 8)},
    {"v_mfma_f32_16x16x8_xf32", dense(16, 8, 1, xf32, 4)},
    {"v_mfma_f64_16x16x4_f64", dense(16, 4, 1, f64, 8)},
    {"v_mfma_f64_4x4x4_4b_f64", dense(4, 4, 4, f64, 4)},
    {"v_mfma_f32_32x32x16_fp8_fp8", dense(32, 16, 1, fp8, fp8, 8)},
    {"v_mfma_f32_32x32x16_fp8_bf8", dense(32, 16, 1, fp8, bf8, 8)},
    {"v_mfma_f32_32x32x16_bf8_fp8", dense(32, 16, 1, bf8, fp8, 8)},
    {"v_mfma_f32_32x32x16_bf8_bf8", dense(32, 16, 1, bf8, bf8, 8)},
    {"v_mfma_f32_16x16x32_fp8_fp8", dense(16, 32, 1, fp8, fp8, 4)},
    {"v_mfma_f32_16x16x32_fp8_bf8", dense(16, 32, 1, fp8, bf8, 4)},
    {"v_mfma_f32_16x16x32_bf8_fp8", dense(16, 32, 1, bf8, fp8, 4)},
    {"v_mfma_f32_16x16x32_bf8_bf8", dense(16, 32, 1, bf8, bf8, 4)},
    {"v_smfmac_f32_32x32x16_f16", sparse(32, 16, f16, f16, 8)},
    {"v_smfmac_f32_16x16x32_f16", sparse(16, 32, f16, f16, 4)},
    {"v_smfmac_f32_32x32x16_bf16", sparse(32, 16, bf16, bf16, 8)},
    {"v_smfmac_f32_16x16x32_bf16", sparse(16, 32, bf16, bf16, 4)},
    {"v_smfmac_i32_32x32x32_i8", sparse(32, 32, i8, i8, 8)},
    {"v_smfmac_i32_16x16x64_i8", sparse(16, 64, i8, i8, 4)},
    {"v_smfmac_f32_32x32x32_fp8_fp8", sparse(32, 32, fp8, fp8, 8)},
    {"v_smfmac_f32_32x32x32_fp8_bf8", sparse(32, 32, fp8, bf8, 8)},
    {"v_smfmac_f32_32x32x32_bf8_fp8", sparse(32, 32, bf8, fp8, 8)},
    {"v_smfmac_f32_32x32x32_bf8_bf8", sparse(32, 32, bf8, bf8, 8)},
    {"v_smfmac_f32_16x16x64_fp8_fp8", sparse(16, 64, fp8, fp8, 4)},
    {"v_smfmac_f32_16x16x64_fp8_bf8", sparse(16, 64, fp8, bf8, 4)},
    {"v_smfmac_f32_16x16x64_bf8_fp8", sparse(16, 64, bf8, fp8, 4)},
    {"v_smfmac_f32_16x16x64_bf8_bf8", sparse(16, 64, bf8, bf8, 4)},
};

std::string refusal(const char *field, uint32_t value, const char *reason) {
  return std::string(field) + " = " + std::to_string(value) + " " + reason;
}

} // namespace

std::span<const MfmaInstruction, mfma_instruction_count> mfma_instructions() {
  return instruction_table;
}

std::optional<MfmaShape> mfma_shape(std::string_view mnemonic) {
  for (const MfmaInstruction &instruction : instruction_table)
    if (instruction.mnemonic == mnemonic) return instruction.shape;
  return std::nullopt;
}

std::string_view input_name(MfmaInput input) {
  constexpr std::string_view names[] = {"f16", "bf16", "f32", "xf32", "f64", "i8", "fp8", "bf8"};
  return names[size_t(input)];
}

std::string mfma_refusal(const MfmaShape &shape, const MfmaModifiers &modifiers) {
  const auto [cbsz, abid, blgp] = modifiers;
  if (shape.sparse) {
    if (cbsz > 3) return refusal("cbsz", cbsz, "is not defined for SMFMAC");
    if (abid >= shape.index_sets()) return refusal("abid", abid, "is beyond the sets of an index register");
    if (blgp != 0) return refusal("blgp", blgp, "is not defined for SMFMAC");
    return {};
  }
  const bool negates = shape.input == f64;
  // The shapes that gfx90a already had support lane patterns; later ones do not.
  const bool patterns = shape.input == f16 || shape.input == bf16 || shape.input == f32 ||
                        (shape.input == i8 && shape.blocks > 1);
  if (cbsz != 0 && (negates || (1u << cbsz) > shape.blocks))
    return refusal("cbsz", cbsz, "asks for more blocks than can share A in this shape");
  if (abid >= 1u << cbsz) return refusal("abid", abid, "is not one of the blocks that share A");
  if (blgp != 0 && !patterns && !negates) return refusal("blgp", blgp, "is not defined for this shape");
  return {};
}

} // namespace sluice::emulator

//===- mfma_shapes.cpp - the MFMA and SMFMAC instructions, their names and modifiers --------------------===//
#include "emulator/isa/mfma_shapes.h"

#include <map>

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

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

/// One spelling for all variants of a mnemonic: lower case, without the separators, block counts and endings
/// that differ between assembler dialects ("vmfmaf3232x32x8bf16").
std::string plain_spelling(std::string_view mnemonic) {
  std::string text;
  for (char c : mnemonic)
    text += char(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  if (text.ends_with("_e64")) text.resize(text.size() - 4);
  const bool deep = text.ends_with("_1k");
  if (deep) text.resize(text.size() - 3);
  // Without "_1k", the older spelling of a bf16 shape names an instruction of gfx90a with half the depth.
  if (!deep && text.ends_with("bf16") && text.size() > 4 && is_digit(text[text.size() - 5])) return {};
  // "32x32x4_2b_f16" and "32x32x8_f16": the block count follows from the three extents.
  std::string plain;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '_') {
      plain += text[i];
      continue;
    }
    size_t end = i + 1;
    while (end < text.size() && is_digit(text[end]))
      ++end;
    const bool blocks = end > i + 1 && text.compare(end, 2, "b_") == 0;
    if (blocks) i = end;
  }
  return plain;
}

const std::map<std::string, MfmaShape, std::less<>> &shapes_by_spelling() {
  static const auto shapes = [] {
    std::map<std::string, MfmaShape, std::less<>> result;
    for (const MfmaInstruction &instruction : instruction_table)
      result[plain_spelling(instruction.mnemonic)] = instruction.shape;
    return result;
  }();
  return shapes;
}

std::string refusal(const char *field, uint32_t value, const char *reason) {
  return std::string(field) + " = " + std::to_string(value) + " " + reason;
}

} // namespace

std::span<const MfmaInstruction, mfma_instruction_count> mfma_instructions() {
  return instruction_table;
}

std::optional<MfmaShape> mfma_shape(std::string_view mnemonic) {
  const auto found = shapes_by_spelling().find(plain_spelling(mnemonic));
  if (found == shapes_by_spelling().end()) return std::nullopt;
  return found->second;
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

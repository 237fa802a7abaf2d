//===- encoding.h - the fields of gfx942 instructions ---------------------------------------------------===//
//
// Splits the one to three dwords of an instruction into the fields of its format, by the tables of the ISA
// manual. The disassembler decides which instruction it is, and whether it exists at all. The fields have the
// manual's names.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace sluice::emulator {

enum class Format : uint8_t {
  sop1,
  sop2,
  sopc,
  sopk,
  sopp,
  smem,
  vop1,
  vop2,
  vopc,
  vop3, // VOP3A and VOP3B
  vop3p,
  mai, // MFMA and accvgpr moves: VOP3P with fields of its own
  ds,
  mubuf,
  mtbuf,
  flat,
  vintrp,
  unknown,
};
std::string_view format_name(Format format);

Format format_of(uint32_t first_dword);

/// 9-bit operand codes of the manual.
enum : uint16_t {
  code_vccz = 251,
  code_execz = 252,
  code_scc = 253,
  code_literal = 255,
  code_sdwa = 249,
  code_dpp = 250,
  code_first_vgpr = 256,
};

/// All fields of all formats; a format fills its own and leaves the rest 0.
struct Fields {
  Format format = Format::unknown;
  uint16_t op = 0;
  uint16_t dst = 0;     // SDST, VDST, SDATA: a register number
  uint16_t sdst = 0;    // VOP3B; VOPC in VOP3 and SDWA
  uint16_t src[3] = {}; // operand codes; for DS, FLAT and MUBUF register numbers: address, data0, data1
  int32_t imm = 0;      // SIMM16; memory offsets
  uint32_t literal = 0;
  bool has_literal = false;

  uint8_t negate = 0, absolute = 0, output_scale = 0, op_sel = 0, op_sel_hi = 0, negate_high = 0;
  bool clamp = false;

  bool is_sdwa = false, is_dpp = false;
  bool sdwa_has_sdst = false;
  uint8_t sdwa_dst = 6, sdwa_unused = 0, sdwa_src0 = 6, sdwa_src1 = 6;
  bool sdwa_sext0 = false, sdwa_sext1 = false;
  uint16_t dpp_control = 0;
  bool dpp_bound_zero = false;
  uint8_t dpp_bank_mask = 15, dpp_row_mask = 15;

  uint8_t acc = 0;     // one bit per source; bit 0 for the data of memory instructions
  bool acc_cd = false; // MAI
  uint8_t cbsz = 0, abid = 0, blgp = 0;

  uint8_t offset0 = 0, offset1 = 0; // DS
  uint16_t srsrc = 0;               // MUBUF, MTBUF: first scalar register
  uint16_t soffset = 0;             // MUBUF, SMEM: operand code
  bool soffset_enable = false;      // SMEM
  bool imm_enable = false;          // SMEM
  bool offen = false, idxen = false, lds = false;
  bool sc0 = false, sc1 = false, nt = false;  // MUBUF, MTBUF, FLAT: the cache policy; SC0 also: SMEM's GLC
  uint8_t data_format = 0, number_format = 0; // MTBUF
  uint8_t segment = 0;                        // FLAT: 0 flat, 1 scratch, 2 global
  bool scratch_vaddr = false;                 // FLAT: the address register is used (SVE)
};

/// `dwords` holds the whole instruction.
Fields split_fields(std::span<const uint32_t> dwords);

/// The dword of source k, a pair, for the low result (by op_sel) or the high one (by op_sel_hi). A move of
/// pairs takes the low result from its first source and the high one from its second, at the dword that
/// op_sel chooses.
constexpr std::optional<uint32_t> chosen_dword(bool moves, uint32_t op_sel, uint32_t op_sel_hi, uint32_t k,
                                               bool for_high) {
  if (moves && for_high != (k == 1)) return std::nullopt;
  return (for_high && !moves ? op_sel_hi : op_sel) >> k & 1;
}

/// LLVM's branch over more than 2^15 dwords, between whose instructions nothing jumps:
///   s_getpc_b64 s[n:n+1]; s_add_u32 sn, sn, literal; s_addc_u32 sn+1, sn+1, literal; s_setpc_b64 s[n:n+1]
constexpr size_t long_branch_dwords = 6;
/// Its target. `dwords` end with the s_setpc_b64 at `address`; none for other code.
std::optional<uint64_t> long_branch_target(std::span<const uint32_t, long_branch_dwords> dwords,
                                           uint64_t address);

} // namespace sluice::emulator

//===- encoding.cpp - the fields of gfx942 instructions -------------------------------------------------===//
//
// One function per format, in the order of the manual's chapter on microcode formats.
//
//===----------------------------------------------------------------------------------------------------===//
#include "emulator/isa/encoding.h"

#include <algorithm>
#include <array>

namespace sluice::emulator {

namespace {

uint32_t bits(uint32_t word, uint32_t high, uint32_t low) {
  return (word >> low) & uint32_t((uint64_t(1) << (high - low + 1)) - 1);
}

bool bit(uint32_t word, uint32_t position) {
  return (word >> position) & 1;
}

int32_t sign_extend(uint32_t value, uint32_t width) {
  return int32_t(value << (32 - width)) >> (32 - width);
}

struct Words {
  uint32_t first;
  uint32_t second;
  uint32_t third;
};

void take_literal(Fields &f, const Words &w) {
  for (uint16_t code : f.src)
    if (code == code_literal) f.has_literal = true;
  if (f.has_literal) f.literal = w.second;
}

// DPP and SDWA replace SRC0 and put the remaining fields into the second dword.
void take_lane_control(Fields &f, const Words &w) {
  const uint32_t x = w.second;
  if (f.src[0] == code_dpp) {
    f.is_dpp = true;
    f.src[0] = uint16_t(code_first_vgpr + bits(x, 7, 0));
    f.dpp_control = uint16_t(bits(x, 16, 8));
    f.dpp_bound_zero = bit(x, 19);
    f.negate = uint8_t(bit(x, 20) | bit(x, 22) << 1);
    f.absolute = uint8_t(bit(x, 21) | bit(x, 23) << 1);
    f.dpp_bank_mask = uint8_t(bits(x, 27, 24));
    f.dpp_row_mask = uint8_t(bits(x, 31, 28));
  } else if (f.src[0] == code_sdwa) {
    f.is_sdwa = true;
    f.src[0] = uint16_t(bits(x, 7, 0) + (bit(x, 23) ? 0 : code_first_vgpr));
    if (bit(x, 31)) f.src[1] = uint16_t(f.src[1] - code_first_vgpr);
    if (f.format == Format::vopc) {
      f.sdwa_has_sdst = bit(x, 15);
      f.sdst = uint16_t(bits(x, 14, 8));
    } else {
      f.sdwa_dst = uint8_t(bits(x, 10, 8));
      f.sdwa_unused = uint8_t(bits(x, 12, 11));
      f.clamp = bit(x, 13);
      f.output_scale = uint8_t(bits(x, 15, 14));
    }
    f.sdwa_src0 = uint8_t(bits(x, 18, 16));
    f.sdwa_sext0 = bit(x, 19);
    f.negate = uint8_t(bit(x, 20) | bit(x, 28) << 1);
    f.absolute = uint8_t(bit(x, 21) | bit(x, 29) << 1);
    f.sdwa_src1 = uint8_t(bits(x, 26, 24));
    f.sdwa_sext1 = bit(x, 27);
  }
}

void split_vop3(Fields &f, const Words &w) {
  f.op = uint16_t(bits(w.first, 25, 16));
  f.dst = uint16_t(bits(w.first, 7, 0));
  f.sdst = uint16_t(bits(w.first, 14, 8)); // VOP3B; in VOP3A the same bits are ABS and OP_SEL
  f.absolute = uint8_t(bits(w.first, 10, 8));
  f.op_sel = uint8_t(bits(w.first, 14, 11));
  f.clamp = bit(w.first, 15);
  for (uint32_t i = 0; i < 3; ++i)
    f.src[i] = uint16_t(bits(w.second, 9 * i + 8, 9 * i));
  f.output_scale = uint8_t(bits(w.second, 28, 27));
  f.negate = uint8_t(bits(w.second, 31, 29));
}

void split_vop3p(Fields &f, const Words &w) {
  f.op = uint16_t(bits(w.first, 22, 16));
  f.dst = uint16_t(bits(w.first, 7, 0));
  for (uint32_t i = 0; i < 3; ++i)
    f.src[i] = uint16_t(bits(w.second, 9 * i + 8, 9 * i));
  const bool xf32 = f.op == 0x3e || f.op == 0x3f; // MFMA among the codes of VOP3P
  if (f.op >= 0x40 || xf32) {
    f.format = Format::mai;
    f.cbsz = uint8_t(bits(w.first, 10, 8));
    f.abid = uint8_t(bits(w.first, 14, 11));
    f.acc_cd = bit(w.first, 15);
    f.acc = uint8_t(bits(w.second, 28, 27));
    f.blgp = uint8_t(bits(w.second, 31, 29));
    return;
  }
  f.negate_high = uint8_t(bits(w.first, 10, 8));
  f.op_sel = uint8_t(bits(w.first, 13, 11));
  f.op_sel_hi = uint8_t(bit(w.first, 14) << 2 | bits(w.second, 28, 27));
  f.clamp = bit(w.first, 15);
  f.negate = uint8_t(bits(w.second, 31, 29));
}

void split_smem(Fields &f, const Words &w) {
  f.op = uint16_t(bits(w.first, 25, 18));
  f.srsrc = uint16_t(bits(w.first, 5, 0) * 2);
  f.dst = uint16_t(bits(w.first, 12, 6));
  f.soffset_enable = bit(w.first, 14);
  f.sc0 = bit(w.first, 16); // GLC: atomics give the value before
  f.imm_enable = bit(w.first, 17);
  f.imm = sign_extend(bits(w.second, 20, 0), 21);
  // Without IMM the low bits of the offset are the number of a scalar register.
  f.soffset = uint16_t(f.soffset_enable ? bits(w.second, 31, 25) : bits(w.second, 6, 0));
}

void split_ds(Fields &f, const Words &w) {
  f.op = uint16_t(bits(w.first, 24, 17));
  f.offset0 = uint8_t(bits(w.first, 7, 0));
  f.offset1 = uint8_t(bits(w.first, 15, 8));
  f.acc = bit(w.first, 25);
  f.src[0] = uint16_t(bits(w.second, 7, 0));
  f.src[1] = uint16_t(bits(w.second, 15, 8));
  f.src[2] = uint16_t(bits(w.second, 23, 16));
  f.dst = uint16_t(bits(w.second, 31, 24));
}

void split_mubuf(Fields &f, const Words &w) {
  f.op = uint16_t(bits(w.first, 24, 18));
  f.imm = int32_t(bits(w.first, 11, 0));
  f.offen = bit(w.first, 12);
  f.idxen = bit(w.first, 13);
  f.sc0 = bit(w.first, 14);
  f.sc1 = bit(w.first, 15);
  f.lds = bit(w.first, 16);
  f.nt = bit(w.first, 17);
  f.src[0] = uint16_t(bits(w.second, 7, 0));
  f.src[1] = uint16_t(bits(w.second, 15, 8));
  f.dst = f.src[1];
  f.srsrc = uint16_t(bits(w.second, 20, 16) * 4);
  f.acc = bit(w.second, 23);
  f.soffset = uint16_t(bits(w.second, 31, 24));
}

void split_mtbuf(Fields &f, const Words &w) {
  f.op = uint16_t(bits(w.first, 18, 15));
  f.imm = int32_t(bits(w.first, 11, 0));
  f.offen = bit(w.first, 12);
  f.idxen = bit(w.first, 13);
  f.sc0 = bit(w.first, 14);
  f.data_format = uint8_t(bits(w.first, 22, 19));
  f.number_format = uint8_t(bits(w.first, 25, 23));
  f.src[0] = uint16_t(bits(w.second, 7, 0));
  f.src[1] = uint16_t(bits(w.second, 15, 8));
  f.dst = f.src[1];
  f.srsrc = uint16_t(bits(w.second, 20, 16) * 4);
  f.sc1 = bit(w.second, 21);
  f.nt = bit(w.second, 22);
  f.acc = bit(w.second, 23);
  f.soffset = uint16_t(bits(w.second, 31, 24));
}

void split_flat(Fields &f, const Words &w) {
  f.op = uint16_t(bits(w.first, 24, 18));
  f.segment = uint8_t(bits(w.first, 15, 14));
  // FLAT proper has an unsigned offset of 12 bits, the segments a signed one of 13.
  f.imm = f.segment == 0 ? int32_t(bits(w.first, 11, 0)) : sign_extend(bits(w.first, 12, 0), 13);
  f.scratch_vaddr = bit(w.first, 13);
  f.sc0 = bit(w.first, 16);
  f.nt = bit(w.first, 17);
  f.sc1 = bit(w.first, 25);
  f.src[0] = uint16_t(bits(w.second, 7, 0));
  f.src[1] = uint16_t(bits(w.second, 15, 8));
  f.soffset = uint16_t(bits(w.second, 22, 16));
  f.acc = bit(w.second, 23);
  f.dst = uint16_t(bits(w.second, 31, 24));
}

} // namespace

std::string_view format_name(Format format) {
  constexpr std::string_view names[] = {"SOP1", "SOP2",  "SOPC",  "SOPK", "SOPP",   "SMEM",
                                        "VOP1", "VOP2",  "VOPC",  "VOP3", "VOP3P",  "MAI",
                                        "DS",   "MUBUF", "MTBUF", "FLAT", "VINTRP", "unknown"};
  return names[uint32_t(format)];
}

Format format_of(uint32_t x) {
  if (!bit(x, 31)) {
    switch (bits(x, 30, 25)) {
    case 0x3e:
      return Format::vopc;
    case 0x3f:
      return Format::vop1;
    default:
      return Format::vop2;
    }
  }
  switch (bits(x, 31, 23)) {
  case 0x17d:
    return Format::sop1;
  case 0x17e:
    return Format::sopc;
  case 0x17f:
    return Format::sopp;
  default:
    break;
  }
  if (bits(x, 31, 28) == 0xb) return Format::sopk;
  if (bits(x, 31, 30) == 2) return Format::sop2;
  switch (bits(x, 31, 26)) {
  case 0x30:
    return Format::smem;
  case 0x34:
    return bits(x, 25, 23) == 7 ? Format::vop3p : Format::vop3;
  case 0x35:
    return Format::vintrp;
  case 0x36:
    return Format::ds;
  case 0x37:
    return Format::flat;
  case 0x38:
    return Format::mubuf;
  case 0x3a:
    return Format::mtbuf;
  default:
    return Format::unknown;
  }
}

Fields split_fields(std::span<const uint32_t> dwords) {
  const Words w{dwords.empty() ? 0 : dwords[0], dwords.size() > 1 ? dwords[1] : 0,
                dwords.size() > 2 ? dwords[2] : 0};
  Fields f;
  f.format = format_of(w.first);
  const uint32_t x = w.first;
  switch (f.format) {
  case Format::sop1:
    f.op = uint16_t(bits(x, 15, 8));
    f.dst = uint16_t(bits(x, 22, 16));
    f.src[0] = uint16_t(bits(x, 7, 0));
    take_literal(f, w);
    break;
  case Format::sop2:
    f.op = uint16_t(bits(x, 29, 23));
    f.dst = uint16_t(bits(x, 22, 16));
    f.src[0] = uint16_t(bits(x, 7, 0));
    f.src[1] = uint16_t(bits(x, 15, 8));
    take_literal(f, w);
    break;
  case Format::sopc:
    f.op = uint16_t(bits(x, 22, 16));
    f.src[0] = uint16_t(bits(x, 7, 0));
    f.src[1] = uint16_t(bits(x, 15, 8));
    take_literal(f, w);
    break;
  case Format::sopk:
    f.op = uint16_t(bits(x, 27, 23));
    f.dst = uint16_t(bits(x, 22, 16));
    f.imm = int16_t(x & 0xffff);
    f.literal = w.second; // s_setreg_imm32_b32
    break;
  case Format::sopp:
    f.op = uint16_t(bits(x, 22, 16));
    f.imm = int16_t(x & 0xffff);
    break;
  case Format::smem:
    split_smem(f, w);
    break;
  case Format::vop1:
    f.op = uint16_t(bits(x, 16, 9));
    f.dst = uint16_t(bits(x, 24, 17));
    f.src[0] = uint16_t(bits(x, 8, 0));
    take_literal(f, w);
    take_lane_control(f, w);
    break;
  case Format::vop2:
    f.op = uint16_t(bits(x, 30, 25));
    f.dst = uint16_t(bits(x, 24, 17));
    f.src[0] = uint16_t(bits(x, 8, 0));
    f.src[1] = uint16_t(code_first_vgpr + bits(x, 16, 9));
    take_literal(f, w);
    f.literal = w.second; // v_fmamk and v_fmaak have one without saying so
    take_lane_control(f, w);
    break;
  case Format::vopc:
    f.op = uint16_t(bits(x, 24, 17));
    f.src[0] = uint16_t(bits(x, 8, 0));
    f.src[1] = uint16_t(code_first_vgpr + bits(x, 16, 9));
    take_literal(f, w);
    take_lane_control(f, w);
    break;
  case Format::vop3:
    split_vop3(f, w);
    break;
  case Format::vop3p:
    split_vop3p(f, w);
    break;
  case Format::ds:
    split_ds(f, w);
    break;
  case Format::mubuf:
    split_mubuf(f, w);
    break;
  case Format::mtbuf:
    split_mtbuf(f, w);
    break;
  case Format::flat:
    split_flat(f, w);
    break;
  case Format::mai:
  case Format::vintrp:
  case Format::unknown:
    break;
  }
  return f;
}

std::optional<uint64_t> long_branch_target(std::span<const uint32_t, long_branch_dwords> dwords,
                                           uint64_t address) {
  const uint32_t low = dwords[5] & 0xff, high = low + 1;
  const std::array<uint32_t, long_branch_dwords> expected = {0xbe801c00 | low << 16,
                                                             0x8000ff00 | low << 16 | low,
                                                             dwords[2],
                                                             0x8200ff00 | high << 16 | high,
                                                             dwords[4],
                                                             0xbe801d00 | low};
  if (!std::ranges::equal(dwords, expected)) return std::nullopt;
  const uint64_t behind_getpc = address - 4 * sizeof(uint32_t);
  return behind_getpc + (uint64_t{dwords[4]} << 32 | dwords[2]);
}

} // namespace sluice::emulator

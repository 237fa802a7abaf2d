//===- corpus.cpp - gfx942 instructions of every kind ---------------------------------------------------===//
//
// Encodings of all formats, opcodes and modifiers, drawn at random with a fixed seed. An encoding is kept if
// LLVM decodes it and assembles the text that it prints back to the same bytes, so its meaning is
// unambiguous. One function per format writes the fields of its encoding, each with its meaningful values.
//
//===----------------------------------------------------------------------------------------------------===//
#include "isa/corpus.h"

#include <array>
#include <random>
#include <set>

namespace sluice::test {

namespace {

// Operand codes with special treatment in the assembler's syntax or LLVM's decoder.
constexpr uint32_t code_literal = 255, code_dpp = 250, code_sdwa = 249, code_first_vgpr = 256;
constexpr uint32_t code_m0 = 124, code_exec = 126, code_vcc = 106;
constexpr uint32_t literals[] = {0x12345678, 0x40c00001, 0xffff8000, 0x00003e80};

using Dwords = std::array<uint32_t, 3>;

class Draw {
public:
  explicit Draw(uint32_t seed) : random(seed) {}

  uint32_t below(uint32_t end) { return uint32_t(random() % end); }
  uint32_t field(uint32_t width) { return below(1u << width); }
  /// A field that is 0 in most programs.
  uint32_t modifier(uint32_t width) { return below(3) == 0 ? field(width) : 0; }
  bool rarely() { return below(4) == 0; }

  /// A VGPR; usually one at which a tuple may begin.
  uint32_t vgpr() { return rarely() ? field(8) : field(6) * 4; }
  /// 0 if an instruction does not have this operand: LLVM's decoder requires it for memory instructions.
  uint32_t vgpr_or_none() { return below(2) ? vgpr() : 0; }
  uint32_t sgpr() {
    switch (below(8)) {
    case 0:
      return below(102);
    case 1:
      return code_vcc;
    case 2:
      return code_exec;
    case 3:
      return code_m0;
    case 4:
      return 102 + below(26); // FLAT_SCRATCH, XNACK_MASK, VCC, TTMPs
    default:
      return below(25) * 4;
    }
  }
  /// An 8-bit operand code: a scalar register, a constant, a special value.
  uint32_t scalar_source(bool with_literal) {
    switch (below(8)) {
    case 0:
      return 128 + below(81); // integers
    case 1:
      return 240 + below(9); // floats
    case 2:
      return 235 + below(4); // apertures
    case 3:
      return 251 + below(3); // VCCZ, EXECZ, SCC
    case 4:
      return with_literal ? code_literal : sgpr();
    default:
      return sgpr();
    }
  }
  uint32_t source(bool with_literal) {
    return below(2) ? scalar_source(with_literal) : code_first_vgpr + vgpr();
  }
  uint32_t literal() { return literals[below(4)]; }

private:
  std::mt19937 random;
};

Dwords sop1(Draw &draw, uint32_t op) {
  return {0xbe800000 | draw.sgpr() << 16 | op << 8 | draw.scalar_source(true), draw.literal()};
}

Dwords sop2(Draw &draw, uint32_t op) {
  return {0x80000000 | op << 23 | draw.sgpr() << 16 | draw.scalar_source(true) << 8 |
              draw.scalar_source(true),
          draw.literal()};
}

Dwords sopc(Draw &draw, uint32_t op) {
  return {0xbf000000 | op << 16 | draw.scalar_source(true) << 8 | draw.scalar_source(true), draw.literal()};
}

Dwords sopk(Draw &draw, uint32_t op) {
  // As hwreg(...): registers other than MODE are rarely meaningful.
  const uint32_t imm = draw.below(2) ? draw.field(16) : (draw.field(10) << 6 | 1);
  return {0xb0000000 | op << 23 | draw.sgpr() << 16 | imm, draw.literal()};
}

Dwords sopp(Draw &draw, uint32_t op) {
  const uint32_t widths[] = {0, 1, 4, 8, 16};
  return {0xbf800000 | op << 16 | draw.field(widths[draw.below(5)])};
}

Dwords smem(Draw &draw, uint32_t op) {
  const uint32_t offset_kind = draw.below(3); // IMM, SOFFSET, both
  const bool imm = offset_kind != 1, soffset = offset_kind != 0;
  const uint32_t offset = draw.field(21);
  return {0xc0000000 | op << 18 | uint32_t(imm) << 17 | draw.modifier(1) << 16 | uint32_t(soffset) << 14 |
              (draw.rarely() ? draw.field(7) : draw.below(25) * 4) << 6 | draw.below(25) * 2,
          (imm ? offset : 0) | (soffset ? draw.sgpr() << 25 : 0)};
}

uint32_t dpp(Draw &draw) {
  // quad_perm, the row shifts and rotations, the wave shifts and rotations, mirrors, broadcasts, newbcast
  constexpr std::pair<uint32_t, uint32_t> controls[] = {{0, 256},   {0x101, 15}, {0x111, 15}, {0x121, 15},
                                                        {0x130, 1}, {0x134, 1},  {0x138, 1},  {0x13c, 1},
                                                        {0x140, 2}, {0x142, 2},  {0x150, 16}};
  const auto [first, count] = controls[draw.below(std::size(controls))];
  const uint32_t masks = draw.below(2) ? 0xff : draw.field(8);
  return masks << 24 | draw.modifier(4) << 20 | draw.modifier(1) << 19 | (first + draw.below(count)) << 8 |
         draw.vgpr();
}

// Selections 0 to 6, UNUSED 0 to 2: LLVM crashes on the others.
uint32_t sdwa(Draw &draw, bool compare) {
  const bool scalar0 = draw.rarely();
  const uint32_t source0 = scalar0 ? draw.sgpr() : draw.vgpr();
  const uint32_t destination =
      compare ? (draw.below(2) ? 1u << 15 | draw.below(50) * 2 << 8 : 0)
              : draw.modifier(2) << 14 | draw.modifier(1) << 13 | draw.below(3) << 11 | draw.below(7) << 8;
  return draw.modifier(1) << 29 | draw.modifier(1) << 28 | draw.modifier(1) << 27 | draw.below(7) << 24 |
         uint32_t(scalar0) << 23 | draw.modifier(1) << 21 | draw.modifier(1) << 20 | draw.modifier(1) << 19 |
         draw.below(7) << 16 | destination | source0;
}

/// Source 0 of the 32-bit formats, and the second dword that it needs.
Dwords with_source0(Draw &draw, uint32_t first, bool compare) {
  switch (draw.below(4)) {
  case 0:
    return {first | code_dpp, dpp(draw)};
  case 1: {
    // Only SDWA lets a scalar register replace the VGPR that is source 1.
    const uint32_t x = sdwa(draw, compare);
    return {first | code_sdwa, draw.rarely() ? x | 1u << 31 : x};
  }
  default:
    return {first | draw.source(true), draw.literal()};
  }
}

Dwords vop1(Draw &draw, uint32_t op) {
  return with_source0(draw, 0x7e000000 | (draw.below(5) ? draw.vgpr() : draw.sgpr()) << 17 | op << 9, false);
}

Dwords vop2(Draw &draw, uint32_t op) {
  return with_source0(draw, op << 25 | draw.vgpr() << 17 | draw.vgpr() << 9, false);
}

Dwords vopc(Draw &draw, uint32_t op) {
  return with_source0(draw, 0x7c000000 | op << 17 | draw.vgpr() << 9, true);
}

/// SRC0 to SRC2, at their places in the second dword. More than one scalar operand is usually too many.
uint32_t three_sources(Draw &draw) {
  const uint32_t scalars = draw.below(9); // one bit per source; 0 or 8: none
  uint32_t word = 0;
  for (uint32_t i = 0; i < 3; ++i)
    word |= (scalars >> i & 1 ? draw.scalar_source(false) : code_first_vgpr + draw.vgpr()) << (9 * i);
  return word;
}

Dwords vop3(Draw &draw, uint32_t op) {
  // Comparisons and lane reads have a scalar destination. LLVM crashes on 255 as that of a comparison.
  const bool scalar = op < 0x100 || op == 0x289;
  const uint32_t destination = scalar ? draw.below(51) * 2 : draw.vgpr();
  if (draw.below(3) == 0) return {0xd0000000 | op << 16 | destination, three_sources(draw)};
  // In VOP3B, ABS and OP_SEL are SDST.
  const uint32_t middle = draw.below(2) ? draw.modifier(3) | draw.modifier(4) << 3 : draw.below(51) * 2;
  return {0xd0000000 | op << 16 | draw.modifier(1) << 15 | middle << 8 | destination,
          draw.modifier(3) << 29 | draw.modifier(2) << 27 | three_sources(draw)};
}

Dwords vop3p(Draw &draw, uint32_t op) {
  const uint32_t op_sel_hi = draw.below(2) ? 7 : draw.field(3);
  return {0xd3800000 | op << 16 | draw.modifier(1) << 15 | (op_sel_hi >> 2) << 14 | draw.modifier(3) << 11 |
              draw.modifier(3) << 8 | draw.vgpr(),
          draw.modifier(3) << 29 | (op_sel_hi & 3) << 27 | three_sources(draw)};
}

Dwords mai(Draw &draw, uint32_t op) {
  const uint32_t c = draw.below(3)   ? code_first_vgpr + draw.vgpr()
                     : draw.below(2) ? 128 + draw.below(81)
                                     : 240 + draw.below(9);
  return {0xd3800000 | op << 16 | draw.field(1) << 15 | draw.modifier(4) << 11 | draw.modifier(3) << 8 |
              draw.vgpr(),
          draw.modifier(3) << 29 | draw.field(2) << 27 | c << 18 | (code_first_vgpr + draw.vgpr()) << 9 |
              code_first_vgpr | draw.vgpr()};
}

Dwords ds(Draw &draw, uint32_t op) {
  return {0xd8000000 | draw.modifier(1) << 25 | op << 17 | draw.modifier(1) << 16 | draw.modifier(8) << 8 |
              draw.modifier(8),
          draw.vgpr_or_none() << 24 | draw.vgpr_or_none() << 16 | draw.vgpr_or_none() << 8 |
              draw.vgpr_or_none()};
}

uint32_t buffer_operands(Draw &draw) {
  const uint32_t soffset = draw.below(2) ? 128 : draw.scalar_source(false);
  return soffset << 24 | draw.modifier(1) << 23 | draw.below(25) << 16 | draw.vgpr() << 8 | draw.vgpr();
}

// SC0, SC1, OFFEN, IDXEN, LDS, NT
Dwords mubuf(Draw &draw, uint32_t op) {
  return {0xe0000000 | op << 18 | draw.modifier(1) << 17 | draw.modifier(1) << 16 | draw.modifier(2) << 14 |
              draw.field(2) << 12 | draw.modifier(12),
          buffer_operands(draw)};
}

Dwords mtbuf(Draw &draw, uint32_t op) {
  return {0xe8000000 | draw.field(3) << 23 | draw.field(4) << 19 | op << 15 | draw.field(2) << 12 |
              draw.modifier(1) << 14 | draw.modifier(12),
          buffer_operands(draw) | draw.modifier(1) << 22 | draw.modifier(1) << 21};
}

Dwords flat(Draw &draw, uint32_t op) {
  const uint32_t segment = draw.below(3);
  const uint32_t scalar = draw.below(2) ? 127 : draw.below(25) * 4;
  // FLAT proper has a shorter offset and no scalar address.
  const uint32_t low = segment == 0 ? draw.modifier(12) : draw.modifier(13) | draw.field(1) << 13;
  return {0xdc000000 | draw.modifier(1) << 25 | op << 18 | draw.modifier(2) << 16 | segment << 14 | low,
          draw.vgpr_or_none() << 24 | draw.modifier(1) << 23 | (segment == 0 ? 0 : scalar) << 16 |
              draw.vgpr_or_none() << 8 | draw.vgpr_or_none()};
}

struct FormatDraws {
  Dwords (*draw)(Draw &, uint32_t op);
  uint32_t marker, op_shift; // of the first dword
  uint32_t first_op, end_op;
  uint32_t draws; // of each opcode
};
constexpr FormatDraws formats[] = {
    {sop1, 0xbe800000, 8, 0, 256, 48},    {sop2, 0x80000000, 23, 0, 0x60, 64},
    {sopc, 0xbf000000, 16, 0, 128, 96},   {sopk, 0xb0000000, 23, 0, 32, 48},
    {sopp, 0xbf800000, 16, 0, 128, 48},   {smem, 0xc0000000, 18, 0, 256, 48},
    {vop1, 0x7e000000, 9, 0, 256, 96},    {vop2, 0x00000000, 25, 0, 62, 128},
    {vopc, 0x7c000000, 17, 0, 256, 64},   {vop3, 0xd0000000, 16, 0, 1024, 96},
    {vop3p, 0xd3800000, 16, 0, 0x40, 96}, {mai, 0xd3800000, 16, 0x40, 128, 64},
    {ds, 0xd8000000, 17, 0, 256, 128},    {mubuf, 0xe0000000, 18, 0, 128, 64},
    {mtbuf, 0xe8000000, 15, 0, 16, 64},   {flat, 0xdc000000, 18, 0, 128, 256},
};

std::vector<Encoding> draw_corpus() {
  Codec codec;
  std::vector<Encoding> candidates;
  std::set<std::vector<uint32_t>> seen;
  auto add = [&](const Dwords &dwords) {
    std::optional<Encoding> encoding = codec.encode_again(dwords);
    if (encoding && seen.insert(encoding->dwords).second) candidates.push_back(std::move(*encoding));
  };
  for (const FormatDraws &format : formats)
    for (uint32_t op = format.first_op; op < format.end_op; ++op) {
      // Instructions without operands require zeros.
      const uint32_t first = format.marker | op << format.op_shift;
      add({first});
      Draw draw(first);
      for (uint32_t i = 0; i < format.draws; ++i)
        add(format.draw(draw, op));
    }
  const std::vector<std::vector<uint32_t>> assembled = Codec::assemble_each(candidates);
  std::vector<Encoding> result;
  for (size_t i = 0; i < candidates.size(); ++i)
    if (candidates[i].dwords == assembled[i]) result.push_back(std::move(candidates[i]));
  return result;
}

} // namespace

const std::vector<Encoding> &corpus() {
  static const std::vector<Encoding> all = draw_corpus();
  return all;
}

} // namespace sluice::test

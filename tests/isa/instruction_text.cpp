//===- instruction_text.cpp - parses LLVM's text --------------------------------------------------------===//
#include "isa/instruction_text.h"

#include <bit>
#include <optional>
#include <set>
#include <stdexcept>

#include "isa/operand_text.h"

namespace sluice::test {

using emulator::Fields;
using emulator::Format;

namespace {

constexpr std::string_view gpr_index_bits[] = {"SRC0", "SRC1", "SRC2", "DST"};
constexpr std::string_view sdwa_selects[] = {"BYTE_0", "BYTE_1", "BYTE_2", "BYTE_3",
                                             "WORD_0", "WORD_1", "DWORD"};
constexpr std::string_view sdwa_unused[] = {"UNUSED_PAD", "UNUSED_SEXT", "UNUSED_PRESERVE"};
constexpr std::string_view data_formats[] = {
    "INVALID",    "8",          "16",      "8_8",   "32",          "16_16",    "10_11_11",    "11_11_10",
    "10_10_10_2", "2_10_10_10", "8_8_8_8", "32_32", "16_16_16_16", "32_32_32", "32_32_32_32", "RESERVED_15"};
constexpr std::string_view number_formats[] = {"UNORM", "SNORM", "USCALED",    "SSCALED",
                                               "UINT",  "SINT",  "RESERVED_6", "FLOAT"};

uint32_t log2_of(uint32_t value) {
  return uint32_t(std::countr_zero(value));
}

/// Reads the line's operands and modifiers one by one; all must be used in the end.
class Reader {
public:
  Reader(const InstructionText &line, const Fields &split_fields)
      : text(line), name(line.plain_mnemonic()), split(split_fields) {
    f.format = split.format;
    f.op = split.op;
  }

  Fields read();

private:
  bool name_has(std::string_view part) const { return name.find(part) != name.npos; }
  bool name_is_one_of(const std::set<std::string_view> &names) const { return names.contains(name); }
  bool form(std::string_view ending) const { return text.mnemonic.ends_with(ending); }
  size_t left() const { return text.operands.size() - next; }

  std::string_view take_text() {
    if (left() == 0) throw std::runtime_error("an operand is missing");
    return text.operands[next++];
  }
  Operand take() { return parse_operand(take_text()); }
  bool take_if(std::string_view operand) {
    if (left() == 0 || text.operands[next] != operand) return false;
    ++next;
    return true;
  }

  bool flag(const std::string &modifier) {
    if (text.modifiers.contains(modifier)) used.insert(modifier);
    return text.modifiers.contains(modifier);
  }
  std::optional<std::string> value(const std::string &modifier) {
    const auto found = text.modifiers.find(modifier);
    if (found == text.modifiers.end()) return std::nullopt;
    used.insert(modifier);
    return found->second;
  }
  int64_t number(const std::string &modifier, int64_t otherwise) {
    const std::optional<std::string> given = value(modifier);
    return given ? integer(*given) : otherwise;
  }

  void source(uint32_t k, const Operand &operand) {
    f.src[k] = uint16_t(operand.code);
    f.negate |= uint8_t(operand.negate << k);
    f.absolute |= uint8_t(operand.absolute << k);
    if (operand.literal) {
      f.has_literal = true;
      f.literal = *operand.literal;
    }
    if (operand.sign_extend) (k == 0 ? f.sdwa_sext0 : f.sdwa_sext1) = true;
  }
  uint16_t take_data() {
    const Operand operand = take();
    f.acc |= uint8_t(operand.accumulation);
    return uint16_t(operand.vgpr());
  }
  void take_output_modifiers();
  void take_lane_control(uint32_t sources);

  void read_scalar();
  void read_scalar_k();
  void read_scalar_p();
  void read_scalar_memory();
  void read_vector();
  void read_compare();
  void read_vop3();
  void read_packed();
  void read_matrix();
  void read_lds();
  void read_buffer();
  void read_flat();

  const InstructionText &text;
  const std::string name;
  const Fields &split;
  Fields f;
  size_t next = 0;
  std::set<std::string> used;
};

void Reader::read_scalar() {
  const bool no_destination = split.format == Format::sopc ||
                              name_is_one_of({"s_setpc_b64", "s_rfe_b64", "s_cbranch_join",
                                              "s_set_gpr_idx_idx", "s_cbranch_g_fork", "s_rfe_restore_b64"});
  if (!no_destination) f.dst = uint16_t(take().sgpr());
  for (uint32_t k = 0; left() > 0; ++k)
    if (name == "s_set_gpr_idx_on" && k == 1)
      f.src[1] = uint16_t(flag_bits(take_text(), gpr_index_bits));
    else
      source(k, take());
}

void Reader::read_scalar_k() {
  if (name_has("s_setreg_")) {
    f.imm = int16_t(parse_hwreg(take_text()));
    if (name == "s_setreg_imm32_b32")
      f.literal = uint32_t(integer(take_text()));
    else
      f.dst = uint16_t(take().sgpr());
    return;
  }
  f.dst = uint16_t(take().sgpr());
  f.imm = int16_t(name == "s_getreg_b32" ? parse_hwreg(take_text()) : integer(take_text()));
}

void Reader::read_scalar_p() {
  uint32_t imm = 0;
  if (name == "s_waitcnt") {
    imm = parse_wait(text.operands);
    next = text.operands.size();
  } else if (name_has("s_sendmsg")) {
    imm = parse_message(take_text());
  } else if (name == "s_set_gpr_idx_mode") {
    imm = flag_bits(take_text(), gpr_index_bits);
  } else if (left() > 0) {
    imm = uint32_t(integer(take_text()));
  }
  f.imm = int16_t(imm);
}

void Reader::read_scalar_memory() {
  const bool no_data = name_has("s_dcache_discard");
  if (name_has("s_atc_probe"))
    f.dst = uint16_t(integer(take_text()));
  else if (!no_data && left() > 0)
    f.dst = uint16_t(take().sgpr());
  f.sc0 = flag("glc");
  if (left() == 0) return;
  f.srsrc = uint16_t(take().sgpr());
  const Operand operand = parse_operand(text.operands.at(next));
  if (operand.code < 128) {
    // A register without an offset may be in either place; an offset beside it may be 0 and not be shown.
    f.soffset = uint16_t(take().sgpr());
    f.soffset_enable = split.soffset_enable;
    f.imm_enable = split.soffset_enable && split.imm_enable;
    f.imm = f.soffset_enable ? int32_t(number("offset", 0)) : f.soffset;
  } else {
    f.imm_enable = true;
    f.imm = int32_t(integer(take_text()));
    f.soffset = uint16_t(f.imm & 127); // the same bits
  }
}

void Reader::take_output_modifiers() {
  f.clamp = flag("clamp");
  if (const auto factor = value("mul")) f.output_scale = uint8_t(log2_of(uint32_t(integer(*factor))));
  if (value("div")) f.output_scale = 3;
}

void Reader::take_lane_control(uint32_t sources) {
  if (form("_sdwa")) {
    f.is_sdwa = true;
    auto select = [&](const char *which) { return uint8_t(index_of(sdwa_selects, value(which).value())); };
    const bool fp8 = name.ends_with("_f32_fp8") || name.ends_with("_f32_bf8");
    if (fp8) f.sdwa_dst = 6; // always the whole dword, which the text leaves out
    if (f.format != Format::vopc && !fp8) {
      f.sdwa_dst = select("dst_sel");
      f.sdwa_unused = uint8_t(index_of(sdwa_unused, value("dst_unused").value()));
    }
    f.sdwa_src0 = select("src0_sel");
    f.sdwa_src1 = sources > 1 ? select("src1_sel") : 0;
  } else if (form("_dpp")) {
    f.is_dpp = true;
    f.dpp_row_mask = uint8_t(number("row_mask", 15));
    f.dpp_bank_mask = uint8_t(number("bank_mask", 15));
    f.dpp_bound_zero = number("bound_ctrl", 0) != 0;
    constexpr std::pair<const char *, uint32_t> numbered[] = {
        {"row_shl", 0x100},  {"row_shr", 0x110},  {"row_ror", 0x120},  {"row_newbcast", 0x150},
        {"wave_shl", 0x12f}, {"wave_rol", 0x133}, {"wave_shr", 0x137}, {"wave_ror", 0x13b}};
    for (const auto &[control, first] : numbered)
      if (const auto lanes = value(control)) f.dpp_control = uint16_t(first + uint32_t(integer(*lanes)));
    if (const auto quad = value("quad_perm")) {
      uint32_t place = 0;
      for (const std::string &lane : list(*quad))
        f.dpp_control |= uint16_t(integer(lane) << 2 * place++);
    }
    if (flag("row_mirror")) f.dpp_control = 0x140;
    if (flag("row_half_mirror")) f.dpp_control = 0x141;
    if (const auto lane = value("row_bcast")) f.dpp_control = *lane == "15" ? 0x142 : 0x143;
  }
}

/// VOP1 and VOP2.
void Reader::read_vector() {
  uint32_t sources = 0;
  if (left() > 0) {
    const Operand destination = take();
    f.dst = uint16_t(name == "v_readfirstlane_b32" ? destination.code : destination.vgpr());
    if (name_has("_co_")) take_if("vcc"); // carry out
    bool fused_literal = name_has("mk_f") || name_has("ak_f");
    while (left() > 0) {
      // The literal of v_fmamk and v_madmk is in the middle, that of v_fmaak and v_madak at the end.
      if (fused_literal && sources == (name_has("mk_f") ? 1 : 2)) {
        f.literal = uint32_t(integer(take_text()));
        fused_literal = false;
        continue;
      }
      if (sources == 2 && take_if("vcc")) continue; // carry in, selection
      source(sources++, take());
    }
  }
  take_output_modifiers();
  take_lane_control(sources);
}

void Reader::read_compare() {
  const uint32_t destination = take().sgpr();
  if (form("_sdwa") && destination != 106) {
    f.sdwa_has_sdst = true;
    f.sdst = uint16_t(destination);
  }
  source(0, take());
  source(1, take());
  take_lane_control(2);
}

void Reader::read_vop3() {
  const bool lane_read = name == "v_readlane_b32";
  uint32_t sources = 0;
  bool second_destination = false;
  if (left() > 0) {
    const Operand destination = take();
    const bool scalar = lane_read || name == "v_readfirstlane_b32" || name.starts_with("v_cmp");
    f.dst = uint16_t(scalar ? destination.code : destination.vgpr());
    second_destination =
        name_has("_co_") || name_has("v_div_scale_") || name == "v_mad_u64_u32" || name == "v_mad_i64_i32";
    if (second_destination) f.sdst = uint16_t(take().sgpr());
    while (left() > 0)
      source(sources++, take());
  }
  take_output_modifiers();
  if (const auto selects = value("op_sel")) {
    // The last one is the destination's.
    const uint32_t bits = list_bits(*selects), count = uint32_t(list(*selects).size());
    const uint32_t last = 1u << (count - 1);
    f.op_sel = uint8_t((bits & (last - 1)) | ((bits & last) != 0 ? 8 : 0));
  }
  // SDST has the bits of ABS and OP_SEL.
  if (second_destination) {
    f.absolute = f.sdst & 7;
    f.op_sel = uint8_t(f.sdst >> 3);
  } else {
    f.sdst = uint16_t(f.absolute | f.op_sel << 3);
  }
}

void Reader::read_packed() {
  f.dst = uint16_t(take().vgpr());
  uint32_t sources = 0;
  while (left() > 0)
    source(sources++, take());
  const bool mix = name_has("_mix");
  const uint32_t all = (1u << sources) - 1;
  const std::optional<std::string> low = value("op_sel"), high = value("op_sel_hi");
  if (low) f.op_sel = uint8_t(list_bits(*low));
  f.op_sel_hi = uint8_t(high ? list_bits(*high) : mix ? 0 : all);
  f.op_sel_hi = uint8_t(f.op_sel_hi | (7 & ~all)); // for a source that does not exist it is set
  if (const auto negated = value("neg_lo")) f.negate = uint8_t(list_bits(*negated));
  // The mixes have an absolute value where the others have this.
  if (const auto negated = value("neg_hi")) f.negate_high = uint8_t(list_bits(*negated));
  if (mix) std::swap(f.absolute, f.negate_high);
  f.clamp = flag("clamp");
}

void Reader::read_matrix() {
  const Operand destination = take();
  f.dst = uint16_t(destination.vgpr());
  if (name.starts_with("v_accvgpr_")) {
    // Actually VOP3P: all of OP_SEL_HI is set, where the others have ABID and ACC.
    f.src[0] = uint16_t(take().code);
    f.abid = 8;
    f.acc = 3;
    return;
  }
  f.acc_cd = destination.accumulation;
  for (uint32_t k = 0; k < 3; ++k) {
    const Operand operand = take();
    f.src[k] = uint16_t(operand.code);
    if (k < 2) f.acc |= uint8_t(operand.accumulation << k);
  }
  f.cbsz = uint8_t(number("cbsz", 0));
  f.abid = uint8_t(number("abid", 0));
  f.blgp = uint8_t(number("blgp", 0));
  // v_mfma_f64: BLGP negates instead.
  if (const auto negated = value("neg")) f.blgp = uint8_t(list_bits(*negated));
}

void Reader::read_lds() {
  const bool result = name_has("_read") || name_has("_rtn_") || name_has("permute") || name_has("swizzle") ||
                      name_is_one_of({"ds_append", "ds_consume"});
  const bool address = !name_has("_addtid") && !name_is_one_of({"ds_append", "ds_consume"});
  if (left() > 0) {
    if (result) f.dst = take_data();
    if (address) f.src[0] = take_data();
    for (uint32_t k = 1; left() > 0; ++k)
      f.src[k] = take_data();
  }
  if (const auto offset = value("offset")) {
    const uint32_t bytes =
        offset->starts_with("swizzle") ? parse_swizzle(*offset) : uint32_t(integer(*offset));
    f.offset0 = uint8_t(bytes);
    f.offset1 = uint8_t(bytes >> 8);
  } else {
    f.offset0 = uint8_t(number("offset0", 0));
    f.offset1 = uint8_t(number("offset1", 0));
  }
  if (name.starts_with("ds_gws_")) flag("gds"); // the only one
}

/// MUBUF and MTBUF.
void Reader::read_buffer() {
  f.lds = flag("lds");
  f.offen = flag("offen");
  f.idxen = flag("idxen");
  f.sc0 = flag("sc0");
  f.sc1 = flag("sc1");
  f.nt = flag("nt");
  f.imm = int32_t(number("offset", 0));
  if (f.format == Format::mtbuf) {
    f.data_format = 1;
    if (const auto formats = value("format"))
      for (const std::string &part : list(*formats)) {
        constexpr std::string_view data = "BUF_DATA_FORMAT_", numbers = "BUF_NUM_FORMAT_";
        if (part.starts_with(data))
          f.data_format = uint8_t(index_of(data_formats, part.substr(data.size())));
        else
          f.number_format = uint8_t(index_of(number_formats, part.substr(numbers.size())));
      }
  }
  if (left() == 0) return;
  if (!f.lds) f.dst = f.src[1] = take_data();
  if (!take_if("off")) f.src[0] = uint16_t(take().vgpr());
  f.srsrc = uint16_t(take().sgpr());
  f.soffset = uint16_t(take().code);
}

void Reader::read_flat() {
  f.segment = name.starts_with("flat_") ? 0 : name.starts_with("scratch_") ? 1 : 2;
  f.sc0 = flag("sc0");
  f.sc1 = flag("sc1");
  f.nt = flag("nt");
  f.imm = int32_t(number("offset", 0));
  auto take_address = [&] {
    if (take_if("off")) return;
    f.src[0] = uint16_t(take().vgpr());
    f.scratch_vaddr = f.segment == 1;
  };
  const bool atomic = name_has("_atomic_"), to_lds = name_has("_load_lds_");
  if ((name_has("_load_") && !to_lds) || (atomic && f.sc0)) f.dst = take_data();
  take_address();
  if (name_has("_store_") || atomic) f.src[1] = take_data();
  if (f.segment == 0) return;
  f.soffset = take_if("off") ? 127 : uint16_t(take().sgpr());
}

Fields Reader::read() {
  switch (f.format) {
  case Format::sop1:
  case Format::sop2:
  case Format::sopc:
    read_scalar();
    break;
  case Format::sopk:
    read_scalar_k();
    break;
  case Format::sopp:
    read_scalar_p();
    break;
  case Format::smem:
    read_scalar_memory();
    break;
  case Format::vop1:
  case Format::vop2:
    read_vector();
    break;
  case Format::vopc:
    read_compare();
    break;
  case Format::vop3:
    read_vop3();
    break;
  case Format::vop3p:
    read_packed();
    break;
  case Format::mai:
    read_matrix();
    break;
  case Format::ds:
    read_lds();
    break;
  case Format::mubuf:
  case Format::mtbuf:
    read_buffer();
    break;
  case Format::flat:
    read_flat();
    break;
  case Format::vintrp:
  case Format::unknown:
    not_understood(text.mnemonic);
  }
  if (left() != 0) throw std::runtime_error("an operand is left: " + text.operands[next]);
  for (const auto &[modifier, given] : text.modifiers)
    if (!used.contains(modifier)) throw std::runtime_error("a modifier is left: " + modifier);
  return f;
}

bool is_modifier(std::string_view word) {
  static const std::set<std::string_view> flags = {
      "sc0", "sc1", "nt", "glc", "gds", "lds", "offen", "idxen", "clamp", "row_mirror", "row_half_mirror"};
  return flags.contains(word) || (word.find(':') != word.npos && word.find('[') > word.find(':'));
}

} // namespace

std::string InstructionText::plain_mnemonic() const {
  for (std::string_view ending : {"_e32", "_e64", "_dpp", "_sdwa"})
    if (mnemonic.ends_with(ending)) return mnemonic.substr(0, mnemonic.size() - ending.size());
  return mnemonic;
}

InstructionText parse_instruction(std::string_view line) {
  InstructionText result;
  std::vector<std::string> words;
  std::string word;
  int depth = 0;
  for (char c : line) {
    if (c == '[' || c == '(') ++depth;
    if (c == ']' || c == ')') --depth;
    const bool separator = depth == 0 && (c == ' ' || c == '\t' || c == ',');
    if (!separator)
      word += c;
    else if (!word.empty())
      words.push_back(std::move(word)), word.clear();
  }
  if (!word.empty()) words.push_back(word);
  result.mnemonic = words.at(0);
  for (size_t i = 1; i < words.size(); ++i) {
    const size_t colon = words[i].find(':');
    if (!is_modifier(words[i]))
      result.operands.push_back(words[i]);
    else if (colon == std::string::npos)
      result.modifiers[words[i]];
    else
      result.modifiers[words[i].substr(0, colon)] = words[i].substr(colon + 1);
  }
  return result;
}

Fields fields_of_text(const InstructionText &text, const Fields &split) {
  return Reader(text, split).read();
}

} // namespace sluice::test

//===- operand_text.cpp - parses the operands of LLVM's text --------------------------------------------===//
#include "isa/operand_text.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <map>

namespace sluice::test {

void not_understood(std::string_view text) {
  throw std::runtime_error("not understood: '" + std::string(text) + "'");
}

int64_t integer(std::string_view text) {
  const std::string copy(text);
  char *end = nullptr;
  const int64_t value = std::strtoll(copy.c_str(), &end, 0);
  if (end == copy.c_str() || *end != 0) not_understood(text);
  return value;
}

std::vector<std::string> list(std::string_view text) {
  const size_t open = text.find_first_of("[("), close = text.find_last_of("])");
  if (open == text.npos || close == text.npos) not_understood(text);
  std::vector<std::string> items;
  std::string item;
  for (char c : text.substr(open + 1, close - open - 1))
    if (c == ',')
      items.push_back(std::move(item)), item.clear();
    else if (c != ' ')
      item += c;
  if (!item.empty()) items.push_back(item);
  return items;
}

size_t index_of(Names names, std::string_view name) {
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) not_understood(name);
  return size_t(found - names.begin());
}

uint32_t flag_bits(std::string_view text, Names names) {
  uint32_t bits = 0;
  for (const std::string &name : list(text))
    bits |= 1u << index_of(names, name);
  return bits;
}

uint32_t list_bits(std::string_view text) {
  uint32_t bits = 0, place = 0;
  for (const std::string &item : list(text))
    bits |= uint32_t(integer(item)) << place++;
  return bits;
}

static Operand parse_register_or_constant(std::string_view text) {
  static const std::map<std::string_view, uint32_t> named = {{"flat_scratch", 102},
                                                             {"flat_scratch_lo", 102},
                                                             {"flat_scratch_hi", 103},
                                                             {"xnack_mask", 104},
                                                             {"xnack_mask_lo", 104},
                                                             {"xnack_mask_hi", 105},
                                                             {"vcc", 106},
                                                             {"vcc_lo", 106},
                                                             {"vcc_hi", 107},
                                                             {"m0", 124},
                                                             {"exec", 126},
                                                             {"exec_lo", 126},
                                                             {"exec_hi", 127},
                                                             {"src_shared_base", 235},
                                                             {"src_shared_limit", 236},
                                                             {"src_private_base", 237},
                                                             {"src_private_limit", 238},
                                                             {"src_pops_exiting_wave_id", 239},
                                                             {"0.5", 240},
                                                             {"-0.5", 241},
                                                             {"1.0", 242},
                                                             {"-1.0", 243},
                                                             {"2.0", 244},
                                                             {"-2.0", 245},
                                                             {"4.0", 246},
                                                             {"-4.0", 247},
                                                             {"0.15915494", 248},
                                                             {"0.1592", 248},
                                                             {"0.15915494309189532", 248},
                                                             {"src_vccz", 251},
                                                             {"src_execz", 252},
                                                             {"src_scc", 253}};
  Operand operand;
  if (const auto found = named.find(text); found != named.end()) {
    operand.code = found->second;
    return operand;
  }
  const std::pair<std::string_view, uint32_t> files[] = {{"ttmp", 108}, {"s", 0}, {"v", 256}, {"a", 256}};
  for (const auto &[file, first] : files) {
    if (!text.starts_with(file)) continue;
    std::string_view number = text.substr(file.size());
    if (number.starts_with("[")) number = number.substr(1, number.find(':') - 1);
    operand.code = first + uint32_t(integer(number));
    operand.vector = first == 256;
    operand.accumulation = file == "a";
    return operand;
  }
  // The assembler would take the number in "lit(1)" for a constant.
  const bool literal = text.starts_with("lit(");
  const int64_t value = literal ? integer(list(text).at(0)) : integer(text);
  if (!literal && !text.starts_with("0x") && value >= 0 && value <= 64)
    operand.code = 128 + uint32_t(value);
  else if (value < 0 && value >= -16)
    operand.code = 192 + uint32_t(-value);
  else
    operand.code = 255, operand.literal = uint32_t(value);
  return operand;
}

Operand parse_operand(std::string_view text) {
  bool negate = false, absolute = false, sign_extend = false;
  auto strip = [&](std::string_view open, std::string_view close) {
    if (!text.starts_with(open) || !text.ends_with(close)) return false;
    text = text.substr(open.size(), text.size() - open.size() - close.size());
    return true;
  };
  negate = strip("neg(", ")") || (text.size() > 1 && !std::isdigit(uint8_t(text[1])) && strip("-", ""));
  sign_extend = strip("sext(", ")");
  absolute = strip("|", "|");
  Operand operand = parse_register_or_constant(text);
  operand.negate = negate;
  operand.absolute = absolute;
  operand.sign_extend = sign_extend;
  return operand;
}

//===--- Operands with special syntax -------------------------------------------------------------------===//

uint32_t parse_hwreg(std::string_view text) {
  static const std::map<std::string_view, uint32_t> named = {{"HW_REG_MODE", 1},
                                                             {"HW_REG_STATUS", 2},
                                                             {"HW_REG_TRAPSTS", 3},
                                                             {"HW_REG_HW_ID", 4},
                                                             {"HW_REG_GPR_ALLOC", 5},
                                                             {"HW_REG_LDS_ALLOC", 6},
                                                             {"HW_REG_IB_STS", 7},
                                                             {"HW_REG_SH_MEM_BASES", 15},
                                                             {"HW_REG_TBA_LO", 16},
                                                             {"HW_REG_TBA_HI", 17},
                                                             {"HW_REG_TMA_LO", 18},
                                                             {"HW_REG_TMA_HI", 19},
                                                             {"HW_REG_XCC_ID", 20},
                                                             {"HW_REG_SQ_PERF_SNAPSHOT_DATA", 21},
                                                             {"HW_REG_SQ_PERF_SNAPSHOT_DATA1", 22},
                                                             {"HW_REG_SQ_PERF_SNAPSHOT_PC_LO", 23},
                                                             {"HW_REG_SQ_PERF_SNAPSHOT_PC_HI", 24}};
  const std::vector<std::string> items = list(text);
  const auto found = named.find(items.at(0));
  const uint32_t number = found != named.end() ? found->second : uint32_t(integer(items[0]));
  const uint32_t offset = items.size() > 1 ? uint32_t(integer(items.at(1))) : 0;
  const uint32_t width = items.size() > 1 ? uint32_t(integer(items.at(2))) : 32;
  return number | offset << 6 | (width - 1) << 11;
}

uint32_t parse_message(std::string_view text) {
  if (!text.starts_with("sendmsg(")) return uint32_t(integer(text));
  static const std::map<std::string_view, uint32_t> named = {
      {"MSG_INTERRUPT", 1},       {"MSG_GS", 2},
      {"MSG_GS_DONE", 3},         {"MSG_SAVEWAVE", 4},
      {"MSG_STALL_WAVE_GEN", 5},  {"MSG_HALT_WAVES", 6},
      {"MSG_ORDERED_PS_DONE", 7}, {"MSG_EARLY_PRIM_DEALLOC", 8},
      {"MSG_GS_ALLOC_REQ", 9},    {"MSG_GET_DOORBELL", 10}};
  const std::vector<std::string> items = list(text);
  const auto found = named.find(items.at(0));
  const uint32_t message = found != named.end() ? found->second : uint32_t(integer(items.at(0)));
  if (items.size() == 1) return message;
  constexpr std::string_view operations[] = {"GS_OP_NOP", "GS_OP_CUT", "GS_OP_EMIT", "GS_OP_EMIT_CUT"};
  const bool named_operation = items[1].starts_with("GS_OP_");
  const uint32_t operation =
      named_operation ? uint32_t(index_of(operations, items[1])) : uint32_t(integer(items[1]));
  const uint32_t stream = items.size() > 2 ? uint32_t(integer(items[2])) : 0;
  return message | operation << 4 | stream << 8;
}

uint32_t parse_wait(const std::vector<std::string> &parts) {
  uint32_t vmcnt = 63, expcnt = 7, lgkmcnt = 15;
  for (const std::string &part : parts) {
    const uint32_t value = uint32_t(integer(list(part).at(0)));
    (part.starts_with("vmcnt") ? vmcnt : part.starts_with("expcnt") ? expcnt : lgkmcnt) = value;
  }
  return (vmcnt & 15) | expcnt << 4 | lgkmcnt << 8 | vmcnt >> 4 << 14;
}

/// Of ds_swizzle_b32: lane i reads lane ((i & and) | or) ^ xor of its 32, or a quarter of four lanes its own.
uint32_t parse_swizzle(std::string_view text) {
  const std::vector<std::string> items = list(text);
  auto mask = [](uint32_t and_mask, uint32_t or_mask, uint32_t xor_mask) {
    return and_mask | or_mask << 5 | xor_mask << 10;
  };
  const std::string_view kind = items.at(0);
  if (kind == "QUAD_PERM") {
    uint32_t code = 0x8000;
    for (uint32_t i = 0; i < 4; ++i)
      code |= uint32_t(integer(items.at(i + 1))) << (2 * i);
    return code;
  }
  if (kind == "BITMASK_PERM") {
    uint32_t and_mask = 0, or_mask = 0, xor_mask = 0;
    for (uint32_t i = 0; i < 5; ++i) {
      const char c = items.at(1).at(1 + i); // in quotes, the highest bit first
      const uint32_t bit = 16 >> i;
      if (c == 'p' || c == 'i') and_mask |= bit;
      if (c == '1') or_mask |= bit;
      if (c == 'i') xor_mask |= bit;
    }
    return mask(and_mask, or_mask, xor_mask);
  }
  const uint32_t size = uint32_t(integer(items.at(1)));
  if (kind == "BROADCAST") return mask(32 - size, uint32_t(integer(items.at(2))), 0);
  if (kind == "SWAP") return mask(31, 0, size);
  if (kind == "REVERSE") return mask(31, 0, size - 1);
  not_understood(text);
}

} // namespace sluice::test

//===- operand_text.h - parses the operands of LLVM's text ----------------------------------------------===//
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::test {

using Names = std::span<const std::string_view>;

// All throw std::runtime_error at text they do not understand.

[[noreturn]] void not_understood(std::string_view text);
int64_t integer(std::string_view text);
/// The text between the brackets of "name(...)" or "[...]", split at commas.
std::vector<std::string> list(std::string_view text);
size_t index_of(Names names, std::string_view name);
/// "name(A,B)": bit i for the name at place i of `names`.
uint32_t flag_bits(std::string_view text, Names names);
/// "[1,0,1]": bit i is the number at place i.
uint32_t list_bits(std::string_view text);

struct Operand {
  uint32_t code = 0; // of the 9-bit operand codes
  bool vector = false, accumulation = false;
  bool negate = false, absolute = false, sign_extend = false;
  std::optional<uint32_t> literal;

  uint32_t vgpr() const {
    if (!vector) throw std::runtime_error("an operand is not a vector register");
    return code - 256;
  }
  uint32_t sgpr() const {
    if (code >= 128) throw std::runtime_error("an operand is not a scalar register");
    return code;
  }
};

Operand parse_operand(std::string_view text);
/// Parses the operand of s_getreg_b32 and similar ones: register, offset, width less one.
uint32_t parse_hwreg(std::string_view text);
uint32_t parse_message(std::string_view text);
/// "vmcnt(1)" and so on; a counter that is not named has its maximum.
uint32_t parse_wait(const std::vector<std::string> &parts);
/// Parses the operand of ds_swizzle_b32, as its 16 bits of offset.
uint32_t parse_swizzle(std::string_view text);

} // namespace sluice::test

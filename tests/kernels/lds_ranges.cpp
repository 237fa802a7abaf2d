//===- lds_ranges.cpp - the bytes of LDS that an instruction may touch, on any path ---------------------===//
#include "lds_ranges.h"

#include "emulator/isa/op.h"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

namespace sluice::test {
namespace {

using emulator::first_agpr;
using emulator::first_sgpr;
using emulator::sgpr_exec;
using emulator::sgpr_m0;
using emulator::sgpr_vcc;

constexpr uint64_t two_32 = uint64_t(1) << 32;

struct Interval {
  uint64_t low = 0, high = two_32 - 1;
  int zeros = 0; // low bits that are zero
  bool operator==(const Interval &) const = default;
  Interval joined(const Interval &other) const {
    return {std::min(low, other.low), std::max(high, other.high), std::min(zeros, other.zeros)};
  }
};

constexpr uint64_t low_bits(int count) {
  return (uint64_t(1) << count) - 1;
}
Interval constant(uint64_t value) {
  return {value, value, value == 0 ? 32 : std::countr_zero(value)};
}

/// The sum or product in 32-bit arithmetic.
Interval wrapped(uint64_t low, uint64_t high, int zeros) {
  if (low / two_32 != high / two_32) return {};
  return {low % two_32, high % two_32, std::min(zeros, 32)};
}

Interval add(Interval a, Interval b) {
  return wrapped(a.low + b.low, a.high + b.high, std::min(a.zeros, b.zeros));
}
Interval multiply(Interval a, Interval b) {
  if (a.high * b.high >= two_32) return {};
  return {a.low * b.low, a.high * b.high, std::min(a.zeros + b.zeros, 32)};
}
Interval shift_left(Interval a, Interval count) {
  if (count.high > 31) return {};
  return multiply(a, {uint64_t(1) << count.low, uint64_t(1) << count.high, int(count.low)});
}
Interval shift_right(Interval a, Interval count) {
  return count.high > 31 ? Interval{} : Interval{a.low >> count.high, a.high >> count.low};
}
Interval bit_and(Interval a, Interval b) {
  const int zeros = std::max(a.zeros, b.zeros);
  return {0, std::min(a.high, b.high) & ~low_bits(zeros), zeros};
}
/// Neither has a bit above those of both, or one that both lack; and neither is more than the sum.
Interval bit_xor(Interval a, Interval b) {
  const int zeros = std::min(a.zeros, b.zeros);
  const uint64_t bits = std::bit_ceil(std::max(a.high, b.high) + 1) - 1;
  return {0, std::min(bits & ~low_bits(zeros), a.high + b.high), zeros};
}
Interval bit_or(Interval a, Interval b) {
  const Interval most = bit_xor(a, b);
  return {std::max(a.low, b.low), most.high, most.zeros};
}

struct State {
  std::array<Interval, 640> registers; // by operand number
  // Scalars saved in one lane of a vector register, by register and lane.
  std::map<std::pair<uint16_t, uint64_t>, Interval> lanes;
  bool all_lanes = true;                 // EXEC is as it was at the start ...
  std::optional<uint16_t> all_lanes_are; // ... which this pair of scalars, by its first, has saved
  bool reached = false;
};

std::vector<std::string_view> operands_of(const Instruction &instruction) {
  std::string_view text = instruction.text;
  text.remove_prefix(std::min(text.find(' '), text.size()));
  std::vector<std::string_view> operands;
  while (!text.empty()) {
    const size_t comma = std::min(text.find(','), text.size());
    std::string_view operand = text.substr(0, comma);
    operand.remove_prefix(std::min(operand.find_first_not_of(' '), operand.size()));
    operands.push_back(operand);
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return operands;
}

std::optional<uint64_t> number(std::string_view text) {
  const bool negative = text.starts_with('-');
  if (negative) text.remove_prefix(1);
  const int base = text.starts_with("0x") ? 16 : 10;
  if (base == 16) text.remove_prefix(2);
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (error != std::errc() || end != text.data() + text.size() || text.empty()) return std::nullopt;
  return negative ? (two_32 - value) % two_32 : value;
}

std::optional<uint16_t> register_number(std::string_view text) {
  if (text == "m0") return uint16_t(first_sgpr + sgpr_m0);
  if (text == "vcc_lo") return uint16_t(first_sgpr + sgpr_vcc);
  if (text == "vcc_hi") return uint16_t(first_sgpr + sgpr_vcc + 1);
  const uint16_t first = text.starts_with('a') ? first_agpr : text.starts_with('s') ? first_sgpr : 0;
  if (first == 0 && !text.starts_with('v')) return std::nullopt;
  const auto value = number(text.substr(1));
  if (!value || *value > 255) return std::nullopt;
  return uint16_t(*value + first);
}

Interval value_of(std::string_view operand, const State &state) {
  if (const auto value = number(operand); value && *value < two_32) return constant(*value);
  const auto where = register_number(operand);
  return where ? state.registers[*where] : Interval{};
}

/// The register and the lane that v_writelane writes or v_readlane reads, if the lane is a constant.
std::optional<std::pair<uint16_t, uint64_t>> lane_of(const Instruction &instruction) {
  const std::vector<std::string_view> operands = operands_of(instruction);
  const bool writes = instruction.is("v_writelane_b32");
  if (operands.size() != 3 || !(writes || instruction.is("v_readlane_b32"))) return std::nullopt;
  const auto where = register_number(operands[writes ? 0 : 1]);
  const auto lane = number(operands[2]);
  if (!where || !lane) return std::nullopt;
  return std::pair(*where, *lane);
}

/// The result of an instruction with one 32-bit destination; any number if it is unknown.
Interval result_of(const Instruction &instruction, const State &state) {
  const std::vector<std::string_view> operands = operands_of(instruction);
  std::vector<Interval> in;
  for (size_t n = 1; n < operands.size(); ++n)
    in.push_back(value_of(operands[n], state));
  const auto is = [&](size_t sources, std::initializer_list<std::string_view> names) {
    return in.size() == sources && std::find(names.begin(), names.end(), instruction.mnemonic) != names.end();
  };
  if (is(1, {"v_mov_b32", "s_mov_b32", "v_readfirstlane_b32", "v_accvgpr_read_b32", "v_accvgpr_write_b32",
             "v_accvgpr_mov_b32"}))
    return in[0];
  // The 16-bit constant has a sign; the destination is a source too.
  if (is(1, {"s_addk_i32"}))
    return in[0].high < 0x8000 ? add(value_of(operands[0], state), in[0]) : Interval{};
  if (is(1, {"s_movk_i32"})) return in[0].high < 0x8000 ? in[0] : Interval{};
  if (is(2, {"v_and_b32", "s_and_b32"})) return bit_and(in[0], in[1]);
  if (is(2, {"v_or_b32", "s_or_b32"})) return bit_or(in[0], in[1]);
  if (is(2, {"v_xor_b32", "s_xor_b32"})) return bit_xor(in[0], in[1]);
  if (is(2, {"v_add_u32", "s_add_i32", "s_add_u32"})) return add(in[0], in[1]);
  if (is(2, {"v_lshlrev_b32"})) return shift_left(in[1], in[0]);
  if (is(2, {"s_lshl_b32"})) return shift_left(in[0], in[1]);
  if (is(2, {"v_lshrrev_b32"})) return shift_right(in[1], in[0]);
  if (is(2, {"s_lshr_b32"})) return shift_right(in[0], in[1]);
  if (is(2, {"s_mul_i32", "v_mul_lo_u32"})) return multiply(in[0], in[1]);
  if (is(2, {"v_mul_u32_u24"}) && std::max(in[0].high, in[1].high) < 1 << 24) return multiply(in[0], in[1]);
  // Lanes below this one of the first 32, then of the others.
  if (is(2, {"v_mbcnt_lo_u32_b32"})) return add({0, 32, 0}, in[1]);
  if (is(2, {"v_mbcnt_hi_u32_b32"})) return add({0, 31, 0}, in[1]);
  if (is(2, {"v_readlane_b32"})) {
    const auto lane = lane_of(instruction);
    const auto known = lane ? state.lanes.find(*lane) : state.lanes.end();
    return known != state.lanes.end() ? known->second : in[0];
  }
  if (is(3, {"v_bfe_u32"}) && in[2].high < 32) return {0, (uint64_t(1) << in[2].high) - 1};
  if (is(3, {"v_lshl_add_u32"})) return add(shift_left(in[0], in[1]), in[2]);
  if (is(3, {"v_lshl_or_b32"})) return bit_or(shift_left(in[0], in[1]), in[2]);
  if (is(3, {"v_add_lshl_u32"})) return shift_left(add(in[0], in[1]), in[2]);
  if (is(3, {"v_add3_u32"})) return add(add(in[0], in[1]), in[2]);
  if (is(3, {"v_or3_b32"})) return bit_or(bit_or(in[0], in[1]), in[2]);
  if (is(3, {"v_and_or_b32"})) return bit_or(bit_and(in[0], in[1]), in[2]);
  if (is(3, {"v_xad_u32"})) return add(bit_xor(in[0], in[1]), in[2]);
  return {};
}

/// The pair of scalars that s_and_saveexec writes or s_or reads together with EXEC.
std::optional<uint16_t> pair_beside_exec(const std::vector<emulator::RegisterRange> &ranges) {
  for (const emulator::RegisterRange &range : ranges)
    if (range.count == 2 && range.first >= first_sgpr && range.first < first_sgpr + sgpr_vcc)
      return range.first;
  return std::nullopt;
}

void follow_exec(const Instruction &instruction, State &state) {
  const bool was_all = state.all_lanes;
  const auto saved_in = state.all_lanes_are;
  for (const emulator::RegisterRange &range : instruction.writes) {
    if (range.first < first_sgpr + sgpr_exec + 2 && first_sgpr + sgpr_exec < range.first + range.count)
      state.all_lanes = false;
    if (saved_in && range.first < *saved_in + 2 && *saved_in < range.first + range.count)
      state.all_lanes_are.reset();
  }
  if (instruction.is("s_and_saveexec_b64") && was_all)
    state.all_lanes_are = pair_beside_exec(instruction.writes);
  if (instruction.text.starts_with("s_or_b64 exec, exec, s[") && saved_in &&
      pair_beside_exec(instruction.reads) == saved_in)
    state.all_lanes = true;
}

void step(const Instruction &instruction, State &state) {
  const auto operands = operands_of(instruction);
  if (const auto lane = lane_of(instruction); lane && instruction.is("v_writelane_b32")) {
    const Interval value = value_of(operands[1], state);
    state.lanes[*lane] = value;
    state.registers[lane->first] = state.registers[lane->first].joined(value);
    return;
  }
  const auto target = operands.empty() ? std::nullopt : register_number(operands[0]);
  for (const emulator::RegisterRange &range : instruction.writes)
    for (uint16_t n = range.first; n < range.first + range.count && n < state.registers.size(); ++n) {
      std::erase_if(state.lanes, [&](const auto &lane) { return lane.first.first == n; });
      const Interval result = target == n ? result_of(instruction, state) : Interval{};
      // An inactive lane keeps its value.
      const bool keeps = n < first_sgpr && !state.all_lanes && instruction.mnemonic != "v_readfirstlane_b32";
      state.registers[n] = keeps ? state.registers[n].joined(result) : result;
    }
  follow_exec(instruction, state);
}

/// "... offset:8": the number after a modifier, else `otherwise`.
uint64_t modifier(const Instruction &instruction, std::string_view name, uint64_t otherwise) {
  const size_t at = instruction.text.find(" " + std::string(name) + ":");
  if (at == std::string::npos) return otherwise;
  std::string_view text = std::string_view(instruction.text).substr(at + name.size() + 2);
  return number(text.substr(0, text.find(' '))).value_or(~uint64_t(0) / 2);
}

LdsRange touched_by(const Instruction &instruction, const State &state) {
  constexpr uint64_t lanes = 64;
  const bool is_global_copy =
      instruction.is("global_load_lds_dword") && instruction.text.find(" offset:") == std::string::npos;
  if (instruction.is("buffer_load_dword") || is_global_copy) {
    const Interval base = state.registers[first_sgpr + sgpr_m0];
    const uint64_t offset = modifier(instruction, "offset", 0);
    return {base.low + offset, base.high + offset + lanes * 4};
  }
  const bool is_read = instruction.starts_with("ds_read"), is_write = instruction.starts_with("ds_write");
  const auto operands = operands_of(instruction);
  if (!(is_read || is_write) || operands.size() < 2) return {};
  uint64_t bytes = 0;
  for (const auto &[ending, size] : {std::pair<std::string_view, uint64_t>{"_b8", 1},
                                     {"_u8", 1},
                                     {"_i8", 1},
                                     {"_b16", 2},
                                     {"_u16", 2},
                                     {"_i16", 2},
                                     {"_u16_d16", 2},
                                     {"_u16_d16_hi", 2},
                                     {"_b16_d16_hi", 2},
                                     {"_b32", 4},
                                     {"_b64", 8},
                                     {"_b96", 12},
                                     {"_b128", 16}})
    if (instruction.mnemonic.ends_with(ending)) bytes = size;
  if (bytes == 0) return {};
  std::string_view address = operands[is_read ? 1 : 0];
  address = address.substr(0, address.find(' '));
  const Interval base = value_of(address, state);
  const bool is_pair = instruction.starts_with(is_read ? "ds_read2" : "ds_write2");
  if (!is_pair) {
    const uint64_t offset = modifier(instruction, "offset", 0);
    return {base.low + offset, base.high + offset + bytes};
  }
  const uint64_t unit = bytes * (instruction.mnemonic.find("st64") != std::string::npos ? 64 : 1);
  const uint64_t first = modifier(instruction, "offset0", 0) * unit,
                 second = modifier(instruction, "offset1", 0) * unit;
  return {base.low + std::min(first, second), base.high + std::max(first, second) + bytes};
}

} // namespace

std::vector<LdsRange> lds_ranges(const MachineCode &code, uint32_t threads) {
  const std::vector<Instruction> &listing = code.instructions();
  std::vector<State> before(listing.size());
  std::vector<unsigned> visits(listing.size());
  std::vector<LdsRange> ranges(listing.size());
  before[0].reached = true;
  before[0].registers[0] = {0, threads - 1};
  std::set<size_t> pending{0};
  while (!pending.empty()) {
    const size_t index = *pending.begin();
    pending.erase(pending.begin());
    // A range that still grows after a few rounds of a loop is treated as unbounded.
    constexpr unsigned enough = 4;
    const bool give_up = ++visits[index] > enough;
    State state = before[index];
    ranges[index] = touched_by(listing[index], state);
    step(listing[index], state);
    for (size_t successor : listing[index].next) {
      State &known = before[successor];
      if (!known.reached) {
        known = state;
        pending.insert(successor);
        continue;
      }
      bool changed = known.all_lanes && !state.all_lanes;
      known.all_lanes = known.all_lanes && state.all_lanes;
      if (known.all_lanes_are && known.all_lanes_are != state.all_lanes_are) {
        known.all_lanes_are.reset();
        changed = true;
      }
      for (size_t n = 0; n < known.registers.size(); ++n) {
        const Interval joined = known.registers[n].joined(state.registers[n]);
        if (joined == known.registers[n]) continue;
        known.registers[n] = give_up ? Interval{} : joined;
        changed = true;
      }
      changed |= std::erase_if(known.lanes,
                               [&](const auto &lane) { return !state.lanes.contains(lane.first); }) != 0;
      for (auto &[lane, value] : known.lanes) {
        const Interval joined = value.joined(state.lanes.at(lane));
        if (joined == value) continue;
        value = give_up ? Interval{} : joined;
        changed = true;
      }
      if (changed) pending.insert(successor);
    }
  }
  return ranges;
}

} // namespace sluice::test

//===- quiet_runs.h - runs of instructions that the checks of registers need not look at ----------------===//
//
// A run is straight-line code without memory instructions. The registers that it touches say beforehand
// whether any of its instructions could be reported, so that one question replaces one per instruction. Most
// often the answer is no: what the run reads was written and has arrived. Then its results are defined in the
// active lanes, whatever is computed.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "emulator/isa/op.h"
#include "emulator/isa/op_info.h"

namespace sluice::emulator {

/// Registers by operand number, constants excluded.
struct RegisterSet {
  static constexpr uint32_t words = scc_operand / 64 + 1;
  std::array<uint64_t, words> bits{};

  void set(uint32_t operand) { bits[operand / 64] |= uint64_t(1) << operand % 64; }
  void reset(uint32_t operand) { bits[operand / 64] &= ~(uint64_t(1) << operand % 64); }
  bool test(uint32_t operand) const { return (bits[operand / 64] >> operand % 64 & 1) != 0; }
  void assign(uint32_t operand, bool value) { value ? set(operand) : reset(operand); }
  void add(RegisterRange range) {
    for (uint32_t r = 0; r < range.count; ++r)
      set(range.first + r);
  }
  RegisterSet &operator|=(const RegisterSet &other) {
    for (uint32_t i = 0; i < words; ++i)
      bits[i] |= other.bits[i];
    return *this;
  }
  bool meets(RegisterRange range) const {
    for (uint32_t at = range.first, end = at + range.count; at < end;) {
      const uint32_t count = std::min(64 - at % 64, end - at);
      if ((bits[at / 64] >> at % 64 & ~uint64_t(0) >> (64 - count)) != 0) return true;
      at += count;
    }
    return false;
  }
};

/// What a run touches in one word of a RegisterSet.
struct QuietWord {
  uint32_t word;
  uint64_t needed; // read before the run writes them
  uint64_t read;
  uint64_t written;
};

struct QuietRun {
  uint32_t first = 0, end = 0; // instructions, by index
  uint32_t words_begin = 0, words_end = 0;
  // One past the highest register used, by file.
  uint16_t vgprs_end = 0, agprs_end = 0, sgprs_end = 0;
  bool has_matrix = false;    // some instruction is for the matrix core, which ignores EXEC
  bool crosses_lanes = false; // results of a lane may come from others
};

struct QuietRuns {
  static constexpr uint32_t none = ~0u;
  std::vector<uint32_t> run_of; // by instruction: its run
  std::vector<QuietRun> runs;
  std::vector<QuietWord> words;
};
/// `entries`: instructions at which waves start.
QuietRuns find_quiet_runs(const std::vector<Op> &ops, const OpInfos &infos,
                          const std::vector<uint32_t> &entries);

} // namespace sluice::emulator

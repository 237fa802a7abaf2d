//===- decided_branches.cpp - where a path decides a branch before it gets there ------------------------===//
#include "decided_branches.h"

#include "emulator/exec/op.h"

#include <algorithm>
#include <optional>
#include <string_view>

namespace sluice::test {

namespace {

using emulator::RegisterRange;

constexpr std::string_view question = "s_and_b64 vcc, exec, s[";

bool writes(const Instruction &instruction, const RegisterRange &registers) {
  return std::any_of(instruction.writes.begin(), instruction.writes.end(), [&](const RegisterRange &range) {
    return range.first < registers.first + registers.count && registers.first < range.first + range.count;
  });
}

/// Whether exec is not 0 on the edge between the two.
bool shows_active_lane(const Instruction &branch, size_t next) {
  if (branch.next.size() != 2) return false;
  return (branch.is("s_cbranch_execz") && next == branch.next[0]) ||
         (branch.is("s_cbranch_execnz") && next == branch.next[1]);
}

/// What `pair`, which is `name` in text, says about vcc on the edge: 0, or not 0. Looks back along the one
/// path that leads there.
std::optional<bool> is_zero(const MachineCode &code, size_t from, size_t to, const RegisterRange &pair,
                            const std::string &name) {
  constexpr RegisterRange exec{emulator::first_sgpr + emulator::sgpr_exec, 2};
  std::optional<bool> zero;
  bool active = false;
  for (size_t looked_at = 0; looked_at < code.instructions().size(); ++looked_at) {
    const Instruction &instruction = code.instructions()[from];
    active = active || shows_active_lane(instruction, to);
    if (!zero && writes(instruction, pair)) {
      if (instruction.text == "s_mov_b64 " + name + ", 0")
        zero = true;
      else if (instruction.text == "s_mov_b64 " + name + ", -1")
        zero = false;
      else
        return std::nullopt;
    }
    if (zero && (*zero || active)) return zero;
    if ((!active && writes(instruction, exec)) || instruction.previous.size() != 1) return std::nullopt;
    to = from;
    from = instruction.previous[0];
  }
  return std::nullopt;
}

} // namespace

std::map<std::pair<size_t, size_t>, size_t> decided_branches(const MachineCode &code) {
  std::map<std::pair<size_t, size_t>, size_t> decided;
  for (size_t index = 0; index < code.instructions().size(); ++index) {
    const Instruction &instruction = code.instructions()[index];
    if (!instruction.text.starts_with(question) || instruction.previous.size() < 2) continue;
    const Instruction &branch = code.instructions()[instruction.next[0]];
    const bool if_zero = branch.is("s_cbranch_vccz");
    if ((!if_zero && !branch.is("s_cbranch_vccnz")) || branch.next.size() != 2) continue;
    const std::string name = instruction.text.substr(question.size() - 2);
    const auto pair = std::find_if(instruction.reads.begin(), instruction.reads.end(), [](const auto &range) {
      return range.count == 2 && range.first != emulator::first_sgpr + emulator::sgpr_exec;
    });
    if (pair == instruction.reads.end()) continue;
    for (size_t from : instruction.previous)
      if (const std::optional<bool> zero = is_zero(code, from, index, *pair, name))
        decided[{from, index}] = branch.next[*zero == if_zero ? 1 : 0];
  }
  return decided;
}

} // namespace sluice::test

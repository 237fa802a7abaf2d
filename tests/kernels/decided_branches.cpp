//===- decided_branches.cpp - branches that a path has already decided ----------------------------------===//
#include "decided_branches.h"

#include "emulator/isa/op.h"

#include <algorithm>
#include <cctype>
#include <optional>
#include <string>
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

/// The value of the scalar `name` on the one path that leads to the edge from `from`.
std::optional<std::string> number_of(const MachineCode &code, size_t from, const RegisterRange &scalar,
                                     const std::string &name) {
  for (size_t looked_at = 0; looked_at < code.instructions().size(); ++looked_at) {
    const Instruction &instruction = code.instructions()[from];
    if (writes(instruction, scalar)) {
      const std::string move = "s_mov_b32 " + name + ", ";
      if (!instruction.text.starts_with(move)) return std::nullopt;
      const std::string number = instruction.text.substr(move.size());
      return std::isdigit(number[0]) ? std::optional(number) : std::nullopt;
    }
    if (instruction.previous.size() != 1) return std::nullopt;
    from = instruction.previous[0];
  }
  return std::nullopt;
}

/// What `pair`, which is `name` in text, implies for vcc on the edge: 0, or not 0. Looks back along the one
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

using Decided = std::map<std::pair<size_t, size_t>, size_t>;

/// By the number in a scalar: "s_cmp_lg_u32 s42, 1".
void decide_number(const MachineCode &code, size_t index, Decided &decided) {
  const Instruction &instruction = code.instructions()[index];
  const bool asks_equal = instruction.is("s_cmp_eq_u32");
  if ((!asks_equal && !instruction.is("s_cmp_lg_u32")) || instruction.reads.size() != 1) return;
  const Instruction &branch = code.instructions()[instruction.next[0]];
  const bool if_true = branch.is("s_cbranch_scc1");
  if ((!if_true && !branch.is("s_cbranch_scc0")) || branch.next.size() != 2) return;
  const size_t begin = instruction.text.find(' ') + 1, comma = instruction.text.find(", ");
  const std::string name = instruction.text.substr(begin, comma - begin);
  const std::string asked = instruction.text.substr(comma + 2);
  for (size_t from : instruction.previous)
    if (const auto number = number_of(code, from, instruction.reads[0], name))
      decided[{from, index}] = branch.next[((*number == asked) == asks_equal) == if_true ? 1 : 0];
}

/// By a pair that is 0 or -1: "s_and_b64 vcc, exec, s[14:15]".
void decide_pair(const MachineCode &code, size_t index, Decided &decided) {
  const Instruction &instruction = code.instructions()[index];
  if (!instruction.text.starts_with(question)) return;
  const Instruction &branch = code.instructions()[instruction.next[0]];
  const bool if_zero = branch.is("s_cbranch_vccz");
  if ((!if_zero && !branch.is("s_cbranch_vccnz")) || branch.next.size() != 2) return;
  const std::string name = instruction.text.substr(question.size() - 2);
  const auto pair = std::find_if(instruction.reads.begin(), instruction.reads.end(), [](const auto &range) {
    return range.count == 2 && range.first != emulator::first_sgpr + emulator::sgpr_exec;
  });
  if (pair == instruction.reads.end()) return;
  for (size_t from : instruction.previous)
    if (const std::optional<bool> zero = is_zero(code, from, index, *pair, name))
      decided[{from, index}] = branch.next[*zero == if_zero ? 1 : 0];
}

} // namespace

Decided decided_branches(const MachineCode &code) {
  Decided decided;
  for (size_t index = 0; index < code.instructions().size(); ++index) {
    if (code.instructions()[index].previous.size() < 2) continue;
    decide_pair(code, index, decided);
    decide_number(code, index, decided);
  }
  return decided;
}

} // namespace sluice::test

//===- counter_watch.h - loops that a counter in memory ends --------------------------------------------===//
//
// A persistent kernel takes its work from a counter that all workgroups share: an atomic instruction answers
// what was there before, and a loop ends by that. What some workgroups of such a launch do says nothing of
// the others, so that it cannot be extrapolated. The watch follows the answers of atomic instructions through
// registers and LDS to the branches that leave loops. A branch that decides something else by them, such as
// whether a workgroup is the last and merges what all have left, is none of these. Nor is the retry of a
// compare-and-swap, whose answers are not followed: its loop runs until no other wave has come in between.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include <bitset>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "emulator/machine/program.h"

namespace sluice::emulator::timing {

class CounterWatch {
public:
  /// Whether the program has atomic instructions whose answers need watching.
  static bool is_needed(const ProgramImpl &program);

  CounterWatch(const ProgramImpl &program, OpRange kernel);

  /// A wave begins: nothing of it or its LDS comes from a counter.
  void start(const Wave &wave);
  /// An instruction is about to run.
  void before(Wave &wave, const Op &op);

  struct Finding {
    uint32_t atomic; // instructions, by index
    uint32_t branch;
  };
  const std::optional<Finding> &finding() const { return found; }

private:
  static constexpr size_t registers = sgpr_mode + first_sgpr + 1;
  struct Marks {
    std::bitset<registers> marked; // values that come from a counter
    uint32_t atomic = 0;           // the last that answered
  };

  bool reads_marked(const Marks &marks, const OpInfo &info) const;
  bool marked(const Marks &marks, const RegisterRange &range) const;
  void mark(Marks &marks, const OpInfo &info, bool value, bool all_lanes_written) const;
  void access_lds(Wave &wave, const Op &op, const OpInfo &info, Marks &marks);
  void check_branch(const Marks &marks, const Op &op);

  const ProgramImpl &program;
  std::vector<bool> leaves_loop; // by instruction: a branch one of whose ways leads out of a loop
  std::unordered_map<const Wave *, Marks> waves;
  std::unordered_map<const WorkgroupView *, std::vector<bool>> lds; // by dword
  std::optional<Finding> found;
};

} // namespace sluice::emulator::timing

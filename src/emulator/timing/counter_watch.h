//===- counter_watch.h - loops that end by a counter in memory ------------------------------------------===//
//
// A persistent kernel takes its work from a counter that all workgroups share: an atomic instruction returns
// the old value, and a loop ends depending on it. Some workgroups of such a launch do not represent
// the others, so it cannot be extrapolated. The watch follows the results of atomic instructions through
// registers and LDS to the branches that leave loops. Branches that use them for another decision, such as
// whether a workgroup is the last and merges the others' results, do not count. Nor does the retry of a
// compare-and-swap, whose results are not followed: its loop runs until no other wave has interfered.
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
  /// Whether the program has atomic instructions whose results need watching.
  static bool is_needed(const ProgramImpl &program);

  CounterWatch(const ProgramImpl &program, OpRange kernel);

  /// A wave begins: nothing in it or its LDS comes from a counter.
  void start(const Wave &wave);
  /// An instruction is about to run.
  void before(Wave &wave, const Op &op);

  struct Finding {
    uint32_t atomic; // index of the instruction
    uint32_t branch;
  };
  const std::optional<Finding> &finding() const { return found; }

private:
  static constexpr size_t registers = sgpr_mode + first_sgpr + 1;
  struct Marks {
    std::bitset<registers> marked; // values that come from a counter
    uint32_t atomic = 0;           // the last one that returned a value
  };

  bool reads_marked(const Marks &marks, const OpInfo &info) const;
  bool marked(const Marks &marks, const RegisterRange &range) const;
  void mark(Marks &marks, const OpInfo &info, bool value, bool all_lanes_written) const;
  void access_lds(Wave &wave, const Op &op, const OpInfo &info, Marks &marks);
  void check_branch(const Marks &marks, const Op &op);

  const ProgramImpl &program;
  std::vector<bool> leaves_loop; // by instruction: a branch with a path that leaves a loop
  std::unordered_map<const Wave *, Marks> waves;
  std::unordered_map<const WorkgroupView *, std::vector<bool>> lds; // by dword
  std::optional<Finding> found;
};

} // namespace sluice::emulator::timing

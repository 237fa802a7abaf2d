//===- synchronisation_mutations.cpp - are the waits and barriers of the kernels needed, and checked?
//-------===//
//
//   synchronisation_mutations PACK [KERNEL]
//
// For every kernel of the pack: the kernel as it is runs without a report. Then, one at a time in the machine
// code, every barrier is removed; every wait for vector memory that the passes inserted, which stand in front
// of the barriers and behind the loop, is weakened by one and removed; and the wait for LDS in front of every
// barrier is removed. The emulator must report each mutant. The one exception is a wait for LDS behind
// another such wait with nothing in between on any path, which is listed with the wait that makes it
// redundant. Fails on any mutant that is neither.
//
//===----------------------------------------------------------------------------------------------------===//
#include "emulated_run.h"
#include "machine_code.h"
#include "shipped_kernels.h"

#include <cstdio>
#include <stdexcept>

using namespace sluice;
using namespace sluice::test;

namespace {

struct Mutant {
  std::string what;
  uint64_t pc;
  uint32_t word;                     // what replaces the instruction
  std::optional<uint64_t> redundant; // the wait that already does its work
};

std::vector<Mutant> mutants_of(const MachineCode &code) {
  std::vector<Mutant> mutants;
  const std::vector<Instruction> &listing = code.instructions();
  uint64_t last_barrier = 0;
  for (const Instruction &instruction : listing)
    if (instruction.starts_with("s_barrier")) last_barrier = instruction.pc;
  for (size_t n = 0; n < listing.size(); ++n) {
    const uint64_t pc = listing[n].pc;
    if (listing[n].starts_with("s_barrier")) mutants.push_back({"barrier removed", pc, s_nop_0, {}});
    if (!listing[n].starts_with("s_waitcnt")) continue;
    const Wait wait = Wait::decode(uint16_t(code.word(pc)));
    const auto add = [&](const std::string &what, Wait weaker, std::optional<uint64_t> redundant = {}) {
      mutants.push_back({what, pc, s_waitcnt_opcode | weaker.encode(), redundant});
    };
    const bool before_barrier = n + 1 < listing.size() && listing[n + 1].starts_with("s_barrier");
    const bool drain = wait.vmcnt == 0 && pc > last_barrier;
    if (wait.vmcnt != Wait::no_vmcnt && (before_barrier || drain)) {
      const std::string name = "vmcnt(" + std::to_string(wait.vmcnt) + ")";
      add(name + " weakened by one", {wait.vmcnt + 1, wait.expcnt, wait.lgkmcnt});
      add(name + " removed", {Wait::no_vmcnt, wait.expcnt, wait.lgkmcnt});
    }
    if (before_barrier && wait.lgkmcnt != Wait::no_lgkmcnt)
      add("lgkmcnt(" + std::to_string(wait.lgkmcnt) + ") before a barrier removed",
          {wait.vmcnt, wait.expcnt, Wait::no_lgkmcnt}, code.dominating_lgkm_wait(pc));
  }
  return mutants;
}

struct Tally {
  int reported = 0, redundant = 0, failed = 0;
};

void examine(const ShippedKernel &kernel, Tally &tally) {
  const RunResult original = run_attention(kernel.entry, kernel.elf);
  if (original.hip_error != 0 || !original.reports.empty()) {
    ++tally.failed;
    std::printf("FAILED %s: the kernel itself is reported, error %d %s\n", kernel.name.c_str(),
                original.hip_error, original.reports.empty() ? "" : original.reports[0].c_str());
    return;
  }
  const MachineCode code(kernel.elf, kernel.name);
  for (const Mutant &mutant : mutants_of(code)) {
    const RunResult result = run_attention(kernel.entry, code.with_word(mutant.pc, mutant.word));
    const char *verdict = "reported";
    std::string detail;
    if (!result.reports.empty() && result.hip_error != 0) {
      ++tally.reported;
      detail = result.kinds[0];
    } else if (mutant.redundant) {
      ++tally.redundant;
      verdict = "redundant";
      char at[64];
      std::snprintf(at, sizeof at, "the wait at %#llx does it", (unsigned long long)*mutant.redundant);
      detail = at;
    } else {
      ++tally.failed;
      verdict = "SURVIVED";
    }
    std::printf("%-9s %s %#llx %s: %s\n", verdict, kernel.name.c_str(), (unsigned long long)mutant.pc,
                mutant.what.c_str(), detail.c_str());
  }
}

} // namespace

int main(int argc, char **argv) try {
  if (argc < 2) {
    std::fprintf(stderr, "usage: synchronisation_mutations PACK [KERNEL]\n");
    return 2;
  }
  Tally tally;
  int examined = 0;
  for (const ShippedKernel &kernel : read_kernels(argv[1])) {
    if (argc > 2 && kernel.name != argv[2]) continue;
    examine(kernel, tally);
    ++examined;
  }
  std::printf("%d kernels: %d mutants reported, %d redundant, %d failures\n", examined, tally.reported,
              tally.redundant, tally.failed);
  return tally.failed == 0 && tally.reported > 0 ? 0 : 1;
} catch (const std::exception &error) {
  std::fprintf(stderr, "synchronisation_mutations: %s\n", error.what());
  return 1;
}

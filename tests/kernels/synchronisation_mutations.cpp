//===- synchronisation_mutations.cpp - is every wait and barrier of the kernels needed, and checked?
//--------===//
//
//   synchronisation_mutations (PACK | CODE-OBJECT KERNEL-NAME) [--kernel NAME] [--quick] [--threads N]
//   [--list]
//
// For every kernel of the pack: the kernel as it is runs all problems without a report, and on no path does
// it touch a register that is still to be written. Then, one at a time in the machine code, every barrier is
// removed, and every s_waitcnt, whoever inserted it, is weakened by one and removed, each of its counters by
// itself. Of each mutant
//
//   the emulator reports the missing synchronisation in one of the problems,       "reported"
//   or the proofs of wait_proofs.h show that something else synchronises already;  "redundant"
//   it then runs all problems without a report and with the same output.
//
// A mutant that neither happens to is a survivor, and the test fails; so it does when proof and emulator
// contradict each other. --quick runs redundant mutants on the first problem only, and takes the barriers and
// the waits with a barrier behind them from all kernels but the first of each head size. --list prints the
// mutants that were reported as well.
//
//===----------------------------------------------------------------------------------------------------===//
#include "emulated_run.h"
#include "machine_code.h"
#include "shipped_kernels.h"
#include "wait_proofs.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <set>
#include <stdexcept>
#include <thread>

using namespace sluice;
using namespace sluice::test;
using emulator::LaunchResult;
using emulator::ReportKind;

namespace {

struct Arguments {
  std::vector<std::string> files; // a pack, or a code object and the name of its kernel
  std::string kernel;             // of the pack; all if empty
  bool quick = false, list = false;
  unsigned threads = 2;
};

struct Mutant {
  size_t index;                   // of the instruction
  std::optional<Counter> counter; // none: a barrier
  std::string what;
  uint32_t word; // what replaces it
  Proof redundant;

  enum Verdict : uint8_t { reported, is_redundant, not_reached, survived, contradicted } verdict = survived;
  std::string detail = {};
};

std::vector<Mutant> mutants_of(const MachineCode &code, const WaitProofs &proofs) {
  std::vector<Mutant> mutants;
  for (size_t index = 0; index < code.instructions().size(); ++index) {
    const Instruction &instruction = code.instructions()[index];
    if (instruction.is("s_barrier"))
      mutants.push_back({index, std::nullopt, "removed", s_nop_0, proofs.may_drop_barrier(index)});
    if (!instruction.is("s_waitcnt")) continue;
    const Wait wait = Wait::decode(uint16_t(instruction.word));
    for (Counter counter : counters) {
      const unsigned most = no_wait(counter);
      if (wait[counter] == most) continue;
      for (const unsigned weaker : std::set{wait[counter] + 1, most}) {
        Wait mutated = wait;
        mutated[counter] = weaker;
        const std::string name(counter_name(counter));
        mutants.push_back({index, counter,
                           weaker == most ? name + " removed" : name + " " + std::to_string(weaker),
                           s_waitcnt_opcode | mutated.encode(), proofs.may_weaken(index, counter, weaker)});
      }
    }
  }
  return mutants;
}

bool is_followed_by_barrier(const MachineCode &code, const Mutant &mutant) {
  const Instruction &instruction = code.instructions()[mutant.index];
  return instruction.is("s_barrier") ||
         (instruction.next.size() == 1 && code.instructions()[instruction.next[0]].is("s_barrier"));
}

/// Of a missing wait or barrier, and of nothing else.
bool is_of_synchronisation(ReportKind kind) {
  return kind == ReportKind::pending_register || kind == ReportKind::lds_race ||
         kind == ReportKind::lds_uninitialised || kind == ReportKind::lds_copy_at_end;
}

/// What one thread needs to run the problems.
class Bench {
public:
  explicit Bench(const package::KernelEntry &kernel) {
    for (const Problem &problem : path_problems())
      runs.push_back(std::make_unique<AttentionRun>(kernel, problem));
  }

  /// Runs the kernel as it is; says what is wrong with it, or nothing.
  std::string run_original(std::span<const std::byte> elf) {
    const emulator::Program program(elf);
    for (const auto &run : runs) {
      const LaunchResult result = run->run(program);
      if (!result.ok()) return emulator::to_text(result.reports[0]);
      expected.push_back(run->output());
    }
    return {};
  }

  void judge(const MachineCode &code, Mutant &mutant, size_t problems_if_redundant) {
    const Instruction &instruction = code.instructions()[mutant.index];
    const emulator::Program program(code.with_word(instruction, mutant.word));
    const size_t count = mutant.redundant.holds ? problems_if_redundant : runs.size();
    for (size_t n = 0; n < count; ++n) {
      const LaunchResult result = runs[n]->run(program, true);
      for (const emulator::Report &report : result.reports)
        if (is_of_synchronisation(report.kind)) {
          mutant.verdict = mutant.redundant.holds ? Mutant::contradicted : Mutant::reported;
          mutant.detail =
              std::string(report_kind_name(report.kind)) + " in problem \"" + path_problems()[n].name + "\"";
          return;
        }
      if (mutant.redundant.holds && (!result.ok() || runs[n]->output() != expected[n])) {
        mutant.verdict = Mutant::contradicted;
        mutant.detail = std::string("it changes what problem \"") + path_problems()[n].name + "\" does";
        return;
      }
    }
    mutant.verdict = mutant.redundant.holds       ? Mutant::is_redundant
                     : reaches(code, instruction) ? Mutant::survived
                                                  : Mutant::not_reached;
    mutant.detail = mutant.redundant.why;
  }

private:
  bool reaches(const MachineCode &code, const Instruction &instruction) {
    const emulator::Program program(code.with_word(instruction, s_trap_2));
    return std::any_of(runs.begin(), runs.end(),
                       [&](const auto &run) { return !run->run(program, true).ok(); });
  }

  std::vector<std::unique_ptr<AttentionRun>> runs; // by problem
  std::vector<std::vector<uint16_t>> expected;     // their outputs
};

struct Tally {
  std::string kernel;
  size_t waits = 0, barriers = 0, mutants = 0, verdicts[5] = {};
  std::vector<std::string> redundant; // table rows: what, and why
  bool sound = false;                 // the kernel as it is

  bool passed() const {
    return sound && verdicts[Mutant::reported] > 0 && verdicts[Mutant::survived] == 0 &&
           verdicts[Mutant::contradicted] == 0;
  }
};

void judge_all(const ShippedKernel &kernel, const MachineCode &code, std::vector<Mutant> &mutants,
               const Arguments &arguments) {
  std::atomic<size_t> next = 0;
  const auto work = [&] {
    Bench bench(kernel.entry);
    bench.run_original(kernel.elf);
    for (size_t n = next++; n < mutants.size(); n = next++)
      bench.judge(code, mutants[n], arguments.quick ? 1 : path_problems().size());
  };
  std::vector<std::jthread> others;
  for (unsigned n = 1; n < arguments.threads; ++n)
    others.emplace_back(work);
  work();
}

Tally examine(const ShippedKernel &kernel, bool barriers_only, const Arguments &arguments) {
  const char *name = kernel.name.c_str();
  Tally tally;
  tally.kernel = kernel.name;
  const std::string complaint = Bench(kernel.entry).run_original(kernel.elf);
  if (!complaint.empty()) {
    std::printf("FAILED %s: the kernel itself is reported: %s\n", name, complaint.c_str());
    return tally;
  }
  const MachineCode code(kernel.elf, kernel.name);
  const WaitProofs proofs(code, kernel.entry.threads);
  const Proof registers = proofs.registers_are_waited_for();
  if (!registers.holds) {
    std::printf("FAILED %s: %s\n", name, registers.why.c_str());
    return tally;
  }
  tally.sound = true;

  for (const Instruction &instruction : code.instructions()) {
    tally.waits += instruction.is("s_waitcnt");
    tally.barriers += instruction.is("s_barrier");
  }
  std::vector<Mutant> mutants = mutants_of(code, proofs);
  if (barriers_only)
    std::erase_if(mutants, [&](const Mutant &mutant) { return !is_followed_by_barrier(code, mutant); });
  judge_all(kernel, code, mutants, arguments);
  tally.mutants = mutants.size();
  for (size_t n = 0; n < mutants.size(); ++n) {
    const Mutant &mutant = mutants[n];
    const std::string where = describe(code.instructions()[mutant.index]);
    ++tally.verdicts[mutant.verdict];
    switch (mutant.verdict) {
    case Mutant::reported:
      if (arguments.list)
        std::printf("reported %s %s, %s: %s\n", name, where.c_str(), mutant.what.c_str(),
                    mutant.detail.c_str());
      break;
    case Mutant::is_redundant: {
      // A wait that may go may be weaker as well: the next mutant says it all.
      const bool goes = n + 1 < mutants.size() && mutants[n + 1].verdict == Mutant::is_redundant &&
                        mutants[n + 1].index == mutant.index && mutants[n + 1].counter == mutant.counter;
      if (!goes) tally.redundant.push_back(where + " | " + mutant.what + " | " + mutant.detail);
      break;
    }
    case Mutant::not_reached:
      if (arguments.list) std::printf("not reached %s %s, %s\n", name, where.c_str(), mutant.what.c_str());
      break;
    case Mutant::survived:
    case Mutant::contradicted:
      std::printf("%s %s %s, %s: %s\n", mutant.verdict == Mutant::survived ? "SURVIVED" : "CONTRADICTED",
                  name, where.c_str(), mutant.what.c_str(), mutant.detail.c_str());
    }
  }
  return tally;
}

Arguments parse(int argc, char **argv) {
  Arguments arguments;
  for (int n = 1; n < argc; ++n) {
    const std::string_view argument = argv[n];
    const auto value = [&] {
      if (++n == argc) throw std::runtime_error(std::string(argument) + " needs a value");
      return argv[n];
    };
    if (argument == "--kernel")
      arguments.kernel = value();
    else if (argument == "--threads")
      arguments.threads = unsigned(std::max(1, std::atoi(value())));
    else if (argument == "--quick")
      arguments.quick = true;
    else if (argument == "--list")
      arguments.list = true;
    else if (!argument.starts_with("--"))
      arguments.files.emplace_back(argument);
    else
      throw std::runtime_error("unknown argument " + std::string(argument));
  }
  return arguments;
}

} // namespace

int main(int argc, char **argv) try {
  const Arguments arguments = parse(argc, argv);
  std::vector<Tally> tallies;
  std::set<uint32_t> head_dims;
  for (const ShippedKernel &kernel : read_arguments(arguments.files)) {
    if (!arguments.kernel.empty() && kernel.name != arguments.kernel) continue;
    const bool first_of_its_size = head_dims.insert(kernel.entry.name.head_dim_qk).second;
    tallies.push_back(examine(kernel, arguments.quick && !first_of_its_size, arguments));
  }
  std::printf("\n| kernel | redundant wait or barrier | mutant | why |\n| --- | --- | --- | --- |\n");
  for (const Tally &tally : tallies)
    for (const std::string &row : tally.redundant)
      std::printf("| %s | %s |\n", tally.kernel.c_str(), row.c_str());
  std::printf("\n| kernel | waits | barriers | mutants | reported | redundant | not reached | survivors |\n"
              "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n");
  for (const Tally &tally : tallies)
    std::printf("| %s | %zu | %zu | %zu | %zu | %zu | %zu | %zu |\n", tally.kernel.c_str(), tally.waits,
                tally.barriers, tally.mutants, tally.verdicts[Mutant::reported],
                tally.verdicts[Mutant::is_redundant], tally.verdicts[Mutant::not_reached],
                tally.verdicts[Mutant::survived] + tally.verdicts[Mutant::contradicted]);
  const bool passed = !tallies.empty() && std::all_of(tallies.begin(), tallies.end(),
                                                      [](const Tally &tally) { return tally.passed(); });
  return passed ? 0 : 1;
} catch (const std::exception &error) {
  std::fprintf(stderr, "synchronisation_mutations: %s\n", error.what());
  return 1;
}

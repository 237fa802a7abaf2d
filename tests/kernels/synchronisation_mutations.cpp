//===- synchronisation_mutations.cpp - is every wait and barrier of the kernels needed, and checked? ----===//
//
//   synchronisation_mutations (PACK | CODE-OBJECT KERNEL-NAME) [--kernel NAME] [--quick] [--threads N]
//   [--list]
//
// For every kernel in the pack on contiguous tensors with tiles of one head's rows, and the first of each
// kind of code of the other forms: the unchanged kernel runs all problems without a report, and on no path
// does it touch a register that is still to be written. Then, one at a time in the machine code, every
// barrier is removed, and every s_waitcnt, no matter which pass inserted it, is weakened by one and removed,
// each of its counters separately. For each mutant
//
//   the emulator reports the missing synchronisation in one of the problems,       "reported"
//   or the proofs of wait_proofs.h show that something else synchronises already;  "redundant"
//   it then runs the problems without a report and with the same output.
//
// A problem in which the kernel does not reach a wait says nothing about it, and is left out. A mutant that
// is neither reported nor redundant is a survivor, or not reached if no problem reaches it; the test fails
// then, and when proof and emulator contradict each other.
//
// --quick takes the first of each kind of code of the kernels on contiguous tensors too, and runs redundant
// mutants on the shortest problem only. It takes a third of the waits of the first kernel on contiguous
// tensors and of the first whose waves divide the keys, and of every third other kernel only barriers and
// waits before a barrier. --list also prints the mutants that were reported.
//
//===----------------------------------------------------------------------------------------------------===//
#include "emulated_run.h"
#include "machine_code.h"
#include "shipped_kernels.h"
#include "support/level.h"
#include "wait_proofs.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <set>
#include <stdexcept>
#include <thread>
#include <utility>

using namespace sluice;
using namespace sluice::test;
using emulator::LaunchResult;
using emulator::ReportKind;

namespace {

struct Arguments {
  std::vector<std::string> files; // a pack, or a code object and the name of its kernel
  std::string kernel;             // of the pack
  bool quick = false, list = false;
  unsigned threads = 2;
};

struct Mutant {
  size_t index;                   // of the instruction
  std::optional<Counter> counter; // empty for a barrier
  unsigned weaker;                // of a wait: how many operations may be in flight
  std::string what;
  uint32_t word; // the replacement
  Proof redundant = {};

  enum Verdict : uint8_t { reported, is_redundant, not_reached, survived, contradicted } verdict = survived;
  std::string detail = {};
};

std::vector<Mutant> mutants_of(const MachineCode &code) {
  std::vector<Mutant> mutants;
  for (size_t index = 0; index < code.instructions().size(); ++index) {
    const Instruction &instruction = code.instructions()[index];
    if (instruction.is("s_barrier")) mutants.push_back({index, std::nullopt, 0, "removed", s_nop_0});
    if (!instruction.is("s_waitcnt")) continue;
    const Wait wait = Wait::decode(uint16_t(instruction.word));
    for (Counter counter : counters) {
      const unsigned most = no_wait(counter);
      if (wait[counter] == most) continue;
      for (const unsigned weaker : std::set{wait[counter] + 1, most}) {
        Wait mutated = wait;
        mutated[counter] = weaker;
        const std::string name(counter_name(counter));
        mutants.push_back({index, counter, weaker,
                           weaker == most ? name + " removed" : name + " " + std::to_string(weaker),
                           s_waitcnt_opcode | mutated.encode()});
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

/// Whether reports of this kind can only come from a missing wait or barrier.
bool is_of_synchronisation(ReportKind kind) {
  return kind == ReportKind::pending_register || kind == ReportKind::lds_race ||
         kind == ReportKind::lds_equal_stores || kind == ReportKind::lds_write_after_read ||
         kind == ReportKind::lds_uninitialised || kind == ReportKind::lds_copy_at_end ||
         kind == ReportKind::barrier_mismatch;
}

/// The behaviour of the unchanged kernel in one problem.
struct Original : emulator::Tracer {
  std::set<uint64_t> executed_at; // addresses
  uint64_t instructions = 0;
  std::vector<uint16_t> output;

  bool follows(std::array<uint32_t, 3>, uint32_t) const override { return true; }
  void executed(const emulator::TracedInstruction &instruction) override {
    executed_at.insert(instruction.pc);
    ++instructions;
  }
};

/// Everything that one thread needs to run the problems.
class Bench {
public:
  explicit Bench(const package::KernelEntry &kernel) : problems(path_problems(kernel.name)) {
    for (const Problem &problem : problems)
      runs.push_back(std::make_unique<AttentionRun>(kernel, problem));
  }

  /// By problem. Throws std::runtime_error with the defect of the unchanged kernel.
  std::vector<Original> run_original(std::span<const std::byte> elf) {
    const emulator::Program program(elf);
    std::vector<Original> originals(runs.size());
    for (size_t n = 0; n < runs.size(); ++n) {
      const LaunchResult result = runs[n]->run(program, false, &originals[n]);
      if (!result.ok())
        throw std::runtime_error(std::string("problem \"") + problems[n].name +
                                 "\": " + emulator::to_text(result.reports[0]));
      originals[n].output = runs[n]->output();
    }
    return originals;
  }

  void judge(const MachineCode &code, std::span<const Original> originals, Mutant &mutant,
             size_t most_if_redundant) {
    const Instruction &instruction = code.instructions()[mutant.index];
    // In other problems the mutant is the original. The shortest is first: it is likely to be enough.
    std::vector<size_t> reaching;
    for (size_t n = 0; n < runs.size(); ++n)
      if (originals[n].executed_at.contains(instruction.pc)) reaching.push_back(n);
    std::ranges::sort(reaching, {}, [&](size_t n) { return originals[n].instructions; });
    if (mutant.redundant.holds && reaching.size() > most_if_redundant) reaching.resize(most_if_redundant);

    const emulator::Program program(code.with_word(instruction, mutant.word));
    for (size_t n : reaching) {
      const LaunchResult result = runs[n]->run(program, true);
      for (const emulator::Report &report : result.reports)
        if (is_of_synchronisation(report.kind)) {
          mutant.verdict = mutant.redundant.holds ? Mutant::contradicted : Mutant::reported;
          mutant.detail =
              std::string(report_kind_name(report.kind)) + " in problem \"" + problems[n].name + "\"";
          return;
        }
      if (mutant.redundant.holds && (!result.ok() || runs[n]->output() != originals[n].output)) {
        mutant.verdict = Mutant::contradicted;
        mutant.detail = std::string("it changes what problem \"") + problems[n].name + "\" does";
        return;
      }
    }
    mutant.verdict = mutant.redundant.holds ? Mutant::is_redundant
                     : reaching.empty()     ? Mutant::not_reached
                                            : Mutant::survived;
    mutant.detail = mutant.redundant.why;
  }

private:
  const std::vector<Problem> problems;
  std::vector<std::unique_ptr<AttentionRun>> runs; // by problem
};

struct Tally {
  std::string kernel;
  size_t waits = 0, barriers = 0, mutants = 0, verdicts[5] = {};
  std::vector<std::string> redundant; // table rows: mutant, and reason
  bool sound = false;                 // the unchanged kernel

  bool passed() const {
    return sound && verdicts[Mutant::reported] > 0 && verdicts[Mutant::not_reached] == 0 &&
           verdicts[Mutant::survived] == 0 && verdicts[Mutant::contradicted] == 0;
  }
};

/// Calls `work` for 0 to count - 1, on as many threads as are wanted. Each thread has a state of its own,
/// which `start` makes.
template <typename Start, typename Work>
void on_threads(const Arguments &arguments, size_t count, Start start, Work work) {
  std::atomic<size_t> next = 0;
  const auto run = [&] {
    auto state = start();
    for (size_t n = next++; n < count; n = next++)
      work(state, n);
  };
  std::vector<std::jthread> others;
  for (unsigned n = 1; n < arguments.threads; ++n)
    others.emplace_back(run);
  run();
}

void judge_all(const ShippedKernel &kernel, const MachineCode &code, const WaitProofs &proofs,
               std::span<const Original> originals, std::vector<Mutant> &mutants,
               const Arguments &arguments) {
  const auto judge = [&](Bench &bench, size_t n) {
    Mutant &mutant = mutants[n];
    mutant.redundant = mutant.counter ? proofs.may_weaken(mutant.index, *mutant.counter, mutant.weaker)
                                      : proofs.may_drop_barrier(mutant.index);
    bench.judge(code, originals, mutant, arguments.quick ? 1 : originals.size());
  };
  on_threads(arguments, mutants.size(), [&] { return Bench(kernel.entry); }, judge);
}

/// Those of one instruction of every three that have mutants.
void keep_some(std::vector<Mutant> &mutants) {
  size_t number = 0, last = SIZE_MAX;
  std::erase_if(mutants, [&](const Mutant &mutant) {
    if (last != SIZE_MAX && mutant.index != last) ++number;
    last = mutant.index;
    return number % 3 != 0;
  });
}

Tally examine(const ShippedKernel &kernel, bool barriers_only, const Arguments &arguments) {
  const char *name = kernel.name.c_str();
  Tally tally;
  tally.kernel = kernel.name;
  std::vector<Original> originals;
  try {
    originals = Bench(kernel.entry).run_original(kernel.elf);
  } catch (const std::runtime_error &complaint) {
    std::printf("FAILED %s: the kernel itself is reported: %s\n", name, complaint.what());
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
  std::vector<Mutant> mutants = mutants_of(code);
  if (barriers_only)
    std::erase_if(mutants, [&](const Mutant &mutant) { return !is_followed_by_barrier(code, mutant); });
  else if (arguments.quick)
    keep_some(mutants);
  judge_all(kernel, code, proofs, originals, mutants, arguments);
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
      // A wait that may be removed may also be weaker: the next mutant covers both.
      const bool goes = n + 1 < mutants.size() && mutants[n + 1].verdict == Mutant::is_redundant &&
                        mutants[n + 1].index == mutant.index && mutants[n + 1].counter == mutant.counter;
      if (!goes) tally.redundant.push_back(where + " | " + mutant.what + " | " + mutant.detail);
      break;
    }
    case Mutant::not_reached:
      std::printf("NOT REACHED %s %s, %s\n", name, where.c_str(), mutant.what.c_str());
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

std::vector<ShippedKernel> kernels_of(const Arguments &arguments) {
  if (arguments.files.size() != 1) return read_arguments(arguments.files);
  std::vector<ShippedKernel> kernels = read_all_attention_kernels(arguments.files[0]);
  if (!arguments.kernel.empty()) {
    std::erase_if(kernels, [&](const ShippedKernel &kernel) { return kernel.name != arguments.kernel; });
    return kernels;
  }
  return first_of_each_kind(std::move(kernels), [&](const package::KernelName &name) {
    return arguments.quick || !name.form.empty();
  });
}

} // namespace

int main(int argc, char **argv) try {
  const Arguments arguments = parse(argc, argv);
  std::set<bool> kinds; // whether waves divide the keys
  const auto is_first_of_its_kind = [&](const package::KernelName &name) {
    const bool divides_keys = name.waves_dividing_keys() > 1;
    return (divides_keys || name.form.empty()) && kinds.insert(divides_keys).second;
  };
  std::vector<ShippedKernel> kernels = kernels_of(arguments);
  std::vector<char> barriers_only;
  size_t number = 0;
  std::erase_if(kernels, [&](const ShippedKernel &kernel) {
    const bool takes_barriers = arguments.quick && !is_first_of_its_kind(kernel.entry.name);
    if (takes_barriers && !takes(number++, 3)) return true;
    barriers_only.push_back(takes_barriers);
    return false;
  });
  std::vector<Tally> tallies(kernels.size());
  const auto nothing = [] { return 0; };
  on_threads(arguments, kernels.size(), nothing,
             [&](int, size_t n) { tallies[n] = examine(kernels[n], barriers_only[n], arguments); });
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

//===- kernel_losses.cpp - where a kernel's matrix cores lose their time --------------------------------===//
//
//   kernel_losses PACK --what-if NAME...   the time of a workgroup while kinds of instructions become free
//   kernel_losses PACK --listing NAME      the instructions of the main loop at which waves lose most
//
// NAME is a kernel, followed by "+causal" for a causal launch. A free instruction runs, so that values and
// branches stay those of the kernel, but takes no time and delays no other instruction. The cost of a kind is
// the drop in the time of a workgroup. Each row makes one more kind free, cumulatively, until only MFMAs are
// left: so the costs add up to all that is lost. First, constant maxima replace the real ones: the time saved
// is the cost of rescaling.
//
//===----------------------------------------------------------------------------------------------------===//
#include <algorithm>
#include <cstdio>
#include <functional>
#include <memory>
#include <stdexcept>

#include "emulator/machine/launch_setup.h"
#include "emulator/machine/program.h"
#include "emulator/timing/compute_unit.h"
#include "kernels/emulated_run.h"
#include "kernels/machine_code.h"
#include "kernels/shipped_kernels.h"

namespace {

using namespace sluice;
using namespace sluice::test;
using namespace sluice::emulator::timing;

// 1024 keys, at least a workgroup for each compute unit; where keys are hidden, as many queries as keys.
constexpr uint32_t compute_units = 4, rounds = 2, keys = 1024, q_heads = 64, kv_heads = 8;

struct Wanted {
  ShippedKernel kernel;
  bool causal = false;
};

Wanted find(const std::vector<ShippedKernel> &kernels, const std::string &argument) {
  const size_t plus = argument.find('+');
  const std::string name = argument.substr(0, plus);
  if (plus != std::string::npos && argument.substr(plus) != "+causal")
    throw std::runtime_error("\"" + argument + "\": behind a kernel's name only \"+causal\" may stand");
  for (const ShippedKernel &kernel : kernels)
    if (kernel.name == name) return {kernel, plus != std::string::npos};
  throw std::runtime_error("the pack has no kernel \"" + name + "\"");
}

/// The workgroups that compute units of the first XCD get. The time of a causal workgroup depends on its tile
/// of queries: so an equal number of each tile, instead of those that come first.
class Numbers : public WorkgroupSource {
public:
  Numbers(const package::AttentionLaunch &call, bool causal) : causal(causal), q_tiles(call.grid[1]) {}

  std::optional<Assignment> next(uint32_t compute_unit) override {
    const uint32_t count = given[compute_unit]++;
    if (count == rounds) return std::nullopt;
    if (!causal) return Assignment{device_xcds * (compute_unit + uint64_t(xcd_compute_units) * count)};
    const uint32_t number = count * compute_units + compute_unit;
    return Assignment{uint64_t(kv_heads) * (number * q_tiles / (rounds * compute_units))};
  }

private:
  const bool causal;
  const uint32_t q_tiles;
  uint32_t given[compute_units] = {};
};

class Bench {
public:
  Bench(const Wanted &wanted, Problem::Values values)
      : causal(wanted.causal), program(wanted.kernel.elf),
        run(wanted.kernel.entry, {.name = "losses",
                                  .q_tiles = causal ? keys / wanted.kernel.entry.name.tile_q : 8,
                                  .q_rest = 0,
                                  .kv_len = keys,
                                  .q_heads = q_heads,
                                  .kv_heads = kv_heads,
                                  .mask = causal ? Problem::bottom_right : Problem::none,
                                  .lse = false,
                                  .values = values,
                                  .completion = emulator::CompletionOrder::early}),
        call(run.call()) {}

  const emulator::ProgramImpl &code() const { return program.impl(); }

  TimingResult time(const std::vector<OpTiming> &timings) {
    emulator::Options machine;
    machine.checks = emulator::Checks::none();
    machine.completion = emulator::CompletionOrder::early;
    emulator::LaunchSetup setup(program, call.kernel, call.grid, call.block, 0, call.kernarg(),
                                run.device_memory(), machine);
    TimingResult result;
    result.instructions.resize(code().fast.size());
    SharedLevels shared(compute_units, 1, Device());
    Numbers source(call, causal);
    std::vector<std::unique_ptr<ComputeUnit>> units;
    for (uint32_t i = 0; i < compute_units; ++i) {
      units.push_back(std::make_unique<ComputeUnit>(i, 0, setup.state(), timings, shared, source, result,
                                                    nullptr, nullptr));
      units.back()->add_place(); // as many as fit, for kernels of head size 128
    }
    for (;;) {
      const auto first = std::min_element(units.begin(), units.end(), [](const auto &a, const auto &b) {
        return a->next_turn() < b->next_turn();
      });
      if ((*first)->next_turn() == never) break;
      (*first)->take_turn();
    }
    if (!setup.reports().empty()) throw std::runtime_error(to_text(setup.reports().front()));
    return result;
  }

private:
  const bool causal;
  emulator::Program program;
  AttentionRun run;
  package::AttentionLaunch call;
};

enum class Where { before, loop, behind };

/// For each instruction by index, from the addresses; the loop is every path from a barrier back to it.
std::vector<Where> places(const ShippedKernel &kernel, const emulator::ProgramImpl &program) {
  const MachineCode code(kernel.elf, kernel.name);
  const std::vector<Instruction> &listing = code.instructions();
  const auto reached_from = [&](size_t start, auto neighbours) {
    std::vector<bool> seen(listing.size());
    std::vector<size_t> pending{start};
    while (!pending.empty()) {
      const Instruction &instruction = listing[pending.back()];
      pending.pop_back();
      for (size_t index : instruction.*neighbours) {
        if (!seen[index]) pending.push_back(index);
        seen[index] = true;
      }
    }
    return seen;
  };
  for (size_t barrier = 0; barrier < listing.size(); ++barrier) {
    if (!listing[barrier].is("s_barrier")) continue;
    const std::vector<bool> after = reached_from(barrier, &Instruction::next);
    const std::vector<bool> before = reached_from(barrier, &Instruction::previous);
    if (!after[barrier]) continue;
    std::vector<Where> where(program.fast.size(), Where::before);
    bool entered = false;
    for (size_t i = 0; i < listing.size(); ++i) {
      const bool inside = after[i] && before[i];
      entered |= inside;
      where[size_t(program.op_at_address(listing[i].pc))] = inside    ? Where::loop
                                                            : entered ? Where::behind
                                                                      : Where::before;
    }
    return where;
  }
  throw std::runtime_error(kernel.name + " has no loop with a barrier");
}

//===--- What-ifs ---------------------------------------------------------------------------------------===//

struct WhatIf {
  const char *name;
  Where where;
  std::function<bool(const OpTiming &)> concerns;
};

auto uses(Pipe pipe) {
  return [pipe](const OpTiming &timing) { return timing.pipe == pipe; };
}
auto does(Effect effect) {
  return [effect](const OpTiming &timing) { return timing.effect == effect; };
}
bool is_no_mfma(const OpTiming &timing) {
  return timing.pipe != Pipe::matrix;
}

const WhatIf what_ifs[] = {
    {"before the loop: loads and their waits", Where::before,
     [](const OpTiming &t) { return t.pipe == Pipe::vmem || t.effect == Effect::wait_counts; }},
    {"before the loop: the rest but MFMAs", Where::before, is_no_mfma},
    {"after the loop", Where::behind, is_no_mfma},
    {"barriers", Where::loop, does(Effect::barrier)},
    {"copies into LDS", Where::loop, uses(Pipe::vmem)},
    {"scalar instructions", Where::loop, uses(Pipe::salu)},
    {"LDS reads", Where::loop, uses(Pipe::lds)},
    {"s_waitcnt", Where::loop, does(Effect::wait_counts)},
    {"transcendentals", Where::loop, uses(Pipe::transcendental)},
    {"vector instructions", Where::loop, uses(Pipe::valu)},
    {"branches, s_nop", Where::loop,
     [](const OpTiming &t) {
       return t.pipe == Pipe::branch || (t.pipe == Pipe::internal && t.effect == Effect::none);
     }},
};

void make_free(std::vector<OpTiming> &timings, const std::vector<Where> &where, const WhatIf &what) {
  for (size_t i = 0; i < timings.size(); ++i)
    if (where[i] == what.where && what.concerns(timings[i])) timings[i] = {};
}

struct Share {
  double clk = 0, matrix_clk = 0; // of a workgroup on one SIMD; the mean
  double percent() const { return 100 * matrix_clk / clk; }
};

Share share_of(const TimingResult &result) {
  Share share;
  for (const WorkgroupTime &time : result.simulated) {
    share.clk += double(time.end - time.start) / double(result.simulated.size());
    share.matrix_clk += double(time.matrix_clk) / simds / double(result.simulated.size());
  }
  return share;
}

struct Row {
  std::string name;
  Share together, alone;
};

std::vector<Row> what_if_rows(const Wanted &wanted, bool alone_too) {
  Bench usual(wanted, Problem::usual), steady(wanted, Problem::zero_keys);
  const std::vector<Where> where = places(wanted.kernel, usual.code());
  const std::vector<OpTiming> original = op_timings(usual.code());
  const Share as_is = share_of(usual.time(original)), no_rescale = share_of(steady.time(original));
  std::vector<Row> rows{{"nothing", as_is, as_is}, {"rescaling", no_rescale, no_rescale}};
  std::vector<OpTiming> together = original;
  for (const WhatIf &what : what_ifs) {
    make_free(together, where, what);
    std::vector<OpTiming> alone = original;
    make_free(alone, where, what);
    rows.push_back(
        {what.name, share_of(steady.time(together)), alone_too ? share_of(steady.time(alone)) : Share{}});
  }
  return rows;
}

/// The full table for one kernel; for several, the cost of each kind.
void print_what_ifs(const std::vector<Wanted> &wanted) {
  std::vector<std::vector<Row>> all;
  for (const Wanted &one : wanted)
    all.push_back(what_if_rows(one, wanted.size() == 1));
  if (wanted.size() == 1) {
    std::printf("| free as well | clk of a workgroup | saved | MFMA busy | saved, only this | MFMA busy, "
                "only this |\n"
                "| --- | ---: | ---: | ---: | ---: | ---: |\n");
    for (size_t i = 0; i < all[0].size(); ++i) {
      const Row &row = all[0][i];
      const double before = all[0][i == 0 ? 0 : i - 1].together.clk;
      const double before_alone = all[0][i < 2 ? 0 : 1].alone.clk;
      std::printf("| %s | %.0f | %.0f | %.1f %% | %.0f | %.1f %% |\n", row.name.c_str(), row.together.clk,
                  before - row.together.clk, row.together.percent(), before_alone - row.alone.clk,
                  row.alone.percent());
    }
    return;
  }
  std::printf("| |");
  for (const Wanted &one : wanted)
    std::printf(" %s d%u w%u%s |", one.kernel.entry.name.dtype.c_str(), one.kernel.entry.name.head_dim_qk,
                one.kernel.entry.threads / 64, one.causal ? " causal" : "");
  std::printf("\n| --- |");
  for (size_t i = 0; i < all.size(); ++i)
    std::printf(" ---: |");
  const auto print_row = [&](const std::string &name, auto value) {
    std::printf("\n| %s |", name.c_str());
    for (const std::vector<Row> &rows : all)
      std::printf(" %.1f %% |", value(rows));
  };
  print_row("MFMA busy", [](const auto &rows) { return rows.front().together.percent(); });
  for (size_t i = 1; i < all[0].size(); ++i)
    print_row(all[0][i].name, [i](const auto &rows) {
      return 100 * (rows[i - 1].together.clk - rows[i].together.clk) / rows.front().together.clk;
    });
  print_row("left", [](const auto &rows) {
    return 100 * (rows.back().together.clk - rows.back().together.matrix_clk) / rows.front().together.clk;
  });
  std::printf("\n");
}

//===--- Listing ----------------------------------------------------------------------------------------===//

constexpr double least_shown = 40; // clk lost at an instruction, each time it is issued

void print_listing(const Wanted &wanted) {
  Bench bench(wanted, Problem::usual);
  const std::vector<Where> where = places(wanted.kernel, bench.code());
  const std::vector<OpTiming> timings = op_timings(bench.code());
  const TimingResult result = bench.time(timings);
  std::printf("| address | instruction | clk lost | mostly for | MFMAs, copies, LDS reads before it |\n"
              "| --- | --- | ---: | --- | --- |\n");
  uint32_t matrix = 0, copies = 0, reads = 0;
  for (uint32_t i = 0; i < where.size(); ++i) {
    const InstructionTime &time = result.instructions[i];
    if (where[i] != Where::loop || time.issued == 0) continue;
    uint64_t lost = 0;
    for (uint64_t clk : time.stall_clk)
      lost += clk;
    const auto most = std::max_element(time.stall_clk.begin(), time.stall_clk.end());
    if (double(lost) >= least_shown * double(time.issued))
      std::printf("| %06llx | `%s` | %.0f | %s | %u, %u, %u |\n",
                  static_cast<unsigned long long>(bench.code().address_of(i)), bench.code().text(i).c_str(),
                  double(lost) / double(time.issued),
                  std::string(stall_name(Stall(most - time.stall_clk.begin()))).c_str(), matrix, copies,
                  reads);
    matrix += timings[i].pipe == Pipe::matrix;
    copies += timings[i].pipe == Pipe::vmem;
    reads += timings[i].pipe == Pipe::lds;
  }
}

} // namespace

int main(int argc, char **argv) try {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  if (arguments.size() < 3 || (arguments[1] != "--what-if" && arguments[1] != "--listing") ||
      (arguments[1] == "--listing" && arguments.size() > 3))
    throw std::runtime_error("usage: kernel_losses PACK --what-if NAME... | --listing NAME");
  const std::vector<ShippedKernel> kernels = read_kernels(arguments[0]);
  std::vector<Wanted> wanted;
  for (size_t i = 2; i < arguments.size(); ++i)
    wanted.push_back(find(kernels, arguments[i]));
  for (const Wanted &one : wanted)
    if (one.kernel.entry.name.head_dim_qk != 128)
      throw std::runtime_error(one.kernel.name + ": head size " +
                               std::to_string(one.kernel.entry.name.head_dim_qk) +
                               ", must be 128, of which one workgroup fits on a compute unit");
  if (arguments[1] == "--listing")
    print_listing(wanted[0]);
  else
    print_what_ifs(wanted);
  return 0;
} catch (const std::exception &error) {
  std::fprintf(stderr, "kernel_losses: %s\n", error.what());
  return 1;
}

//===- listing.cpp - where in a program waves lose time -------------------------------------------------===//
#include <algorithm>
#include <fmt/format.h>
#include <numeric>
#include <optional>
#include <set>

#include "emulator/machine/program.h"
#include "emulator/timing/control_flow.h"
#include "timing_report/report.h"

namespace sluice::timing_report {

using namespace emulator::timing;

namespace {

struct Sum {
  uint64_t issued = 0;
  uint64_t lost = 0;

  void add(const InstructionTime &time) {
    issued += time.issued;
    lost = std::accumulate(time.stall_clk.begin(), time.stall_clk.end(), lost);
  }
};

double percent(uint64_t part, uint64_t whole) {
  return whole == 0 ? 0 : 100 * double(part) / double(whole);
}

/// The two reasons that cost most, with their shares of the instruction's lost clk.
std::string main_reasons(const InstructionTime &time, uint64_t lost) {
  std::array<size_t, stall_count> order;
  std::iota(order.begin(), order.end(), size_t(0));
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return time.stall_clk[a] > time.stall_clk[b]; });
  std::string text;
  for (size_t i = 0; i < 2 && time.stall_clk[order[i]] != 0; ++i)
    text += fmt::format("{}{} {:.0f} %", i == 0 ? "" : ", ", stall_name(Stall(order[i])),
                        percent(time.stall_clk[order[i]], lost));
  return text;
}

class Page {
public:
  Page(const emulator::Program &program, const TimingResult &result)
      : code(program.impl()), result(result),
        flow(control_flow(code, code.ops_of(*code.object.find_kernel(result.kernel)))) {
    for (const InstructionTime &time : result.instructions)
      all.add(time);
  }

  std::string text() {
    page = fmt::format("{}: {} instructions issued, after which waves lost {} clk\n", result.kernel,
                       all.issued, all.lost);
    page += fmt::format("{:>10} {:>11} {:>8}  {:<31}instruction\n", "issued", "lost each", "of all",
                        "because of");
    std::optional<const Block *> before;
    for (uint32_t op = 0; op < result.instructions.size(); ++op) {
      if (result.instructions[op].issued == 0) continue;
      const Block *const block = flow.block_of(op);
      if (before != block) begin_block(block, op);
      before = block;
      add_instruction(block, op);
    }
    return page;
  }

private:
  static std::string margin(size_t depth) {
    std::string text;
    for (size_t i = 0; i < depth; ++i)
      text += "| ";
    return text;
  }

  Sum sum(emulator::OpRange ops) const {
    Sum found;
    for (uint32_t op = ops.first; op < ops.last; ++op)
      found.add(result.instructions[op]);
    return found;
  }

  void begin_block(const Block *block, uint32_t op) {
    if (!block) {
      page += "\nbeyond the kernel\n";
      return;
    }
    page += "\n";
    for (size_t depth = 0; depth < block->loops.size(); ++depth) {
      // A loop is shown with the first of its blocks in the code, which need not be its entry.
      if (!shown_loops.insert(block->loops[depth]).second) continue;
      const Loop &loop = flow.loops[block->loops[depth]];
      Sum inside;
      for (uint32_t other : loop.blocks) {
        const Sum part = sum(flow.blocks[other].ops);
        inside.issued += part.issued;
        inside.lost += part.lost;
      }
      page += margin(depth + 1) +
              fmt::format("loop {:06x}, entered or repeated {} times: {:.1f} % of what was issued, {:.1f} % "
                          "of what was lost\n",
                          code.address_of(loop.header), result.instructions[loop.header].issued,
                          percent(inside.issued, all.issued), percent(inside.lost, all.lost));
    }
    std::string loops;
    for (auto loop = block->loops.rbegin(); loop != block->loops.rend(); ++loop)
      loops += fmt::format("{}{:06x}", loops.empty() ? " of loop " : " in ",
                           code.address_of(flow.loops[*loop].header));
    page += margin(block->loops.size()) +
            fmt::format("block {:06x}{}: {} instructions, {} times, {:.1f} % of what was lost\n",
                        code.address_of(block->ops.first), loops, block->ops.last - block->ops.first,
                        result.instructions[op].issued, percent(sum(block->ops).lost, all.lost));
  }

  void add_instruction(const Block *block, uint32_t op) {
    const InstructionTime &time = result.instructions[op];
    Sum own;
    own.add(time);
    const std::string before = margin(block ? block->loops.size() : 0);
    // Columns keep their position: the margin takes the room before the first number.
    page += fmt::format("{}{:>{}} {:>11.1f} {:>6.2f} %  {:<30} {:06x}: {}\n", before, time.issued,
                        before.size() < 10 ? 10 - before.size() : 0, double(own.lost) / double(time.issued),
                        percent(own.lost, all.lost), main_reasons(time, own.lost), code.address_of(op),
                        code.text(op));
  }

  const emulator::ProgramImpl &code;
  const TimingResult &result;
  const ControlFlow flow;
  Sum all;
  std::string page;
  std::set<uint32_t> shown_loops;
};

} // namespace

std::string listing(const emulator::Program &program, const TimingResult &result) {
  return Page(program, result).text();
}

} // namespace sluice::timing_report

//===- loop_waits.cpp - no loop waits for a copy that it has just issued --------------------------------===//
//
//   loop_waits PACK | CODE-OBJECT KERNEL-NAME
//
// A pipelined loop copies tiles into LDS for later iterations, directly, or through registers by loads and
// LDS writes. A vmcnt(0) in it, which the backend inserts before workgroup fences and where it cannot tell
// LDS tiles apart, also waits for those copies, and defeats the pipeline. Loops are those of the control-flow
// graph (its strongly connected components), whatever the layout. Prints the contents of each loop; fails if
// a loop with copies and MFMAs waits for vmcnt(0), or if a kernel does not have such a loop.
//
//===----------------------------------------------------------------------------------------------------===//
#include "machine_code.h"
#include "shipped_kernels.h"

#include <algorithm>
#include <cstdio>
#include <stdexcept>

using namespace sluice::test;

namespace {

/// Strongly connected components with more than one instruction or an edge to itself (Tarjan's algorithm,
/// with an explicit stack).
class Loops {
public:
  explicit Loops(const MachineCode &code)
      : listing(code.instructions()), number(listing.size(), 0), low(listing.size(), 0),
        open(listing.size(), false) {
    visit(0);
  }

  std::vector<std::vector<size_t>> found; // indices, sorted

private:
  struct Frame {
    size_t index, next = 0;
  };

  void enter(size_t index) {
    number[index] = low[index] = ++count;
    stack.push_back(index);
    open[index] = true;
    frames.push_back({index});
  }

  void visit(size_t entry) {
    enter(entry);
    while (!frames.empty()) {
      const size_t index = frames.back().index;
      if (frames.back().next < listing[index].next.size()) {
        const size_t successor = listing[index].next[frames.back().next++];
        if (number[successor] == 0)
          enter(successor);
        else if (open[successor])
          low[index] = std::min(low[index], number[successor]);
        continue;
      }
      frames.pop_back();
      if (!frames.empty()) low[frames.back().index] = std::min(low[frames.back().index], low[index]);
      if (low[index] == number[index]) close(index);
    }
  }

  void close(size_t root) {
    std::vector<size_t> component;
    do {
      component.push_back(stack.back());
      open[stack.back()] = false;
      stack.pop_back();
    } while (component.back() != root);
    const auto &next = listing[root].next;
    const bool to_itself = std::find(next.begin(), next.end(), root) != next.end();
    if (component.size() == 1 && !to_itself) return;
    std::sort(component.begin(), component.end());
    found.push_back(std::move(component));
  }

  const std::vector<Instruction> &listing;
  std::vector<size_t> number, low;
  std::vector<bool> open;
  std::vector<size_t> stack;
  std::vector<Frame> frames;
  size_t count = 0;
};

struct LoopStatistics {
  size_t instructions = 0, mfmas = 0, copies = 0, loads = 0, lds_reads = 0, lds_writes = 0, barriers = 0,
         waits = 0;
  unsigned least_vmcnt = no_wait(Counter::vmcnt);
  const Instruction *worst = nullptr; // that waits for the least

  void add(const Instruction &instruction) {
    ++instructions;
    mfmas += instruction.starts_with("v_mfma");
    const bool is_copy = instruction.text.ends_with(" lds") || instruction.starts_with("global_load_lds");
    const bool is_load = instruction.starts_with("buffer_load") || instruction.starts_with("global_load");
    copies += is_copy;
    loads += is_load && !is_copy;
    lds_reads += instruction.starts_with("ds_read");
    lds_writes += instruction.starts_with("ds_write");
    barriers += instruction.is("s_barrier");
    if (!instruction.is("s_waitcnt")) return;
    ++waits;
    const unsigned vmcnt = Wait::decode(uint16_t(instruction.word)).vmcnt;
    if (vmcnt >= least_vmcnt) return;
    least_vmcnt = vmcnt;
    worst = &instruction;
  }
};

bool keeps_copies_in_flight(const ShippedKernel &kernel) {
  const MachineCode code(kernel.elf, kernel.name);
  size_t pipelined = 0;
  bool passed = true;
  for (const std::vector<size_t> &loop : Loops(code).found) {
    LoopStatistics statistics;
    for (size_t index : loop)
      statistics.add(code.instructions()[index]);
    const std::string least = statistics.worst ? std::to_string(statistics.least_vmcnt) : std::string("none");
    std::printf("| %s | %#llx | %zu | %zu | %zu | %zu | %zu | %zu | %zu | %zu | %s |\n", kernel.name.c_str(),
                (unsigned long long)code.instructions()[loop[0]].pc, statistics.instructions,
                statistics.mfmas, statistics.copies, statistics.loads, statistics.lds_reads,
                statistics.lds_writes, statistics.barriers, statistics.waits, least.c_str());
    const bool through_registers = statistics.loads != 0 && statistics.lds_writes != 0;
    if ((statistics.copies == 0 && !through_registers) || statistics.mfmas == 0) continue;
    ++pipelined;
    // A loop that loads into registers, be it K and V or bias and mask, also waits for everything before.
    // (kernel_budgets limits the waits on the common path.)
    if (statistics.loads != 0 || !statistics.worst || statistics.least_vmcnt > 0) continue;
    std::printf("FAILED %s: the pipelined loop waits for all copies: %s\n", kernel.name.c_str(),
                describe(*statistics.worst).c_str());
    passed = false;
  }
  if (pipelined == 0) {
    std::printf("FAILED %s: no loop has both copies and MFMAs\n", kernel.name.c_str());
    passed = false;
  }
  return passed;
}

} // namespace

int main(int argc, char **argv) try {
  std::printf(
      "| kernel | loop at | instructions | MFMAs | copies into LDS | loads | LDS reads | LDS writes | "
      "barriers | waits | least vmcnt |\n"
      "| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n");
  bool passed = true;
  for (const ShippedKernel &kernel : read_arguments({argv + 1, argv + argc}))
    passed = keeps_copies_in_flight(kernel) && passed;
  return passed ? 0 : 1;
} catch (const std::exception &error) {
  std::fprintf(stderr, "loop_waits: %s\n", error.what());
  return 1;
}

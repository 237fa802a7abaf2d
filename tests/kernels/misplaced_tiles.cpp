//===- misplaced_tiles.cpp - the emulator notices if two LDS tiles share bytes --------------------------===//
//
//   misplaced_tiles KERNEL-NAME INTACT.co BROKEN.co...
//
// All are the same kernel; in a BROKEN.co two tiles that are in use at the same time share bytes of LDS. The
// intact one must run without a report, and each broken one must be reported as a race on LDS by the first
// problem. Some share bytes in order, without a race; their results must then differ. This happens with one
// wave, whose copies complete each other in order once they fill the counter; with copies through registers,
// where a wave writes the same places of tiles of the same width; and with parked rows of Q, which are
// written before the first barrier and only read from then on. With several waves, at least one broken kernel
// must have a race.
//
//===----------------------------------------------------------------------------------------------------===//
#include "emulated_run.h"
#include "shipped_kernels.h"

#include "emulator/stats/kernel_stats.h"

#include <algorithm>
#include <cstdio>
#include <stdexcept>

using namespace sluice;
using namespace sluice::test;

namespace {

const emulator::Report *race_in(const emulator::LaunchResult &result) {
  const auto found = std::find_if(result.reports.begin(), result.reports.end(), [](const auto &report) {
    return report.kind == emulator::ReportKind::lds_race;
  });
  return found == result.reports.end() ? nullptr : &*found;
}

/// Whether two tiles may share bytes without a race.
bool may_be_in_order(const ShippedKernel &kernel) {
  const package::KernelName &name = kernel.entry.name;
  const bool parks_rows = name.form == "mla" && name.tile_q == 128;
  const emulator::KernelStats stats = emulator::kernel_stats(kernel.elf, kernel.name);
  return name.waves == 1 || parks_rows || stats.mix[emulator::InstructionClass::memory_to_lds] == 0;
}

} // namespace

int main(int argc, char **argv) try {
  if (argc < 4) {
    std::fprintf(stderr, "usage: misplaced_tiles KERNEL-NAME INTACT.co BROKEN.co...\n");
    return 2;
  }
  const ShippedKernel intact = read_code_object(argv[2], argv[1]);
  AttentionRun run(intact.entry, path_problems(intact.entry.name)[0]);
  bool passed = run.run(emulator::Program(intact.elf)).ok();
  const std::vector<uint16_t> expected = run.output();
  if (!passed) std::printf("FAILED %s: the intact kernel is reported\n", argv[1]);
  bool any_race = false;
  for (int n = 3; n < argc; ++n) {
    const emulator::LaunchResult result = run.run(emulator::Program(read_file(argv[n])), true);
    const emulator::Report *race = race_in(result);
    any_race |= race != nullptr;
    if (!race && may_be_in_order(intact) && run.output() != expected) {
      std::printf("%s: no race, but other results\n", argv[n]);
      continue;
    }
    if (!race) {
      std::printf("FAILED %s: no race is reported\n", argv[n]);
      passed = false;
      continue;
    }
    std::printf("%s: %s\n", argv[n], race->message.c_str());
  }
  if (!any_race && intact.entry.name.waves > 1) {
    std::printf("FAILED %s: no broken kernel has a race\n", argv[1]);
    passed = false;
  }
  return passed ? 0 : 1;
} catch (const std::exception &error) {
  std::fprintf(stderr, "misplaced_tiles: %s\n", error.what());
  return 1;
}

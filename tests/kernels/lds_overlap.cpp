//===- lds_overlap.cpp - correct and incorrect tiles in the same bytes of LDS ---------------------------===//
//
//   lds_overlap INTACT.co UNGUARDED.co OVERLAPPING.co
//
// All three hold the kernels of lds_overlap.mlir. INTACT.co is the passes' output: the emulator must be
// silent and the output right. UNGUARDED.co lacks the barrier where the second tile reuses the first tile's
// bytes; in OVERLAPPING.co tiles that are live at the same time share bytes: the emulator must report races.
//
//===----------------------------------------------------------------------------------------------------===//
#include "emulator/machine/machine.h"
#include "shipped_kernels.h"
#include "support/half.h"

#include <cstdio>
#include <cstring>
#include <stdexcept>

using namespace sluice;

namespace {

constexpr unsigned threads = 128;

struct Run {
  size_t races = 0, other_reports = 0;
  bool output_is_right = true;
};

Run run(const char *path, const char *kernel) {
  const std::vector<std::byte> elf = test::read_file(path);
  const emulator::Program program(elf);
  emulator::Memory memory;
  auto *out = static_cast<uint16_t *>(memory.allocate(threads * 16));
  const uint64_t arguments[] = {reinterpret_cast<uint64_t>(out)};
  const emulator::LaunchResult result = emulator::launch(program, kernel, {1, 1, 1}, {threads, 1, 1}, 0,
                                                         std::as_bytes(std::span(arguments)), memory);
  Run summary;
  for (const emulator::Report &report : result.reports)
    ++(report.kind == emulator::ReportKind::lds_race ? summary.races : summary.other_reports);
  for (unsigned thread = 0; thread < threads; ++thread)
    for (unsigned n = 0; n < 8; ++n) {
      // The values that the other wave has written: its thread's number, in the second tile one more.
      const unsigned expected = (thread ^ 64) + n / 4;
      summary.output_is_right &= out[thread * 8 + n] == support::f16_from_float(float(expected));
    }
  std::printf("%-20s %-20s %zu races, %zu other reports, output %s\n",
              std::strrchr(path, '/') ? std::strrchr(path, '/') + 1 : path, kernel, summary.races,
              summary.other_reports, summary.output_is_right ? "right" : "wrong");
  return summary;
}

bool is_clean(const Run &run) {
  return run.races == 0 && run.other_reports == 0 && run.output_is_right;
}

} // namespace

int main(int argc, char **argv) try {
  if (argc != 4) {
    std::fprintf(stderr, "usage: lds_overlap INTACT.co UNGUARDED.co OVERLAPPING.co\n");
    return 2;
  }
  bool good = is_clean(run(argv[1], "one_after_the_other")) && is_clean(run(argv[1], "at_once"));
  good &= run(argv[2], "one_after_the_other").races != 0 && is_clean(run(argv[2], "at_once"));
  good &= run(argv[3], "at_once").races != 0 && is_clean(run(argv[3], "one_after_the_other"));
  return good ? 0 : 1;
} catch (const std::exception &error) {
  std::fprintf(stderr, "lds_overlap: %s\n", error.what());
  return 1;
}

//===- level_scores.cpp - keys that score the same weigh the same ---------------------------------------===//
//
//   level_scores PACK
//
// All scores of a row are one large number, so that its product with the scale is rounded, and V is 1 in the
// first half of the keys and -1 in the second. O is then exactly 0: a factor that is not exactly 1 where the
// maximum stays the same would favour one half, tile after tile.
//
//===----------------------------------------------------------------------------------------------------===//
#include "emulated_run.h"
#include "shipped_kernels.h"

#include <algorithm>
#include <cstdio>
#include <stdexcept>

using namespace sluice;

namespace {

bool weighs_alike(const test::ShippedKernel &kernel) {
  const test::Problem problem = {"level scores",
                                 0,
                                 1,
                                 16 * 64,
                                 1,
                                 1,
                                 test::Problem::none,
                                 false,
                                 test::Problem::level,
                                 emulator::CompletionOrder::late};
  test::AttentionRun run(kernel.entry, problem);
  const emulator::LaunchResult result = run.run(emulator::Program(kernel.elf));
  const std::vector<uint16_t> output = run.output();
  const auto wrong =
      std::count_if(output.begin(), output.end(), [](uint16_t o) { return (o & 0x7fff) != 0; });
  std::printf("%s: %zu reports, %td of %zu elements are not 0\n", kernel.name.c_str(), result.reports.size(),
              wrong, output.size());
  return result.reports.empty() && wrong == 0;
}

} // namespace

int main(int argc, char **argv) try {
  bool good = true;
  for (const test::ShippedKernel &kernel : test::read_arguments({argv + 1, argv + argc}))
    good &= weighs_alike(kernel);
  return good ? 0 : 1;
} catch (const std::exception &error) {
  std::fprintf(stderr, "level_scores: %s\n", error.what());
  return 1;
}

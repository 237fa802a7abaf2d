//===- swizzle_mutation.cpp - a swizzle that only one side applies --------------------------------------===//
//
//   swizzle_mutation KERNEL-NAME INTACT.co BROKEN.co
//
// Both are the same kernel; in BROKEN.co the copies into LDS are swizzled and the reads are not. The intact
// one must read LDS without a bank conflict; for the broken one the emulator must count conflicts, and the
// output must be wrong.
//
//===----------------------------------------------------------------------------------------------------===//
#include "emulated_run.h"
#include "shipped_kernels.h"

#include <cstdio>
#include <stdexcept>

using namespace sluice;
using namespace sluice::test;

int main(int argc, char **argv) try {
  if (argc != 4) {
    std::fprintf(stderr, "usage: swizzle_mutation KERNEL-NAME INTACT.co BROKEN.co\n");
    return 2;
  }
  const ShippedKernel kernel = read_code_object(argv[2], argv[1]);
  AttentionRun run(kernel.entry, path_problems(kernel.entry.name)[0]);
  const emulator::LaunchResult intact = run.run(emulator::Program(kernel.elf));
  const std::vector<uint16_t> expected = run.output();
  const emulator::LaunchResult broken = run.run(emulator::Program(read_file(argv[3])));
  const std::vector<uint16_t> seen = run.output();
  size_t different = 0;
  for (size_t n = 0; n < expected.size(); ++n)
    different += expected[n] != seen[n];
  const uint64_t intact_conflicts = intact.counters.lds_bank_conflicts,
                 broken_conflicts = broken.counters.lds_bank_conflicts;
  std::printf("%s: intact %llu bank conflicts; broken %llu, %zu of %zu outputs differ\n", argv[1],
              (unsigned long long)intact_conflicts, (unsigned long long)broken_conflicts, different,
              expected.size());
  const bool silent = intact.ok() && intact_conflicts == 0;
  const bool noticed = broken_conflicts > 0 && different > expected.size() / 2;
  return silent && noticed ? 0 : 1;
} catch (const std::exception &error) {
  std::fprintf(stderr, "swizzle_mutation: %s\n", error.what());
  return 1;
}

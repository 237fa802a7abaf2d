//===- swizzle_mutation.cpp - a swizzle that only one side applies
//-------------------------------------------===//
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
  const auto name = package::parse_kernel_name(argv[1]);
  if (!name) throw std::runtime_error("not a kernel name");
  package::KernelEntry entry;
  entry.name = *name;
  entry.threads = name->waves * 64;
  const RunResult intact = run_attention(entry, read_file(argv[2]));
  const RunResult broken = run_attention(entry, read_file(argv[3]));
  size_t different = 0;
  for (size_t n = 0; n < intact.output.size(); ++n)
    different += intact.output[n] != broken.output[n];
  std::printf("%s: intact %llu bank conflicts; broken %llu, %zu of %zu outputs differ\n", argv[1],
              (unsigned long long)intact.lds_bank_conflicts, (unsigned long long)broken.lds_bank_conflicts,
              different, intact.output.size());
  const bool silent = intact.hip_error == 0 && intact.reports.empty() && intact.lds_bank_conflicts == 0;
  const bool noticed = broken.lds_bank_conflicts > 0 && different > intact.output.size() / 2;
  return silent && noticed ? 0 : 1;
} catch (const std::exception &error) {
  std::fprintf(stderr, "swizzle_mutation: %s\n", error.what());
  return 1;
}

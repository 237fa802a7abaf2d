//===- commands.h - the commands of the command line ----------------------------------------------------===//
//
// Each writes its result to stdout and returns the exit status: 0, or 1 where it compared and found a
// difference. What cannot be done is an exception, which main reports on stderr with status 2.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include "tools/attention_call.h"

#include <cstdint>
#include <string>
#include <vector>

namespace sluice::tools {

int info_command();

struct KernelsOptions {
  std::string device = "gfx942:304";
  bool stats = false;
  bool markdown = false;
};
int kernels_command(const KernelsOptions &options);

struct FeaturesOptions {
  std::string device = "gfx942:304";
};
int features_command(const FeaturesOptions &options);

struct RunOptions {
  CallOptions call;
  std::string o_file, lse_file;
};
int run_command(const RunOptions &options);

struct VerifyOptions {
  CallOptions call;
  std::string o_file, lse_file;               // results to judge, instead of running the call
  std::string expect_o_file, expect_lse_file; // what they should be, instead of the reference
};
int verify_command(const VerifyOptions &options);

struct InspectOptions {
  std::string file;    // a pack, or a library that holds one; empty: the library in use
  std::string extract; // a kernel's name
  std::string elf_file, bundle_file;
  std::string chip = "gfx942";
};
int inspect_command(const InspectOptions &options);

struct BenchOptions {
  bool timing = false;
  std::string filter = "*"; // of kernel names
  std::vector<uint32_t> lengths = {1024, 4096, 16384};
  std::string causal = "both";
  uint32_t heads = 64;
  uint32_t kv_heads = 8;
  uint32_t batch = 0; // 0: as many as give 16384 tokens
  uint32_t workgroups = 8;
  uint32_t compute_units = 5;
  std::string json_file;
  bool markdown = false;
  bool parts = false;
  std::string pack_file; // empty: the library in use
};
int bench_command(const BenchOptions &options);

} // namespace sluice::tools

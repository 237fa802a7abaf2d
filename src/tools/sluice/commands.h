//===- commands.h - the commands of the command line but bench ------------------------------------------===//
//
// Each writes its result to stdout and returns the exit status: 0, or 1 if it compared and found a
// difference. If it cannot do its work it throws an exception, which main reports on stderr with status 2.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include "tools/sluice/attention_call.h"

#include <string>

namespace sluice::tools {

int info_command();

struct KernelsOptions {
  std::string device = "gfx942:304";
  std::string pattern = "*"; // of names, as in fnmatch()
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
  std::string expect_o_file, expect_lse_file; // expectations, instead of the reference
};
int verify_command(const VerifyOptions &options);

struct InspectOptions {
  std::string file;    // a pack, or a library that contains one; empty: the library in use
  std::string extract; // a kernel's name
  std::string elf_file, bundle_file;
  std::string chip = "gfx942";
};
int inspect_command(const InspectOptions &options);

} // namespace sluice::tools

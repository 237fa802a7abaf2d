//===- options.h - the options of the command line ------------------------------------------------------===//
#pragma once

#include "conformance/run/executor.h"
#include "conformance/shared/target.h"

#include <cstdint>
#include <string>
#include <vector>

namespace sluice::conformance {

struct Options {
  std::string device, part;
  Level level = Level::quick;
  std::vector<std::string> patterns; // a case matches one of them; all do if the list is empty
  EmulatorSettings settings;
  std::string pack_file;
  Pack pack;
  std::string junit, json; // names of files; empty for none
  uint64_t seed = 0;
  size_t shard = 0, shards = 1;
  bool list = false, help = false, all_kernels = false, refused_fails = false;
};

extern const char *const usage;

/// Throws UsageError with the option, its value and the rule.
Options parse_options(int count, char **arguments);

/// The command line that reruns one case of such a run.
std::string command_of(const std::string &program, const Options &options, const std::string &case_name);

} // namespace sluice::conformance

//===- bench_command.h - how fast attention is ----------------------------------------------------------===//
#pragma once

#include "tools/bench/bench_options.h"

namespace sluice::tools {

/// Writes its tables to stdout and returns the exit status, 0. Throws if it cannot do its work.
int bench_command(const BenchOptions &options);

} // namespace sluice::tools

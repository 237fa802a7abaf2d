//===- bench_options.h - the options of sluice bench ----------------------------------------------------===//
#pragma once

#include "tools/commands.h"

namespace CLI {
class App;
}

namespace sluice::tools {

/// Adds the command, without its action; `bench` must outlive the parsing.
void add_bench(CLI::App &app, BenchOptions &bench);

} // namespace sluice::tools

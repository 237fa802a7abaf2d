//===- run_command.cpp - sluice run: attention on .npy files --------------------------------------------===//

#include "tools/commands.h"

#include <fmt/format.h>

namespace sluice::tools {

int run_command(const RunOptions &options) {
  const CallInputs inputs = load_inputs(options.call);
  const CallResult result = run_call(options.call, inputs);
  write_npy(options.o_file, result.o);
  if (!options.lse_file.empty()) write_npy(options.lse_file, result.lse);
  fmt::print("O {} written to {}\n", shape_text(result.o.shape), options.o_file);
  if (!options.lse_file.empty())
    fmt::print("LSE {} written to {}\n", shape_text(result.lse.shape), options.lse_file);
  fmt::print("{}\n", describe(result));
  return 0;
}

} // namespace sluice::tools

//===- run_command.cpp - sluice run: attention on .npy files --------------------------------------------===//

#include "tools/shared/output_file.h"
#include "tools/sluice/commands.h"

#include <fmt/format.h>
#include <optional>

namespace sluice::tools {

int run_command(const RunOptions &options) {
  OutputFile o_file("--out", options.o_file);
  std::optional<OutputFile> lse_file;
  if (!options.lse_file.empty()) {
    lse_file.emplace("--lse", options.lse_file);
    OutputFile::refuse_same(o_file, *lse_file);
  }
  const CallInputs inputs = load_inputs(options.call);
  const CallResult result = run_call(options.call, inputs);
  write_npy(o_file, result.o);
  if (lse_file) write_npy(*lse_file, result.lse);
  o_file.publish();
  if (lse_file) lse_file->publish();
  fmt::print("O {} written to {}\n", shape_text(result.o.shape), options.o_file);
  if (lse_file) fmt::print("LSE {} written to {}\n", shape_text(result.lse.shape), options.lse_file);
  fmt::print("{}\n", describe(result));
  return 0;
}

} // namespace sluice::tools

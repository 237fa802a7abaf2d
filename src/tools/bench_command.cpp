//===- bench_command.cpp - sluice bench: how fast the kernels are ---------------------------------------===//

#include "tools/bench_tables.h"
#include "tools/commands.h"
#include "tools/output_file.h"
#include "tools/pack_file.h"

#include <algorithm>
#include <fmt/format.h>
#include <fnmatch.h>
#include <optional>

namespace sluice::tools {

namespace {

constexpr uint32_t usual_tokens = 16384;

std::vector<TimedProblem> problems_of(const BenchOptions &options) {
  if (options.heads % options.kv_heads != 0)
    throw ToolError(
        fmt::format("--heads is {} and --kv-heads {}; the heads of keys must divide those of queries",
                    options.heads, options.kv_heads));
  std::vector<TimedProblem> problems;
  for (const uint32_t length : options.lengths)
    for (const bool causal : {false, true}) {
      if (options.causal == (causal ? "off" : "on")) continue;
      const uint32_t batch = options.batch != 0 ? options.batch : std::max(1u, usual_tokens / length);
      problems.push_back({batch, length, options.heads, options.kv_heads, causal});
    }
  return problems;
}

std::vector<const package::PackedKernel *> kernels_of(const BenchOptions &options, const PackFile &pack) {
  std::vector<const package::PackedKernel *> kernels;
  // What is timed is prefill of contiguous tensors: kernels for pages and for few rows are for other work.
  for (const package::PackedKernel &kernel : pack.reader().manifest().kernels)
    if (kernel.entry.name.is_attention() && kernel.entry.name.form.empty() &&
        fnmatch(options.filter.c_str(), package::format_kernel_name(kernel.entry.name).c_str(), 0) == 0)
      kernels.push_back(&kernel);
  if (kernels.empty())
    throw ToolError(
        fmt::format("--filter is '{}'; no kernel of {} has such a name", options.filter, pack.path()));
  return kernels;
}

} // namespace

int bench_command(const BenchOptions &options) {
  if (!options.timing)
    throw ToolError(
        "bench needs --timing: the timing model is the only clock there is here. A launch on the "
        "emulated device takes as long as this machine needs to emulate it, which says nothing of a "
        "GPU");
  const std::vector<TimedProblem> problems = problems_of(options);
  const PackFile pack(options.pack_file);
  const auto kernels = kernels_of(options, pack);
  for (const package::PackedKernel *kernel : kernels)
    for (const TimedProblem &problem : problems)
      check_size(kernel->entry, problem);
  std::optional<OutputFile> json;
  if (!options.json_file.empty()) json.emplace("--json", options.json_file);

  const BenchTable table(options.markdown, options.parts);
  fmt::print("{}", table.head());
  std::vector<AttentionTiming> timings;
  for (const package::PackedKernel *kernel : kernels) {
    const std::vector<std::byte> elf = pack.elf(*kernel, "gfx942");
    for (const TimedProblem &problem : problems) {
      timings.push_back(
          time_attention(kernel->entry, elf, problem, {options.compute_units, options.workgroups}));
      fmt::print("{}", table.row(timings.back()));
      std::fflush(stdout);
    }
  }
  if (json) {
    const std::string text = bench_json(timings);
    json->write({std::as_bytes(std::span(text))});
    json->publish();
  }
  return 0;
}

} // namespace sluice::tools

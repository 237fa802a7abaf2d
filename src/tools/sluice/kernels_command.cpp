//===- kernels_command.cpp - sluice kernels: the kernels of the library ---------------------------------===//

#include "tools/shared/pack_file.h"
#include "tools/sluice/commands.h"
#include "tools/sluice/kernel_stats.h"
#include "tools/sluice/support_tables.h"

#include <fmt/format.h>

#include <fnmatch.h>

namespace sluice::tools {

namespace {

void print_list(const std::vector<sluice_kernel_info> &kernels) {
  fmt::print("{:<34} {:<18} {:>7} {:>8} {:>6} {:>6}  {:<13} {:<8} {}\n", "kernel", "operation", "rows",
             "keys", "waves", "LDS", "P rounds", "chips", "can");
  for (const sluice_kernel_info &kernel : kernels)
    fmt::print("{:<34} {:<18} {:>7} {:>8} {:>6} {:>6}  {:<13} {:<8} {}\n", kernel.name, kernel.operation,
               kernel.tile_q, kernel.tile_kv, kernel.waves, kernel.lds_bytes, kernel.p_rounding, kernel.chips,
               features_of(kernel));
}

void print_stats(const std::vector<sluice_kernel_info> &kernels, bool markdown) {
  const ContextHandle emulator = make_context("emulated");
  using Stats = size_t(const void *, size_t, const char *, char *, size_t);
  auto *const stats = hip_symbol<Stats>(emulator.get(), "sluice_emulator_kernel_stats");
  const PackFile pack("");
  if (markdown) fmt::print("{}", kernel_figures_head());
  for (const sluice_kernel_info &kernel : kernels) {
    const std::vector<std::byte> elf = pack.elf(pack.kernel(kernel.name), "gfx942");
    std::string text(stats(elf.data(), elf.size(), kernel.name, nullptr, 0), '\0');
    stats(elf.data(), elf.size(), kernel.name, text.data(), text.size());
    if (markdown)
      fmt::print("{}", kernel_figures_row(text.c_str()));
    else
      fmt::print("{}{}\n", format_kernel_stats(text.c_str()),
                 format_pipeline(pack.kernel(kernel.name).entry));
  }
}

} // namespace

int kernels_command(const KernelsOptions &options) {
  const ContextHandle context = make_context(options.device);
  if (options.markdown && !options.stats) {
    fmt::print("{}", support_summary(context.get()));
    return 0;
  }
  std::vector<sluice_kernel_info> kernels = list_kernels(context.get());
  std::erase_if(kernels, [&](const sluice_kernel_info &kernel) {
    return fnmatch(options.pattern.c_str(), kernel.name, 0) != 0;
  });
  if (kernels.empty())
    throw ToolError(fmt::format("--kernel is '{}'; no kernel has such a name", options.pattern));
  if (options.stats)
    print_stats(kernels, options.markdown);
  else
    print_list(kernels);
  return 0;
}

} // namespace sluice::tools

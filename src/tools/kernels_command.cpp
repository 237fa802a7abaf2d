//===- kernels_command.cpp - sluice kernels: what the library computes with -----------------------------===//

#include "tools/commands.h"
#include "tools/pack_file.h"
#include "tools/support_table.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace sluice::tools {

namespace {

using Json = nlohmann::ordered_json;

std::vector<sluice_kernel_info> list_kernels(const sluice_context *context) {
  sluice_error error = make_error();
  uint32_t count = 0;
  check(sluice_list_kernels(context, 0, nullptr, &count, &error), error);
  std::vector<sluice_kernel_info> kernels(count);
  for (uint32_t i = 0; i < count; ++i) {
    sluice_kernel_info_init(&kernels[i], sizeof kernels[i]);
    check(sluice_list_kernels(context, i, &kernels[i], nullptr, &error), error);
  }
  return kernels;
}

void print_list(const std::vector<sluice_kernel_info> &kernels) {
  fmt::print("{:<34} {:<18} {:>7} {:>8} {:>6} {:>6}  {:<13} {:<12} {}\n", "kernel", "operation", "rows",
             "keys", "waves", "LDS", "P rounds", "can", "chips");
  for (const sluice_kernel_info &kernel : kernels)
    fmt::print("{:<34} {:<18} {:>7} {:>8} {:>6} {:>6}  {:<13} {:<12} {}\n", kernel.name, kernel.operation,
               kernel.tile_q, kernel.tile_kv, kernel.waves, kernel.lds_bytes, kernel.p_rounding,
               kernel.features, kernel.chips);
}

std::string scalar_text(const Json &value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

/// The figures as the emulator library names them: numbers and texts of an object on one line, then what is
/// nested.
void print_figures(const std::string &name, const Json &value, int indent) {
  if (value.is_array()) {
    for (size_t i = 0; i < value.size(); ++i)
      print_figures(fmt::format("{} {}", name, i), value[i], indent);
    return;
  }
  if (!value.is_object()) {
    fmt::print("{:{}}{}: {}\n", "", indent, name, scalar_text(value));
    return;
  }
  std::string line;
  for (const auto &[key, item] : value.items())
    if (!item.is_structured())
      line += fmt::format("{}{} {}", line.empty() ? "" : ", ", key, scalar_text(item));
  fmt::print("{:{}}{}{}{}\n", "", indent, name, line.empty() ? "" : ": ", line);
  for (const auto &[key, item] : value.items())
    if (item.is_structured()) print_figures(key, item, indent + 2);
}

void print_stats(const std::vector<sluice_kernel_info> &kernels) {
  const ContextHandle emulator = make_context("emulated");
  using Stats = size_t(const void *, size_t, const char *, char *, size_t);
  auto *const stats = hip_symbol<Stats>(emulator.get(), "sluice_emulator_kernel_stats");
  const PackFile pack("");
  for (const sluice_kernel_info &kernel : kernels) {
    const std::vector<std::byte> elf = pack.elf(pack.kernel(kernel.name), "gfx942");
    std::string text(stats(elf.data(), elf.size(), kernel.name, nullptr, 0), '\0');
    stats(elf.data(), elf.size(), kernel.name, text.data(), text.size());
    const Json figures = Json::parse(text.c_str());
    if (figures.contains("error"))
      throw ToolError(fmt::format("{}: {}", kernel.name, figures["error"].get<std::string>()));
    print_figures(kernel.name, figures, 0);
  }
}

} // namespace

int kernels_command(const KernelsOptions &options) {
  const ContextHandle context = make_context(options.device);
  if (options.markdown) {
    fmt::print("{}", support_table(context.get()));
    return 0;
  }
  const std::vector<sluice_kernel_info> kernels = list_kernels(context.get());
  if (options.stats)
    print_stats(kernels);
  else
    print_list(kernels);
  return 0;
}

} // namespace sluice::tools

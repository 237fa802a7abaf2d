//===- kernel_stats.cpp - a kernel's figures as a report ------------------------------------------------===//

#include "tools/sluice/kernel_stats.h"

#include "tools/shared/context.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace sluice::tools {

namespace {

using Json = nlohmann::ordered_json; // keeps the order of the instruction classes

/// Column titles and numbers of an "instructions" object; a class that does not occur in the kernel has no
/// column.
struct Columns {
  std::string titles, numbers;
};

Columns columns_of(const Json &counts, const Json &whole) {
  Columns columns;
  for (const auto &[name, count] : counts.items()) {
    if (whole.at(name) == 0) continue;
    const size_t width = std::max<size_t>(name.size(), 4);
    columns.titles += fmt::format(" {:>{}}", name, width);
    columns.numbers += fmt::format(" {:>{}}", count.get<uint64_t>(), width);
  }
  return columns;
}

} // namespace

std::string format_kernel_stats(const std::string &json) {
  const Json stats = Json::parse(json);
  if (stats.contains("error")) throw ToolError(stats["error"].get<std::string>());
  auto number = [&](const char *key) { return stats.at(key).get<uint64_t>(); };
  const Json &occupancy = stats.at("occupancy");
  std::string text = fmt::format("{}\n  registers  {} VGPR, {} AGPR, {} SGPR; {} VGPR allocated; spills: {} "
                                 "VGPR, {} SGPR; scratch {} bytes\n",
                                 stats.at("kernel").get<std::string>(), number("vgprs"), number("agprs"),
                                 number("sgprs"), number("vgprs_allocated"), number("vgpr_spills"),
                                 number("sgpr_spills"), number("scratch_bytes"));
  text += fmt::format(
      "  LDS        {} bytes; {} workgroups of {} lanes per CU, {} waves per SIMD, limited by {}\n",
      number("lds_bytes"), occupancy.at("workgroups_per_cu").get<uint64_t>(), number("max_workgroup_threads"),
      occupancy.at("waves_per_simd").get<uint64_t>(), occupancy.at("limit").get<std::string>());
  const Json &whole = stats.at("instructions");
  Columns columns = columns_of(whole, whole);
  text += fmt::format("  {:<20}{}\n  {:<20}{}\n", "instructions", columns.titles, "whole kernel",
                      columns.numbers);
  for (const Json &loop : stats.at("loops")) {
    if (!loop.at("innermost").get<bool>()) continue;
    columns = columns_of(loop.at("instructions"), whole);
    text += fmt::format(
        "  {:<20}{}\n",
        fmt::format("loop {}-{}", loop.at("first").get<std::string>(), loop.at("last").get<std::string>()),
        columns.numbers);
  }
  // The range of a loop also holds masks, rescales and last tiles, whose cost says little about the rest.
  if (stats.contains("way")) {
    const Json &way = stats.at("way");
    text += fmt::format("  {:<20}{}  matrix cores busy at most {}% of the time; limited by {}\n",
                        "usual way at " + way.at("first").get<std::string>(),
                        columns_of(way.at("instructions"), whole).numbers,
                        way.at("bound_percent").get<double>(), way.at("binds").get<std::string>());
  }
  return text;
}

std::string kernel_figures_head() {
  return "| kernel | VGPR | spills | LDS | workgroups per CU | MFMA | VALU | transcendental | LDS reads | "
         "copies | "
         "SALU | s_load | bound | binds |\n"
         "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | --- "
         "|\n";
}

std::string kernel_figures_row(const std::string &json) {
  const Json stats = Json::parse(json);
  if (stats.contains("error")) throw ToolError(stats["error"].get<std::string>());
  auto number = [&](const char *key) { return stats.at(key).get<uint64_t>(); };
  std::string text =
      fmt::format("| {} | {} | {} | {} | {} |", stats.at("kernel").get<std::string>(), number("vgprs"),
                  number("vgpr_spills") + number("sgpr_spills"), number("lds_bytes"),
                  stats.at("occupancy").at("workgroups_per_cu").get<uint64_t>());
  if (!stats.contains("way")) return text + " no loop with MFMAs | | | | | | | | |\n";
  const Json &way = stats.at("way");
  for (const char *kind : {"MFMA", "VALU", "TRANS", "LDS_rd", "VM_lds", "SALU", "SMEM"})
    text += fmt::format(" {} |", way.at("instructions").at(kind).get<uint64_t>());
  return text + fmt::format(" {} % | {} |\n", way.at("bound_percent").get<double>(),
                            way.at("binds").get<std::string>());
}

std::string format_pipeline(const package::KernelEntry &kernel) {
  std::string text = "  pipeline   no loop is pipelined\n";
  if (kernel.stages != 0)
    text = fmt::format("  pipeline   {} stages; groups of copies: {}\n", kernel.stages,
                       fmt::join(kernel.copy_groups, "; "));
  return text + fmt::format("  LDS        {} bytes, {} saved by reuse\n", kernel.lds_bytes,
                            kernel.lds_bytes_without_reuse - kernel.lds_bytes);
}

} // namespace sluice::tools

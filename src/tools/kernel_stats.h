//===- kernel_stats.h - a kernel's figures as a report --------------------------------------------------===//
#pragma once

#include "package/manifest.h"

#include <string>

namespace sluice::tools {

/// `json` is what the emulator library's sluice_emulator_kernel_stats says of a kernel. Returns registers,
/// LDS and occupancy, then a table of instructions: a line for the whole kernel and one per innermost loop
/// with MFMAs and one for the usual way around them. Throws ToolError if the JSON reports an error.
std::string format_kernel_stats(const std::string &json);

/// The same figures as a table in markdown: its head, and a row per kernel with the usual way.
std::string kernel_figures_head();
std::string kernel_figures_row(const std::string &json);

/// What the pipeline decided about a kernel, from the pack's manifest: how its copies overlap, and what
/// sharing saves in LDS. The copies that each loop issues are the column VM_lds above.
std::string format_pipeline(const package::KernelEntry &kernel);

} // namespace sluice::tools

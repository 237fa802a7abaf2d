//===- kernel_stats.h - a kernel's figures as a report --------------------------------------------------===//
#pragma once

#include "package/manifest.h"

#include <string>

namespace sluice::tools {

/// `json` is the result of the emulator library's sluice_emulator_kernel_stats. Returns registers, LDS and
/// occupancy, then a table of instructions: a line for the whole kernel, one per innermost loop with MFMAs,
/// and one for the usual path through them. Throws ToolError if the JSON reports an error.
std::string format_kernel_stats(const std::string &json);

/// The same figures as a table in markdown: its head, and a row per kernel for the usual path.
std::string kernel_figures_head();
std::string kernel_figures_row(const std::string &json);

/// The pipeline's decisions about a kernel, from the pack's manifest: how its copies overlap, and the LDS
/// that sharing saves. The column VM_lds above counts the copies that each loop issues.
std::string format_pipeline(const package::KernelEntry &kernel);

} // namespace sluice::tools

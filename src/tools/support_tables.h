//===- support_tables.h - what a context supports, as tables of pages -----------------------------------===//
#pragma once

#include "tools/context.h"

#include <string>

namespace sluice::tools {

/// Markdown tables for the README: types and head sizes, features, and cache operations.
std::string support_summary(const sluice_context *context);

/// Those of docs/reference/features.md: the same at length, with the kernels that answered. Throws ToolError
/// if kernels list a feature that no question asks for.
std::string feature_tables(const sluice_context *context);

} // namespace sluice::tools

//===- support_tables.h - the support of a context, as tables of pages ----------------------------------===//
#pragma once

#include "tools/shared/context.h"

#include <string>

namespace sluice::tools {

/// Markdown tables for the README: types and head sizes, features, and cache operations.
std::string support_summary(const sluice_context *context);

/// The tables of docs/reference/features.md: the same in detail, with the kernels that answered. Throws
/// ToolError if kernels list a feature without a question.
std::string feature_tables(const sluice_context *context);

} // namespace sluice::tools

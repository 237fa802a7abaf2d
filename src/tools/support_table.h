//===- support_table.h - what a context supports, asked one question at a time --------------------------===//
#pragma once

#include "tools/context.h"

#include <string>

namespace sluice::tools {

/// A markdown table: a row per supported element type and head size, a column per feature. Every cell is an
/// answer of sluice_query_support, so that the table can say nothing that the library does not.
std::string support_table(const sluice_context *context);

} // namespace sluice::tools

//===- suite.h - all cases that the suite has -----------------------------------------------------------===//
#pragma once

#include "append_case.h"
#include "kernel_cases.h"
#include "merge_case.h"

#include <string>
#include <variant>
#include <vector>

namespace sluice::test {

/// Of attention, of an append or of a merge.
using AnyCase = std::variant<Case, AppendCase, MergeCase>;

const std::string &name_of(const AnyCase &c);
void set_seed(AnyCase &c, uint64_t seed);

/// The names of parts, which the options document.
extern const std::vector<std::string> parts;

/// The cases of a part, or all if it is "". With `host_only` those that sluice_reference can do, in which no
/// kernels have a part, and some of shapes for which there is no kernel.
std::vector<AnyCase> suite(const Target &target, const std::string &part, Level level, bool host_only);

} // namespace sluice::test

//===- suite.h - all cases of the suite -----------------------------------------------------------------===//
#pragma once

#include "conformance/attention/kernel_cases.h"
#include "conformance/cache_ops/append_case.h"
#include "conformance/cache_ops/merge_case.h"
#include "conformance/cache_ops/page_copy_case.h"

#include <string>
#include <variant>
#include <vector>

namespace sluice::conformance {

/// A case of attention, or of a cache operation.
using AnyCase = std::variant<Case, AppendCase, PageCopyCase, MergeCase>;

const std::string &name_of(const AnyCase &c);
void set_seed(AnyCase &c, uint64_t seed);

/// The names of the parts, which the options document.
extern const std::vector<std::string> parts;

/// The cases of a part, or all if it is "". With `host_only`, only those that sluice_attention_reference can
/// compute, which do not depend on kernels, and some with shapes that no kernel has.
std::vector<AnyCase> suite(const Target &target, const std::string &part, Level level, bool host_only);

} // namespace sluice::conformance

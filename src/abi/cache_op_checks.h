//===- cache_op_checks.h - what a caller can get wrong in a cache operation -----------------------------===//
//
// Each function throws support::Failure with the field, its value and the rule: invalid_argument,
// newer_struct, or unsupported for a legal request that no kernel serves. No allocation unless something is
// wrong.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include "calls/cache_ops.h"

#include <sluice/merge.h>

namespace sluice::abi {

void check_append(const calls::Append &append);
void check_page_copy(const calls::PageCopy &copy);
void check_gather(const calls::Gather &gather);
void check_merge(const sluice_merge_args &merge);

} // namespace sluice::abi

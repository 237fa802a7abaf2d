//===- cache_op_checks.h - what a caller can get wrong in a cache operation -----------------------------===//
//
// Each function throws support::Failure with the field, its value and the rule: invalid_argument,
// newer_struct, or unsupported for a legal request that no kernel serves. No allocation unless something is
// wrong.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include <sluice/sluice.h>

namespace sluice::abi {

void check_append(const sluice_append &append);
void check_page_copy(const sluice_page_copy &copy);
void check_gather(const sluice_gather &gather);
void check_merge(const sluice_merge &merge);

} // namespace sluice::abi

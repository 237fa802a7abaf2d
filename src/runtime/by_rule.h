//===- by_rule.h - the kernels that rules choose --------------------------------------------------------===//
//
// Rules choose where bits must not depend on the bounds, or the bounds do not suffice for an estimate.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include "calls/problem.h"
#include "runtime/candidates.h"
#include "runtime/choice.h"

#include <cstdint>

namespace sluice::runtime {

/// A decode kernel takes a sequence if its rows and the heads of a group fill no more than 16 rows; it is the
/// lowest decode kernel that holds the rows of a group. Among prefill kernels the highest is the most
/// efficient per row and is chosen, unless
/// - max_q_len fits a lower tile: the rest of a higher one would compute nothing; or
/// - at the problem's bounds there are fewer workgroups than compute units: lower tiles occupy more of them.
///   This depends on the batch size, so calls::batch_invariant excludes it.
/// calls::batch_invariant always splits keys, at places that depend on nothing else; otherwise
/// keys are not split. Throws support::Failure (unsupported) where the bounds do not allow such splits.
OwnChoice choose_by_rule(const Candidates &candidates, const calls::Problem &problem, uint32_t compute_units);

/// The highest prefill kernel, split at fixed places, for the prefixes of a cascade whose own keys are in
/// `own_splits` splits. Throws support::Failure (unsupported) if there would be too many splits.
PrefixChoice choose_prefix_by_rule(const Kernels &kernels, const calls::Problem &problem,
                                   uint32_t own_splits);

} // namespace sluice::runtime

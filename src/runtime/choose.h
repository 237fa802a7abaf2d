//===- choose.h - chooses the kernels of a plan ---------------------------------------------------------===//
//
// Which kernels can serve a problem (candidates.h), then which of them do: by cost if the bounds suffice for
// an estimate (by_cost.h), else by rule (by_rule.h).
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include "calls/problem.h"
#include "runtime/choice.h"
#include "runtime/context.h"

#include <sluice/sluice.h>

namespace sluice::runtime {

/// Chooses among the context's kernels for a problem whose fields are legal. Depends only on the problem and
/// the number of compute units, so that equal problems get equal kernels.
///
/// The choice is by cost if there are bounds of the batch and of keys, and either a bound of rows or prefill
/// kernels for long sequences; by rule without these bounds, and for calls::batch_invariant.
/// The prefixes of a cascade, whose bounds always suffice, are chosen after the own keys.
///
/// Throws support::Failure (unsupported) naming the field and the nearest supported value.
Choice choose_kernel(const Context &context, const calls::Problem &problem);

/// Loads all kernels of a choice that are not yet loaded. Throws support::Failure.
void load_kernels(Context &context, const Choice &choice);

} // namespace sluice::runtime

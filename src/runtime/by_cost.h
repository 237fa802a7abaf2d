//===- by_cost.h - the kernels and splits with the lowest estimated cost --------------------------------===//
#pragma once

#include "calls/problem.h"
#include "runtime/candidates.h"
#include "runtime/choice.h"

#include <cstdint>

namespace sluice::runtime {

/// The cheapest estimate (cost.h) of every kernel with every number of splits that the ceiling allows, for a
/// problem with bounds of the batch and of keys, and of rows unless there are prefill and decode kernels.
///
/// Prefill kernels get splits only for one sequence or long chunks. With a bound of rows the cheapest kernel
/// takes all sequences, unless a prefill kernel without splits costs little more: then the latter takes long
/// sequences, and a decode kernel takes short ones, as long as it is cheaper, and always those of few rows.
OwnChoice choose_by_cost(const Candidates &candidates, const calls::Problem &problem, uint32_t compute_units);

/// The cheapest kernel and splits for a cascade's prefixes, whose own keys are in `own_splits` splits, with
/// max_q_tokens rows, divided evenly among max_prefixes.
PrefixChoice choose_prefix_by_cost(const Kernels &kernels, const calls::Problem &problem, uint32_t own_splits,
                                   uint32_t compute_units);

} // namespace sluice::runtime

//===- checks.h - what a caller can get wrong -----------------------------------------------------------===//
//
// Each function throws support::Failure with the field, its value and the rule, and does nothing else. The
// rules are those that sluice.h states; the choice of kernels checks what depends on the kernels.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include "calls/args.h"
#include "calls/problem.h"
#include "tensors/checks.h"

#include <sluice/sluice.h>

#include <cstdint>

namespace sluice::abi {

using namespace tensors; // checks of tensors are part of all others

/// invalid_argument, newer_struct for an unknown flag or enumerator, or unsupported for a problem that no
/// executor of this version computes.
void check_problem(const calls::Problem &problem);

/// invalid_argument, or unsupported for a
/// scale that no executor of this version applies.
void check_args(const calls::Problem &problem, const TensorRules &rules, const calls::Args &args);

/// invalid_argument or workspace_too_small.
void check_launch(uint64_t workspace_bytes, uint32_t workspace_alignment, const sluice_launch &launch);
/// Only the checks of dependencies, which is all there is to check if no workspace is needed.
void check_dependencies(const sluice_launch &launch);

} // namespace sluice::abi

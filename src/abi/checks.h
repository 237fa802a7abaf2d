//===- checks.h - what a caller can get wrong -----------------------------------------------------------===//
//
// Each function throws support::Failure with the field, its value and the rule, and does nothing else. The
// rules are those that sluice.h states; the choice of kernels checks what depends on the kernels.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include "tensors/checks.h"

#include <sluice/sluice.h>

#include <cstdint>

namespace sluice::abi {

using namespace tensors; // checks of tensors are part of all others

/// invalid_argument, newer_struct for an unknown flag or enumerator, or unsupported for a problem that no
/// executor of this version computes.
void check_problem(const sluice_problem &problem);

/// The call, with the problem's bounds for a missing q_len, kv_len or prefix_len: `args`, or `copy`.
const sluice_args &with_lengths(const sluice_problem &problem, const sluice_args &args, sluice_args &copy);

/// For a call after with_lengths. invalid_argument, newer_struct for an unknown flag, or unsupported for a
/// scale that no executor of this version applies.
void check_args(const sluice_problem &problem, const TensorRules &rules, const sluice_args &args);

/// invalid_argument or workspace_too_small.
void check_launch(uint64_t workspace_bytes, uint32_t workspace_alignment, const sluice_launch &launch);
/// Only the checks of dependencies, which is all there is to check if no workspace is needed.
void check_dependencies(const sluice_launch &launch);

} // namespace sluice::abi

//===- attention.h - attention on the host, in plain loops ----------------------------------------------===//
//
// The yardstick: it shares no arithmetic with the kernels, and nothing in it is clever.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include <sluice/sluice.h>

namespace sluice::reference {

/// Computes a call whose problem and arguments are legal; pointers are the host's. Throws support::Failure
/// (unsupported) for an element type other than F16, BF16 and F32.
void attention(const sluice_problem &problem, const sluice_args &args);

} // namespace sluice::reference

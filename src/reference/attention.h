//===- attention.h - attention on the host, in plain loops ----------------------------------------------===//
//
// The yardstick: it shares no arithmetic with the kernels, and nothing in it is clever.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include "calls/args.h"
#include "calls/problem.h"

#include <sluice/sluice.h>

namespace sluice::reference {

/// Computes a call whose problem and arguments are legal, with q_len and kv_len given; pointers are the
/// host's, so their contents must be legal too.
void attention(const calls::Problem &problem, const calls::Args &args);

} // namespace sluice::reference

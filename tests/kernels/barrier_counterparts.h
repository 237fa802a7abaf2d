//===- barrier_counterparts.h - the barriers at which the waves of a workgroup meet ---------------------===//
//
// All waves of a workgroup pass the same number of barriers, but not the same instructions: at a branch, some
// waves take one path and some the other, up to the instruction where all paths from there meet. The n-th
// barrier of one path then meets the n-th of the other: they are counterparts.
//
// This analysis does not know at which branches waves diverge. A branch that all waves take alike has
// counterparts too; the result errs on the side of caution.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include "machine_code.h"

#include <cstddef>
#include <set>
#include <vector>

namespace sluice::test {

/// By instruction: the other barriers at which waves may wait while some wait at this one. Empty for other
/// instructions.
std::vector<std::set<size_t>> barrier_counterparts(const MachineCode &code);

} // namespace sluice::test

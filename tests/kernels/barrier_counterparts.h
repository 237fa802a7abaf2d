//===- barrier_counterparts.h - at which barriers the waves of a workgroup meet -------------------------===//
//
// All waves of a workgroup pass equally many barriers, but not the same instructions: from a branch, some
// waves take one way and some the other, up to the instruction where all ways from there meet. The n-th
// barrier of one way is then met by the n-th of the other: they are counterparts.
//
// Nothing is known here of which branches part waves. One that all waves take alike has counterparts too; who
// asks errs on the side of caution.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include "machine_code.h"

#include <cstddef>
#include <set>
#include <vector>

namespace sluice::test {

/// By instruction: the other barriers at which waves may stand while some stand at this one. Empty for
/// other instructions.
std::vector<std::set<size_t>> barrier_counterparts(const MachineCode &code);

} // namespace sluice::test

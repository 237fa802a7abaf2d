//===- lds_ranges.h - which bytes of LDS an instruction may touch, on any path --------------------------===//
//
// Intervals of unsigned numbers for all registers, followed over all paths of the machine code. An operation
// that is not known here, and a number that may wrap, gives "any number": ranges are never too small.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include "machine_code.h"

#include <cstdint>
#include <vector>

namespace sluice::test {

struct LdsRange {
  uint64_t begin = 0, end = ~uint64_t(0);
  bool overlaps(const LdsRange &other) const { return begin < other.end && other.begin < end; }
};

/// By instruction; what touches no LDS has the whole range as well. `threads`: of a workgroup in one
/// dimension, whose number a wave starts with in v0.
std::vector<LdsRange> lds_ranges(const MachineCode &code, uint32_t threads);

} // namespace sluice::test

//===- lds_ranges.h - the bytes of LDS that an instruction may touch, on any path -----------------------===//
//
// Intervals of unsigned numbers for all registers, followed over all paths of the machine code. An unknown
// operation, and a number that may wrap, gives "any number": ranges are never too small.
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

/// By instruction; instructions that do not touch LDS have the whole range as well. `threads`: the size of a
/// workgroup in one dimension; a wave starts with its thread number in v0.
std::vector<LdsRange> lds_ranges(const MachineCode &code, uint32_t threads);

} // namespace sluice::test

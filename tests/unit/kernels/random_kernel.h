//===- random_kernel.h - small kernels over LDS tiles, as text ------------------------------------------===//
#pragma once

#include <cstdint>
#include <string>

namespace sluice::test {

/// A kernel with loops, branches, copies in flight and a few barriers, in which every read finds something
/// written on every path and every write has a read. The same for the same seed.
std::string random_kernel(uint32_t seed);

} // namespace sluice::test

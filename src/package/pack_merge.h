//===- pack_merge.h - one kernel pack out of several ----------------------------------------------------===//
//
// Build time only. Kernels are generated one by one and chip by chip, each into a separate pack, so that a
// build can run in parallel and repeat only what has changed.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include "package/pack_reader.h"

#include <cstddef>
#include <span>
#include <vector>

namespace sluice::package {

/// All kernels of `parts`; those with the same name become one kernel with code for the chips of all of them,
/// whose LDS sizes are the largest. The result depends only on the kernels, not on how they are divided or
/// ordered. Throws support::Failure if parts of one kernel differ in what its chips must have in common, or
/// if parts come from different generators.
std::vector<std::byte> merge_packs(std::span<const PackReader> parts);

} // namespace sluice::package

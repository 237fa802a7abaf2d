//===- pack_merge.h - one kernel pack out of several ----------------------------------------------------===//
//
// Build time only. Kernels are generated one by one and chip by chip, each into a pack of its own, so that a
// build can do it in parallel and again only where something has changed.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include "package/pack_reader.h"

#include <cstddef>
#include <span>
#include <vector>

namespace sluice::package {

/// All kernels of `parts`; those of one name are one kernel with code for the chips of all of them, whose LDS
/// sizes are the largest. The result depends on the kernels alone, not on how they are divided or ordered.
/// Throws support::Failure if parts of one kernel differ in what its chips must have in common, or if parts
/// come from different generators.
std::vector<std::byte> merge_packs(std::span<const PackReader> parts);

} // namespace sluice::package

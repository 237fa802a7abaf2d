//===- rounds.h - the rounds in which a device runs the workgroups of a launch --------------------------===//
//
// A device has places for a limited number of workgroups at a time; the others follow. If a place is a whole
// compute unit and all workgroups take equally long, they begin and end in rounds, and nothing hides the time
// between two rounds:
//
//   A workgroup begins with a wait for its rows of Q. So its predecessor prefetches them in its last tile.
//
//   Some places are idle in the last round: 4,096 workgroups on 304 places take 14 rounds, of which the last
//   has 144. If no more than half of the places are used, halved tiles end the launch half a round earlier:
//   their lower halves stay at the tiles' places, their upper halves go to further layers of the grid.
//
// If workgroups differ, for example with a causal mask, the next one at a place is not one round later, and
// prefetching its rows gains nothing.
//
// Each row is computed by a wave with the same rows as without halves, so no bit depends on any of this.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include "package/kernargs.h"
#include "package/manifest.h"

#include <array>
#include <cstdint>

namespace sluice::package {

/// Adds the rounds to the arguments of a launch, if it has any. `args` are its other arguments, `grid` is
/// that of whole tiles.
void use_rounds(const KernelEntry &kernel, uint32_t compute_units, AttentionKernargs &args,
                std::array<uint32_t, 3> &grid);

/// Restores the launch without rounds.
void forget_rounds(AttentionKernargs &args, std::array<uint32_t, 3> &grid);

} // namespace sluice::package

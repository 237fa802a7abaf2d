//===- rounds.h - the rounds in which a device runs the workgroups of a launch --------------------------===//
//
// A device has places for so many workgroups at a time, and the others follow. Where a compute unit is one
// place and all workgroups take equally long, they begin and end in rounds, and nothing hides what happens
// between two of them:
//
//   A workgroup begins with a wait for its rows of Q. The one before it asks for them in its last tile.
//
//   Some places have none in the last round: 4,096 workgroups on 304 places take 14 rounds, of which the last
//   has 144. Where no more than half of the places are used, halved tiles end the launch half a round
//   earlier: their lower halves are where the tiles were, their upper halves in further layers of the grid.
//
// Where workgroups differ, with a causal mask for one, the next one at a place is another than a round
// further: to ask for its rows gains nothing.
//
// Each row is computed by a wave with the same rows as without halves, so that no bit depends on any of it.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include "package/kernargs.h"
#include "package/manifest.h"

#include <array>
#include <cstdint>

namespace sluice::package {

/// Tells the workgroups of a launch of their rounds, if it has any. `args` are its other arguments, `grid` is
/// that of whole tiles.
void use_rounds(const KernelEntry &kernel, uint32_t compute_units, AttentionKernargs &args,
                std::array<uint32_t, 3> &grid);

/// The same launch as it was before.
void forget_rounds(AttentionKernargs &args, std::array<uint32_t, 3> &grid);

} // namespace sluice::package

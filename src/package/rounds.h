//===- rounds.h - the rounds in which a device runs the workgroups of a launch --------------------------===//
//
// A device has places for so many workgroups at a time. If all take equally long, they begin and end in rounds,
// and in the last one some places may have none: 4,096 workgroups on 304 places take 14 rounds, of which the
// last has 144. Where no more than half of the places are used, halved tiles end the launch half a round
// earlier: their lower halves are where the tiles were, their upper halves in further layers of the grid.
//
// Each row is computed as it is without halves, by a wave with the same rows, so that no bit depends on them.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include "package/kernargs.h"
#include "package/manifest.h"

#include <array>
#include <cstdint>

namespace sluice::package {

/// Halves the tiles of the last round where that ends the launch earlier. The workgroups are then alike, and
/// there are rounds before. `args` are the other arguments of the launch, `grid` is that of whole tiles.
void halve_last_round(const KernelEntry &kernel, uint32_t compute_units, AttentionKernargs &args,
                      std::array<uint32_t, 3> &grid);

/// The same launch with whole tiles.
void keep_tiles_whole(AttentionKernargs &args, std::array<uint32_t, 3> &grid);

} // namespace sluice::package

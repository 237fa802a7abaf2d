//===- rounds.cpp - the rounds in which a device runs the workgroups of a launch ------------------------===//
#include "package/rounds.h"

#include "package/occupancy.h"
#include "support/checked.h"

#include <algorithm>

namespace sluice::package {

using support::divide_up;

namespace {

constexpr uint32_t most_layers = 65535; // of a grid

/// Whether every workgroup has as many rows, which see as many keys.
bool are_alike(const AttentionKernargs &args) {
  const bool has_window = args.window_left != kernarg_no_window || args.window_right != kernarg_no_window;
  const bool has_lengths = (args.q_starts | args.kv_starts | args.q_lengths | args.kv_lengths) != 0;
  return !has_window && !has_lengths && args.parts == 1;
}

} // namespace

void halve_last_round(const KernelEntry &kernel, uint32_t compute_units, AttentionKernargs &args,
                      std::array<uint32_t, 3> &grid) {
  const KernelName &name = kernel.name;
  if (!name.is_tall() || !kernel_halves_tiles(name.tile_q, name.tile_q / name.waves)) return;
  if (!are_alike(args)) return;
  const uint64_t places = uint64_t{compute_units} *
                          occupancy(kernel.vgprs, kernel.lds_bytes, kernel.threads).workgroups_per_cu;
  const uint64_t workgroups = uint64_t{grid[0]} * grid[1] * grid[2];
  if (places == 0 || workgroups < places) return;
  const uint64_t last_round = workgroups % places;
  if (last_round == 0 || last_round * 2 > places) return;
  // Workgroups are dispatched along x first, so that halves come last if they are whole rows of the grid.
  const uint64_t halved = divide_up(last_round, uint64_t{grid[0]});
  const uint64_t layers = divide_up(halved, uint64_t{grid[1]});
  if (grid[2] + layers > most_layers) return;
  args.grid_tiles = int32_t(grid[1]);
  args.grid_batch = int32_t(grid[2]);
  args.halved_tiles = int32_t(halved % grid[1]);
  args.halved_batch = int32_t(halved / grid[1]);
  grid[2] += uint32_t(layers);
}

void keep_tiles_whole(AttentionKernargs &args, std::array<uint32_t, 3> &grid) {
  args.halved_tiles = args.halved_batch = 0;
  grid[2] = std::min(grid[2], uint32_t(args.grid_batch));
}

} // namespace sluice::package

//===- rounds.cpp - the rounds in which a device runs the workgroups of a launch ------------------------===//
#include "package/rounds.h"

#include "package/occupancy.h"
#include "support/checked.h"

#include <algorithm>

namespace sluice::package {

using support::divide_up;

namespace {

using Grid = std::array<uint32_t, 3>;

constexpr uint32_t most_layers = 65535; // of a grid

/// Whether every workgroup has the same number of rows, at places given by strides, and every row sees
/// equally many keys.
bool are_alike(const AttentionKernargs &args) {
  const bool has_window = args.window_left != kernarg_no_window || args.window_right != kernarg_no_window;
  const bool has_lengths = (args.q_starts | args.q_lengths | args.kv_starts | args.kv_lengths) != 0;
  return !has_window && !has_lengths && args.splits == 1;
}

/// Workgroups are dispatched along x, then y, then z: the next one at a place is about one round later.
void find_next(AttentionKernargs &args, const Grid &grid, uint64_t places) {
  args.next_heads = int32_t(places % grid[0]);
  args.next_tiles = int32_t(places / grid[0] % grid[1]);
  args.next_batch = int32_t(places / grid[0] / grid[1]);
}

/// Halves whole rows of the grid, so that halves are dispatched last.
void halve_last_round(AttentionKernargs &args, Grid &grid, uint64_t places) {
  const uint64_t last_round = uint64_t{grid[0]} * grid[1] * grid[2] % places;
  const uint64_t halved = divide_up(last_round, uint64_t{grid[0]});
  // Two halves take longer than a whole tile: they must not exceed one round.
  if (last_round * 2 > places || halved * grid[0] > places) return;
  const uint64_t layers = divide_up(halved, uint64_t{grid[1]});
  if (grid[2] + layers > most_layers) return;
  args.halved_tiles = int32_t(halved % grid[1]);
  args.halved_batch = int32_t(halved / grid[1]);
  grid[2] += uint32_t(layers);
}

} // namespace

void use_rounds(const KernelEntry &kernel, uint32_t compute_units, AttentionKernargs &args, Grid &grid) {
  const KernelName &name = kernel.name;
  if (!kernel_has_rounds(name.tile_q, name.tile_q / name.waves)) return;
  if (!are_alike(args)) return;
  const uint64_t places =
      uint64_t{compute_units} * occupancy(kernel.vgprs, kernel.lds_bytes, kernel.threads).workgroups_per_cu;
  const uint64_t workgroups = uint64_t{grid[0]} * grid[1] * grid[2];
  if (places == 0 || workgroups <= places) return;
  args.kv_heads = int32_t(grid[0]);
  args.grid_tiles = int32_t(grid[1]);
  args.grid_batch = int32_t(grid[2]);
  find_next(args, grid, places);
  halve_last_round(args, grid, places);
}

void forget_rounds(AttentionKernargs &args, Grid &grid) {
  grid[2] = std::min(grid[2], uint32_t(args.grid_batch));
  args.kv_heads = args.grid_tiles = args.grid_batch = args.next_batch = kernarg_no_grid;
  args.next_heads = args.next_tiles = args.halved_tiles = args.halved_batch = 0;
}

} // namespace sluice::package

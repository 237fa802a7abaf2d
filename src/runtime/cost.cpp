//===- cost.cpp - the estimated cost of a launch --------------------------------------------------------===//
#include "runtime/cost.h"

#include "calls/problem.h"
#include "package/cache_op_kernargs.h"
#include "package/occupancy.h"
#include "runtime/dtype.h"
#include "runtime/problem.h"
#include "support/checked.h"

#include <algorithm>
#include <cmath>

namespace sluice::runtime {
namespace {

using support::divide_up;

double bytes_per_clk(double terabytes) {
  return terabytes * 1e12 / (chip::clock_mhz * 1e6);
}

double bytes_of(uint32_t type) {
  const Block block = dtype_block(type);
  return double(block.bytes) / block.elements;
}

/// The dependent loads before a round's first tile of keys and the steps after the last one, in latencies of
/// HBM: arguments, lengths, Q, the page table's entries, keys; the waves' join and the stores.
constexpr double round_latencies = 7;

/// The least memory time of a last round, relative to a full one: from the timing model.
constexpr double least_of_round = 0.8;

/// The rows that tiles divide: those of all heads of a group.
struct Rows {
  uint64_t count, tiles; // of a sequence and KV head
  double tokens;         // of a tile
};
Rows rows_of(const package::KernelName &name, const Workload &work) {
  const uint64_t group = uint64_t(group_heads(work.problem));
  const uint64_t count = uint64_t(work.rows) * group, tiles = divide_up(count, uint64_t{name.tile_q});
  return {count, tiles, std::max(1.0, double(std::min<uint64_t>(count, name.tile_q)) / double(group))};
}

/// Keys that a row tile sees, on average over the tiles of a sequence.
double keys_seen(const package::KernelName &name, const Workload &work) {
  const calls::Problem &problem = work.problem;
  const double keys = double(work.keys), rows = double(work.rows), tokens = rows_of(name, work).tokens;
  double seen = keys;
  if (problem.flags & calls::causal) {
    // The last token of a tile is on average in the middle of the sequence's rows, plus half a tile.
    const double middle = (rows + tokens) / 2;
    seen = problem.mask_alignment == SLUICE_TOP_LEFT ? middle : keys - rows + middle;
  }
  const bool right = problem.flags & calls::window_right;
  if (problem.flags & calls::window_left && (right || problem.flags & calls::causal)) {
    const double window = double(problem.window_left) + (right ? problem.window_right : 0) + tokens;
    seen = std::min(seen, window + problem.sink_tokens);
  }
  return std::clamp(seen, 1.0, keys);
}

/// The clk of a tile of keys: for a wave whose caches hit, for the fullest slot of its SIMD, and for waiting
/// when caches miss. They follow from the MFMAs of its rows and columns, and from the clk that its loop takes
/// for each clk of MFMAs.
struct TileClk {
  double wave, slot, missed;
};
TileClk tile_clk(const package::KernelEntry &kernel) {
  const package::KernelName &name = kernel.name;
  const double rows = std::max(double(package::decode_rows_of_wave), double(name.tile_q) / name.waves);
  const double columns_of_v = name.form == "mla" ? double(name.head_dim_v) * name.tile_q / (rows * name.waves)
                                                 : double(name.head_dim_v);
  const double flop = 2.0 * rows * name.tile_kv * (name.head_dim_qk + columns_of_v);
  const double rate = name.dtype == "e4m3fnuz" ? chip::matrix_flop_8_bit : chip::matrix_flop_16_bit;
  const double matrix = flop / rate;
  if (kernel.loop_matrix_clk == 0) return {matrix, matrix, 0};
  // In the measured figures caches hit; here, once per loop iteration a load comes from HBM.
  const double missed = chip::hbm_latency_clk - chip::vector_cache_latency_clk;
  const double loops = matrix / kernel.loop_matrix_clk;
  return {loops * kernel.loop_wave_clk, loops * kernel.loop_slot_clk, loops * missed};
}

/// The clk of a tile for each of this many waves of a SIMD. Workgroups that began together stay in step, so a
/// wave finds all others before it in the fullest slot.
double clk_with_others(const TileClk &tile, double waves) {
  return tile.wave + (waves - 1) * tile.slot;
}

} // namespace

uint64_t tiles_seen(const package::KernelName &name, const Workload &work) {
  return uint64_t(std::ceil(keys_seen(name, work) / name.tile_kv));
}

Estimate estimate(const package::KernelEntry &kernel, const Workload &work, uint64_t splits,
                  uint32_t compute_units) {
  const package::KernelName &name = kernel.name;
  const calls::Problem &problem = work.problem;
  const Rows rows = rows_of(name, work);
  const uint64_t tiles = tiles_seen(name, work), split_tiles = divide_up(tiles, splits),
                 used_splits = divide_up(tiles, split_tiles);
  Estimate result;
  result.workgroups = double(work.batch) * problem.kv_heads * double(rows.tiles) * double(used_splits);

  // Memory: each key is read from HBM once, and by every further workgroup from MALL or L2, for both of which
  // the slower rate is used. Q, O and results to be merged are moved once.
  const double row_bytes =
      bytes_of(problem.k_type) *
      (problem.flags & calls::v_in_k ? problem.head_dim_qk : problem.head_dim_qk + problem.head_dim_v);
  const double keys = keys_seen(name, work);
  const double key_bytes = keys * row_bytes * double(split_tiles) / double(tiles);
  const double rows_of_tile = double(rows.count) / double(rows.tiles);
  const double o_bytes =
      rows_of_tile * problem.head_dim_v * (used_splits > 1 ? sizeof(float) : bytes_of(problem.o_type));
  const double other_bytes = rows_of_tile * problem.head_dim_qk * bytes_of(problem.q_type) + o_bytes;
  const double hbm = bytes_per_clk(chip::hbm_terabytes) / chip::compute_units,
               mall = bytes_per_clk(chip::mall_terabytes) / chip::compute_units;
  // A decode kernel is meant to read keys once: each of its row tiles is charged for all of them.
  const double readers = name.is_prefill() ? double(rows.tiles) : 1;
  const double memory_clk =
      std::max(key_bytes / readers / hbm, key_bytes / mall) + other_bytes / hbm; // of a workgroup

  // Rounds: a compute unit gets this many workgroups, as many at a time as fit. In the last round, compute
  // units with fewer workgroups leave memory to the others. But if it is not the only round, it costs little
  // less than the others, however few workgroups it has: they run beside those of the round before, which do
  // not all end together.
  const uint32_t fits = package::occupancy(kernel.vgprs, kernel.lds_bytes, kernel.threads).workgroups_per_cu;
  const double places = std::max(1u, fits), unit_workgroups = std::ceil(result.workgroups / compute_units),
               rounds = std::ceil(unit_workgroups / places), resident = std::min(unit_workgroups, places),
               before_last = (rounds - 1) * places, left = result.workgroups / compute_units - before_last,
               sharing_memory = before_last + (rounds > 1 ? std::max(left, least_of_round * places) : left);

  // Issue: waves that share rows take the tiles of a split in turn, so some may have one more tile than
  // others. One more tile, which nothing else hides, comes before the loop, or after the last keys from
  // memory.
  const double waves_of_simd = std::ceil(resident * name.waves / chip::simds);
  const double wave_tiles = double(divide_up(split_tiles, uint64_t{name.waves_dividing_keys()}));
  const TileClk tile = tile_clk(kernel);
  const double tile_of_wave = clk_with_others(tile, waves_of_simd);
  const double alone_clk = round_latencies * chip::hbm_latency_clk + tile_of_wave;
  const double issue_clk = wave_tiles * (tile_of_wave + tile.missed);

  // Each round waits for its own first keys, but while it does, memory is busy with those of other
  // workgroups. In a single round, all workgroups store their results when no products are left to hide it:
  // that counts for splits of many rows.
  const double stored_after =
      rounds == 1 && used_splits > 1 && name.is_prefill() ? sharing_memory * o_bytes / hbm : 0;
  result.attention_clk =
      chip::workgroup_start_clk + chip::hbm_latency_clk +
      std::max(rounds * (alone_clk + issue_clk) + stored_after, alone_clk + sharing_memory * memory_clk);
  if (used_splits > 1) {
    const double partial_bytes = double(work.batch) * double(work.rows) * problem.q_heads *
                                 problem.head_dim_v * sizeof(float) * double(used_splits);
    const double merge_rounds = std::ceil(double(used_splits) * problem.head_dim_v / merge_round_elements);
    const bool at_once = merge_rounds == 1 && used_splits <= package::merge_most_parts_at_once &&
                         partial_bytes <= merge_at_once_bytes;
    const double fixed_clk = at_once ? merge_at_once_clk : merge_clk + (merge_rounds - 1) * merge_round_clk;
    result.merge_clk = fixed_clk + partial_bytes / bytes_per_clk(chip::hbm_terabytes);
  }
  return result;
}

} // namespace sluice::runtime

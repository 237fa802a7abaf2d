//===- splits.h - splits of a row's keys among workgroups, and their workspace --------------------------===//
#pragma once

#include "calls/problem.h"
#include "package/kernel_name.h"

#include <sluice/sluice.h>

#include <cstdint>

namespace sluice::runtime {

/// How a kernel divides the keys of a row.
struct Splits {
  uint32_t count = 1;       // workgroups among which the keys are split ...
  uint32_t tiles = 0;       // ... with this many tiles each, or 0: evenly ...
  uint32_t least_tiles = 1; // ... but at least this many

  bool are_at_fixed_places() const { return tiles != 0; }
};

/// Keys of a split at a fixed place: enough that merging costs little, few enough that 128 Ki keys of one
/// sequence still occupy 64 workgroups per KV head. A multiple of every kernel's tile of keys.
inline constexpr uint32_t fixed_split_keys = 2048;

/// The layout in workspace of results over splits of the keys: O as F32 [split][row][q_heads][head_dim_v],
/// then LSE [split][row][q_heads], with `rows` rows of all sequences. Strides count elements.
struct SplitsLayout {
  int64_t head_stride, row_stride, split_stride; // of O
  int64_t lse_row_stride, lse_split_stride;      // of LSE
  uint64_t lse_offset_bytes;
  uint64_t bytes;
};
SplitsLayout splits_layout(const calls::Problem &problem, uint32_t splits, int64_t rows);

/// The most workspace of splits whose number is chosen by cost, if a plan has no ceiling. A cascade may need
/// more for its two splits.
inline constexpr uint64_t usual_workspace_ceiling = uint64_t{256} << 20;

/// The most splits that a merge of `rows` rows of each sequence can count and the ceiling allows: at least 1.
/// In a cascade one more split is left for the prefixes. For problems with bounds of the batch and of keys,
/// and without fixed places.
uint64_t most_splits(const calls::Problem &problem, int64_t rows);
/// The most splits of a cascade's prefixes beside `own_splits` of the sequences' own keys: at least 1.
uint64_t most_prefix_splits(const calls::Problem &problem, uint64_t own_splits);

/// The splits of a kernel for sequences of up to `few_rows` rows at fixed places. Throws support::Failure
/// (unsupported) where the problem lacks a bound, or has one that is too high.
Splits fixed_splits(const calls::Problem &problem, const package::KernelName &kernel, int32_t few_rows);
/// The same for the prefixes of a cascade.
Splits fixed_prefix_splits(const calls::Problem &problem, const package::KernelName &kernel);
/// The number of the first of these, after `own_splits` of the sequences' own keys.
uint32_t first_fixed_prefix_split(uint32_t own_splits);

/// The most rows of Q that a merge of a cascade can count.
int64_t most_cascade_rows(const calls::Problem &problem);

/// The workspace for the results over `splits` splits, of all levels of keys, of sequences of up to
/// `few_rows` rows. Throws support::Failure (unsupported) if it is above the ceiling.
uint64_t splits_workspace(const calls::Problem &problem, uint32_t splits, int32_t few_rows);

} // namespace sluice::runtime

//===- split.h - splits of a row's keys among workgroups, and their workspace ---------------------------===//
#pragma once

#include <sluice/sluice.h>

#include <cstdint>

namespace sluice::runtime {

struct Choice;

/// Keys of a split at a fixed place: enough that merging costs little, few enough that 128 Ki keys of one
/// sequence still occupy 64 workgroups per KV head. A multiple of every kernel's tile of keys.
inline constexpr uint32_t fixed_split_keys = 2048;

/// The layout in workspace of results over splits of the keys: O as F32 [split][row][q_heads][head_dim_v],
/// then LSE [split][row][q_heads], with `rows` rows of all sequences. Strides count elements.
struct SplitsLayout {
  int64_t row_stride, split_stride;         // of O
  int64_t lse_row_stride, lse_split_stride; // of LSE
  uint64_t lse_offset_bytes;
  uint64_t bytes;
};
SplitsLayout splits_layout(const sluice_problem &problem, uint32_t splits, int64_t rows);

/// The most workspace of splits whose number is chosen by cost, if a plan has no ceiling. A cascade may need
/// more for its two splits.
inline constexpr uint64_t usual_workspace_ceiling = uint64_t{256} << 20;

/// The most splits that a merge of `rows` rows of each sequence can count and the ceiling allows: at least 1.
/// In a cascade one more split is left for the prefixes. For problems with bounds of the batch and of keys,
/// and without fixed places.
uint64_t most_splits(const sluice_problem &problem, int64_t rows);
/// The most splits of a cascade's prefixes beside `own_splits` of the sequences' own keys: at least 1.
uint64_t most_prefix_splits(const sluice_problem &problem, uint64_t own_splits);

/// Gives the choice `splits` splits for `rows` rows of each sequence, and their workspace.
void use_splits(Choice &choice, const sluice_problem &problem, uint64_t splits, int64_t rows);

/// Splits the keys of the choice's kernel for few rows at fixed places. Throws support::Failure (unsupported)
/// where the problem lacks a bound, or its ceiling is too low.
void split_at_fixed_places(Choice &choice, const sluice_problem &problem);
/// The same for the prefixes of a cascade.
void split_prefixes_at_fixed_places(Choice &choice, const sluice_problem &problem);

/// The most rows of Q that a merge of a cascade can count.
int64_t most_cascade_rows(const sluice_problem &problem);
/// The workspace of a cascade whose levels are chosen. Throws support::Failure (unsupported) if it is above
/// the ceiling.
void use_cascade_workspace(Choice &choice, const sluice_problem &problem);

} // namespace sluice::runtime

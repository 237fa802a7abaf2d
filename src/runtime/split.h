//===- split.h - dividing the keys of a row among workgroups, and the workspace that takes --------------===//
#pragma once

#include <sluice/sluice.h>

#include <cstdint>

namespace sluice::runtime {

struct Choice;

/// Keys of a split at a fixed place: long enough that merging costs little, short enough that 128 Ki keys of
/// one sequence still occupy 64 workgroups per KV head. Tiles of keys divide it.
inline constexpr uint32_t fixed_split_keys = 2048;

/// Where the splits of a call are in workspace: O as F32 [split][batch][row][q_heads][head_dim_v], then LSE
/// [split][batch][row][q_heads], with `rows` rows of each sequence. Strides count elements.
struct SplitLayout {
  int64_t token_stride, batch_stride, split_stride;             // of O
  int64_t lse_token_stride, lse_batch_stride, lse_split_stride; // of LSE
  uint64_t lse_offset_bytes;
  uint64_t bytes;
};
SplitLayout split_layout(const sluice_problem &problem, uint32_t splits, int32_t batch, int32_t rows);

/// Where a plan has no ceiling: what splits whose number is chosen by their cost take at most.
inline constexpr uint64_t usual_workspace_ceiling = uint64_t{256} << 20;

/// The most splits of `rows` rows of each sequence that a merge counts and the ceiling allows: at least 1.
/// With bounds of the batch and of keys, and where places are not fixed.
uint64_t most_splits(const sluice_problem &problem, int64_t rows);

/// Gives the choice `splits` splits for `rows` rows of each sequence, and their workspace.
void use_splits(Choice &choice, const sluice_problem &problem, uint64_t splits, int64_t rows);

/// Splits the keys of the choice's kernel for few rows at fixed places. Throws support::Failure (unsupported)
/// where the problem lacks a bound, or its ceiling is too low.
void split_at_fixed_places(Choice &choice, const sluice_problem &problem);

} // namespace sluice::runtime

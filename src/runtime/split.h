//===- split.h - splits of a row's keys among workgroups, and their workspace ---------------------------===//
#pragma once

#include <sluice/sluice.h>

#include <cstdint>

namespace sluice::runtime {

struct Choice;

/// Keys of a split at a fixed place: enough that merging costs little, few enough that 128 Ki keys of one
/// sequence still occupy 64 workgroups per KV head. A multiple of every kernel's tile of keys.
inline constexpr uint32_t fixed_split_keys = 2048;

/// The layout of a call's splits in workspace: O as F32 [split][batch][row][q_heads][head_dim_v], then LSE
/// [split][batch][row][q_heads], with `rows` rows of each sequence. Strides count elements.
struct SplitLayout {
  int64_t token_stride, batch_stride, split_stride;             // of O
  int64_t lse_token_stride, lse_batch_stride, lse_split_stride; // of LSE
  uint64_t lse_offset_bytes;
  uint64_t bytes;
};
SplitLayout split_layout(const sluice_problem &problem, uint32_t splits, int32_t batch, int32_t rows);

/// The most workspace of splits whose number is chosen by cost, if a plan has no ceiling.
inline constexpr uint64_t usual_workspace_ceiling = uint64_t{256} << 20;

/// The most splits that a merge of `rows` rows of each sequence can count and the ceiling allows: at least 1.
/// For problems with bounds of the batch and of keys, and without fixed places.
uint64_t most_splits(const sluice_problem &problem, int64_t rows);

/// Gives the choice `splits` splits for `rows` rows of each sequence, and their workspace.
void use_splits(Choice &choice, const sluice_problem &problem, uint64_t splits, int64_t rows);

/// Splits the keys of the choice's kernel for few rows at fixed places. Throws support::Failure (unsupported)
/// where the problem lacks a bound, or its ceiling is too low.
void split_at_fixed_places(Choice &choice, const sluice_problem &problem);

} // namespace sluice::runtime

//===- split.h - dividing the keys of a row among workgroups, and the workspace that takes --------------===//
#pragma once

#include <sluice/sluice.h>

#include <cstdint>

namespace sluice::runtime {

struct Choice;

/// Keys of a part at a fixed place: long enough that merging costs little, short enough that 128 Ki keys of
/// one sequence still occupy 64 workgroups per KV head. Tiles of keys divide it.
inline constexpr uint32_t fixed_part_keys = 2048;

/// Where the parts of a call are in workspace: O as F32 [part][batch][row][q_heads][head_dim_v], then LSE
/// [part][batch][row][q_heads], with `rows` rows of each sequence. Strides count elements.
struct PartsLayout {
  int64_t token_stride, batch_stride, part_stride;             // of O
  int64_t lse_token_stride, lse_batch_stride, lse_part_stride; // of LSE
  uint64_t lse_offset_bytes;
  uint64_t bytes;
};
PartsLayout parts_layout(const sluice_problem &problem, uint32_t parts, int32_t batch, int32_t rows);

/// Decides on parts, part_tiles, merges and workspace_bytes of a choice that is otherwise made. Throws
/// support::Failure (unsupported) where the problem lacks a bound that its determinism needs, or its ceiling
/// is too low for it. Without a kernel that merges parts there is one part.
void split_keys(Choice &choice, const sluice_problem &problem, uint32_t compute_units, bool can_merge);

} // namespace sluice::runtime

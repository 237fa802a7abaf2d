//===- cache_ops.h - cache operations: arguments of the kernels, and their launch -----------------------===//
#pragma once

#include "calls/cache_ops.h"
#include "runtime/context.h"

#include <sluice/merge.h>

namespace sluice::runtime {

/// Whether an append does more than to rotate, convert to E4M3FNUZ and store: another kernel does
/// such appends.
inline bool is_step(const calls::Append &call) {
  const bool is_new_type = call.cache_type != call.source_type && call.cache_type != SLUICE_E4M3FNUZ;
  return is_new_type || (call.rotary_dim != 0 && call.rotary_type != SLUICE_F32) || call.rotary_first != 0 ||
         call.rotary_sin != nullptr || call.q_heads != 0 || call.tail_dim != 0 || call.q_norm != nullptr ||
         call.k_norm != nullptr || call.k_scale_kind > SLUICE_SCALE_PER_HEAD ||
         call.v_scale_kind > SLUICE_SCALE_PER_HEAD || call.v_pack != 0;
}

/// Calls without rows, which launch nothing.
constexpr bool has_nothing_to_do(const calls::Append &call) {
  return call.tokens == 0 || (call.starts != nullptr && call.slots == nullptr && call.batch == 0);
}
constexpr bool has_nothing_to_do(const calls::PageCopy &call) {
  return call.pairs != nullptr && call.pair_count == 0;
}
constexpr bool has_nothing_to_do(const calls::Gather &call) {
  return call.tokens == 0 || call.batch == 0;
}
constexpr bool has_nothing_to_do(const sluice_merge_args &call) {
  return call.tokens == 0;
}

/// Enqueue a call whose arguments have been checked. Throw support::Failure: unsupported if the context has
/// no kernel for the types, no_device for a target, hip, or invalid_argument for a call that capture does not
/// allow.
void append(Context &context, const calls::Append &call, const sluice_launch &launch);
void copy_pages(Context &context, const calls::PageCopy &call, const sluice_launch &launch);
void gather(Context &context, const calls::Gather &call, const sluice_launch &launch);
void merge(Context &context, const sluice_merge_args &call, const sluice_launch &launch);

/// Where a merge stores its result.
struct MergeResult {
  sluice_tensor o = {};
  sluice_tensor lse = {};       // all zero if not wanted
  const float *sinks = nullptr; // as in sluice_merge_args, like o_scale
  const float *o_scale = nullptr;
  uint32_t o_scale_kind = 0; // sluice_scale_kind
  bool to_log2 = false;      // LSEs, those of the parts too
};

/// The results over the splits of the keys, which a plan has written to its workspace, and the result over
/// all keys. Every sequence has rows_per_sequence rows in the parts; rows past its own may hold anything.
struct PartsMerge {
  const void *partial = nullptr;     // [part][batch][row][head][head_dim_v], F32
  const void *partial_lse = nullptr; // [part][batch][row][head], F32
  MergeResult result;                // [batch][row][head], or with q_starts [0][q_starts[b] + row][head]
  // On the device, nullable. Sequence b has q_lengths[b] rows, or q_starts[b + 1] - q_starts[b], or
  // most_rows: the first that is given, with the same limits as in attention kernels.
  const int32_t *q_lengths = nullptr; // [batch]
  const int32_t *q_starts = nullptr;  // [batch + 1]; then o.stride[0] and lse.stride[0] are 0
  int32_t parts = 0;
  int32_t q_rows = 0;                                  // of o and lse, with q_starts: see known_q_rows
  int32_t most_rows = 0;                               // of a sequence
  int32_t batch = 0, rows_per_sequence = 0, heads = 0; // their product is at most 2^31 - 1
  int32_t head_dim_v = 0;                              // a multiple of 8
  int32_t max_rows = 0; // skips sequences with more rows: another kernel has computed them

  // For a cascade. The parts have the rows of o, by their numbers: with q_starts they have one sequence of
  // all rows, and the sequence of a row is searched for among `searched_batch` sequences. The first own_parts
  // parts are over the sequences' own keys; a sequence with more than max_rows rows has only one of them. The
  // parts from first_prefix_part on are over the keys of prefixes; a row without a prefix does not have them.
  const int32_t *prefix_starts = nullptr; // [prefix_count + 1]
  int32_t prefix_count = 0, searched_batch = 0, own_parts = 0, first_prefix_part = 0;
};

/// Merges parts on the stream, after the kernels that write them. The kernel, which merges from F32, must be
/// loaded. Allocates nothing and takes no lock. Throws support::Failure (hip).
void merge_parts(const Context &context, const CacheOpKernel &kernel, const PartsMerge &call, void *stream);

} // namespace sluice::runtime

//===- splits.cpp - splits of a row's keys among workgroups, and their workspace ------------------------===//
#include "runtime/splits.h"

#include "calls/problem.h"
#include "package/cache_op_kernargs.h"
#include "runtime/dtype.h"
#include "runtime/problem.h"
#include "support/checked.h"
#include "support/failure.h"

#include <algorithm>

namespace sluice::runtime {
namespace {

using support::divide_up;
using support::Failure;
using support::Status;
using support::text;

// The limit of the merging kernel.
constexpr uint64_t max_splits = 65536;

/// Without a kernel for many rows, those of a sequence decide the size of the workspace.
void check_has_most_rows(const calls::Problem &problem, int32_t few_rows) {
  if (few_rows != INT32_MAX || problem.max_q_len != 0) return;
  throw Failure(
      Status::unsupported, "max_q_len",
      "max_q_len is 0 (unbounded); SLUICE_ATTENTION_BATCH_INVARIANT splits keys at fixed places and, with "
      "these types and head dims, needs this bound for the size of the workspace; nearest supported: 1 or "
      "more");
}

/// The rows of each sequence that have results over splits, if the kernel takes up to `few_rows`.
int64_t split_rows(const calls::Problem &problem, int32_t few_rows) {
  return problem.max_q_len == 0 ? few_rows : std::min(few_rows, problem.max_q_len);
}

/// Rows with results over a split of the keys, with `rows` rows of each sequence. In a cascade those of q.
int64_t all_rows(const calls::Problem &problem, int64_t rows) {
  return is_cascade(problem) ? problem.max_q_tokens : rows * problem.max_batch;
}

uint64_t bytes_of(const calls::Problem &problem, uint64_t splits, int64_t rows) {
  return splits_layout(problem, uint32_t(splits), all_rows(problem, rows)).bytes;
}

/// The splits that the ceiling allows, those of prefixes included.
uint64_t allowed_splits(const calls::Problem &problem, int64_t rows) {
  const uint64_t ceiling =
      problem.workspace_ceiling_bytes != 0 ? problem.workspace_ceiling_bytes : usual_workspace_ceiling;
  return std::min(ceiling / std::max<uint64_t>(bytes_of(problem, 1, rows), 1), max_splits);
}

/// Splits at fixed places of the most keys that a sequence or a prefix may have.
Splits places_of(const package::KernelName &kernel, const char *field, int32_t most_keys) {
  const uint32_t split_tiles = fixed_split_keys / kernel.tile_kv;
  const uint64_t tiles = divide_up(uint64_t(most_keys), uint64_t{kernel.tile_kv});
  const uint64_t splits = divide_up(tiles, uint64_t{split_tiles});
  if (splits > max_splits) {
    throw Failure(Status::unsupported, field,
                  text(field, " is ", most_keys,
                       "; with SLUICE_ATTENTION_BATCH_INVARIANT the nearest supported is ",
                       max_splits * fixed_split_keys));
  }
  return {.count = uint32_t(splits), .tiles = split_tiles};
}

/// The rows that a merge of splits counts, which is not a cascade's.
void check_rows(const calls::Problem &problem, int64_t rows) {
  const int64_t rows_of_sequence = rows * problem.q_heads;
  if (rows_of_sequence > INT32_MAX) {
    throw Failure(Status::unsupported, "max_q_len",
                  text("max_q_len is ", problem.max_q_len, " with ", problem.q_heads,
                       " heads; with SLUICE_ATTENTION_BATCH_INVARIANT the nearest supported is ",
                       INT32_MAX / problem.q_heads));
  }
  if (rows_of_sequence > INT32_MAX / problem.max_batch) {
    throw Failure(Status::unsupported, "max_batch",
                  text("max_batch is ", problem.max_batch, " with ", rows, " rows of ", problem.q_heads,
                       " heads; with SLUICE_ATTENTION_BATCH_INVARIANT the nearest supported is ",
                       INT32_MAX / rows_of_sequence));
  }
}

} // namespace

SplitsLayout splits_layout(const calls::Problem &problem, uint32_t splits, int64_t rows) {
  SplitsLayout out = {};
  out.lse_row_stride = problem.q_heads;
  out.lse_split_stride = out.lse_row_stride * rows;
  const int64_t columns = row_elements(problem.head_dim_v);
  out.head_stride = columns;
  out.row_stride = out.lse_row_stride * columns;
  out.split_stride = out.lse_split_stride * columns;
  out.lse_offset_bytes = uint64_t(out.split_stride) * splits * sizeof(float);
  out.bytes = out.lse_offset_bytes + uint64_t(out.lse_split_stride) * splits * sizeof(float);
  return out;
}

uint64_t most_splits(const calls::Problem &problem, int64_t rows) {
  if (is_cascade(problem)) return std::max<uint64_t>(allowed_splits(problem, rows), 2) - 1;
  // Rows of a merge are counted in 31 bits.
  if (rows * problem.q_heads > INT32_MAX / problem.max_batch) return 1;
  return std::max<uint64_t>(allowed_splits(problem, rows), 1);
}

uint64_t most_prefix_splits(const calls::Problem &problem, uint64_t own_splits) {
  return std::max(allowed_splits(problem, 0), own_splits + 1) - own_splits;
}

Splits fixed_splits(const calls::Problem &problem, const package::KernelName &kernel, int32_t few_rows) {
  if (!is_cascade(problem)) {
    check_has_most_rows(problem, few_rows);
    check_rows(problem, split_rows(problem, few_rows));
  }
  return places_of(kernel, "max_kv_len", problem.max_kv_len);
}

Splits fixed_prefix_splits(const calls::Problem &problem, const package::KernelName &kernel) {
  return places_of(kernel, "max_prefix_len", problem.max_prefix_len);
}

uint32_t first_fixed_prefix_split(uint32_t own_splits) {
  // The order in which a merge adds splits follows from their numbers. The splits of the own keys, whose
  // number depends on a bound, must not change it, so the lanes of a row take prefixes from the same split
  // on.
  constexpr uint32_t slots = 1u << package::merge_most_slots_log2;
  return divide_up(own_splits, slots) * slots;
}

int64_t most_cascade_rows(const calls::Problem &problem) {
  return INT32_MAX / problem.q_heads;
}

uint64_t splits_workspace(const calls::Problem &problem, uint32_t splits, int32_t few_rows) {
  const uint64_t needed = bytes_of(problem, splits, split_rows(problem, few_rows));
  const uint64_t ceiling = problem.workspace_ceiling_bytes;
  if (ceiling == 0 || needed <= ceiling) return needed;
  // Where cost chooses the number of splits, the ceiling has limited it already.
  throw Failure(Status::unsupported, "workspace_ceiling_bytes",
                text("workspace_ceiling_bytes is ", ceiling, "; with ",
                     is_cascade(problem) ? "SLUICE_ATTENTION_PREFIXES" : "SLUICE_ATTENTION_BATCH_INVARIANT",
                     " the nearest supported is ", needed));
}

} // namespace sluice::runtime

//===- split.cpp - splits of a row's keys among workgroups, and their workspace -------------------------===//
#include "runtime/split.h"

#include "package/cache_op_kernargs.h"
#include "runtime/choice.h"
#include "runtime/dtype.h"
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

int32_t rows_of(const Choice &choice, int32_t q_len) {
  return std::min(choice.few_rows, q_len == 0 ? choice.few_rows : q_len);
}

/// Without a kernel for many rows, those of a sequence decide the size of the workspace.
void check_has_most_rows(const sluice_problem &problem) {
  if (problem.max_q_len != 0) return;
  throw Failure(
      Status::unsupported, "max_q_len",
      "max_q_len is 0 (unbounded); SLUICE_DETERMINISM_BATCH_INVARIANT splits keys at fixed places and, with "
      "these types and head dims, needs this bound for the size of the workspace; nearest supported: 1 or "
      "more");
}

/// Rows with results over a split of the keys, with `rows` rows of each sequence. In a cascade those of q.
int64_t rows_of_split(const sluice_problem &problem, int64_t rows) {
  return is_cascade(problem) ? problem.max_q_tokens : rows * problem.max_batch;
}

uint64_t bytes_of(const sluice_problem &problem, uint64_t splits, int64_t rows) {
  return splits_layout(problem, uint32_t(splits), rows_of_split(problem, rows)).bytes;
}

/// The splits that the ceiling allows, those of prefixes included.
uint64_t allowed_splits(const sluice_problem &problem, int64_t rows) {
  const uint64_t ceiling =
      problem.workspace_ceiling_bytes != 0 ? problem.workspace_ceiling_bytes : usual_workspace_ceiling;
  return std::min(ceiling / std::max<uint64_t>(bytes_of(problem, 1, rows), 1), max_splits);
}

/// Splits at fixed places of the most keys that a sequence or a prefix may have.
struct FixedPlaces {
  uint32_t split_tiles, splits;
};
FixedPlaces fixed_places(const package::KernelName &name, const char *field, int32_t most_keys) {
  const uint32_t split_tiles = fixed_split_keys / name.tile_kv;
  const uint64_t tiles = divide_up(uint64_t(most_keys), uint64_t{name.tile_kv});
  const uint64_t splits = divide_up(tiles, uint64_t{split_tiles});
  if (splits > max_splits) {
    throw Failure(Status::unsupported, field,
                  text(field, " is ", most_keys,
                       "; with SLUICE_DETERMINISM_BATCH_INVARIANT the nearest supported is ",
                       max_splits * fixed_split_keys));
  }
  return {split_tiles, uint32_t(splits)};
}

void check_ceiling(const sluice_problem &problem, uint64_t needed, const char *reason) {
  const uint64_t ceiling = problem.workspace_ceiling_bytes;
  if (ceiling == 0 || needed <= ceiling) return;
  throw Failure(
      Status::unsupported, "workspace_ceiling_bytes",
      text("workspace_ceiling_bytes is ", ceiling, "; with ", reason, " the nearest supported is ", needed));
}

/// The rows that a merge of splits counts, which is not a cascade's.
void check_rows(const sluice_problem &problem, int64_t rows) {
  const int64_t rows_of_sequence = rows * problem.q_heads;
  if (rows_of_sequence > INT32_MAX) {
    throw Failure(Status::unsupported, "max_q_len",
                  text("max_q_len is ", problem.max_q_len, " with ", problem.q_heads,
                       " heads; with SLUICE_DETERMINISM_BATCH_INVARIANT the nearest supported is ",
                       INT32_MAX / problem.q_heads));
  }
  if (rows_of_sequence > INT32_MAX / problem.max_batch) {
    throw Failure(Status::unsupported, "max_batch",
                  text("max_batch is ", problem.max_batch, " with ", rows, " rows of ", problem.q_heads,
                       " heads; with SLUICE_DETERMINISM_BATCH_INVARIANT the nearest supported is ",
                       INT32_MAX / rows_of_sequence));
  }
}

} // namespace

SplitsLayout splits_layout(const sluice_problem &problem, uint32_t splits, int64_t rows) {
  SplitsLayout out = {};
  out.lse_row_stride = problem.q_heads;
  out.lse_split_stride = out.lse_row_stride * rows;
  const int64_t columns = row_elements(problem.head_dim_v);
  out.row_stride = out.lse_row_stride * columns;
  out.split_stride = out.lse_split_stride * columns;
  out.lse_offset_bytes = uint64_t(out.split_stride) * splits * sizeof(float);
  out.bytes = out.lse_offset_bytes + uint64_t(out.lse_split_stride) * splits * sizeof(float);
  return out;
}

uint64_t most_splits(const sluice_problem &problem, int64_t rows) {
  if (is_cascade(problem)) return std::max<uint64_t>(allowed_splits(problem, rows), 2) - 1;
  // Rows of a merge are counted in 31 bits.
  if (rows * problem.q_heads > INT32_MAX / problem.max_batch) return 1;
  return std::max<uint64_t>(allowed_splits(problem, rows), 1);
}

uint64_t most_prefix_splits(const sluice_problem &problem, uint64_t own_splits) {
  return std::max(allowed_splits(problem, 0), own_splits + 1) - own_splits;
}

void use_splits(Choice &choice, const sluice_problem &problem, uint64_t splits, int64_t rows) {
  choice.splits = uint32_t(splits);
  choice.merges = splits > 1;
  if (choice.merges) choice.workspace_bytes = bytes_of(problem, splits, rows);
}

void split_at_fixed_places(Choice &choice, const sluice_problem &problem) {
  const int64_t rows = rows_of(choice, problem.max_q_len);
  if (!is_cascade(problem)) {
    if (rows == INT32_MAX) check_has_most_rows(problem);
    check_rows(problem, rows);
  }
  const auto [split_tiles, splits] = fixed_places(choice.few->entry.name, "max_kv_len", problem.max_kv_len);
  choice.split_tiles = split_tiles;
  choice.splits = splits;
  if (is_cascade(problem)) return;
  // A sink logit joins the denominator in the merge or not at all. If bits must not depend on whether there
  // is a merge, there always is one.
  choice.merges = splits > 1 || problem.flags & SLUICE_SINK_LOGITS;
  if (!choice.merges) return;
  choice.workspace_bytes = bytes_of(problem, splits, rows);
  check_ceiling(problem, choice.workspace_bytes, "SLUICE_DETERMINISM_BATCH_INVARIANT");
}

void split_prefixes_at_fixed_places(Choice &choice, const sluice_problem &problem) {
  const auto [split_tiles, splits] =
      fixed_places(choice.prefix.kernel->entry.name, "max_prefix_len", problem.max_prefix_len);
  choice.prefix.split_tiles = split_tiles;
  choice.prefix.splits = splits;
  // The order in which a merge adds splits follows from their numbers. The splits of the own keys, whose
  // number depends on a bound, must not change it, so the lanes of a row take prefixes from the same split
  // on.
  constexpr uint32_t slots = 1u << package::merge_most_slots_log2;
  choice.prefix.first_split = divide_up(choice.splits, slots) * slots;
}

int64_t most_cascade_rows(const sluice_problem &problem) {
  return INT32_MAX / problem.q_heads;
}

void use_cascade_workspace(Choice &choice, const sluice_problem &problem) {
  choice.merges = true;
  choice.workspace_bytes = bytes_of(problem, choice.prefix.first_split + choice.prefix.splits, 0);
  check_ceiling(problem, choice.workspace_bytes, "SLUICE_SHARED_PREFIX");
}

} // namespace sluice::runtime

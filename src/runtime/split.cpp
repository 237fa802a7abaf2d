//===- split.cpp - splits of a row's keys among workgroups, and their workspace -------------------------===//
#include "runtime/split.h"

#include "runtime/choice.h"
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

void check_bound(const char *field, int64_t bound) {
  if (bound != 0) return;
  throw Failure(
      Status::unsupported, field,
      text(field, " is 0, which means unbounded; with SLUICE_DETERMINISM_BATCH_INVARIANT keys are split at "
                  "fixed places, and the splits need workspace; nearest supported: 1 or more"));
}

uint64_t bytes_of(const sluice_problem &problem, uint64_t splits, int64_t rows) {
  return split_layout(problem, uint32_t(splits), problem.max_batch, int32_t(rows)).bytes;
}

} // namespace

SplitLayout split_layout(const sluice_problem &problem, uint32_t splits, int32_t batch, int32_t rows) {
  SplitLayout out = {};
  out.lse_token_stride = problem.q_heads;
  out.lse_batch_stride = out.lse_token_stride * rows;
  out.lse_split_stride = out.lse_batch_stride * batch;
  out.token_stride = out.lse_token_stride * problem.head_dim_v;
  out.batch_stride = out.lse_batch_stride * problem.head_dim_v;
  out.split_stride = out.lse_split_stride * problem.head_dim_v;
  out.lse_offset_bytes = uint64_t(out.split_stride) * splits * sizeof(float);
  out.bytes = out.lse_offset_bytes + uint64_t(out.lse_split_stride) * splits * sizeof(float);
  return out;
}

uint64_t most_splits(const sluice_problem &problem, int64_t rows) {
  // Rows of a merge are counted in 31 bits.
  if (rows * problem.q_heads > INT32_MAX / problem.max_batch) return 1;
  const uint64_t ceiling = problem.workspace_ceiling_bytes, of_split = bytes_of(problem, 1, rows);
  return std::clamp<uint64_t>((ceiling != 0 ? ceiling : usual_workspace_ceiling) / of_split, 1, max_splits);
}

void use_splits(Choice &choice, const sluice_problem &problem, uint64_t splits, int64_t rows) {
  choice.splits = uint32_t(splits);
  choice.merges = splits > 1;
  if (choice.merges) choice.workspace_bytes = bytes_of(problem, splits, rows);
}

void split_at_fixed_places(Choice &choice, const sluice_problem &problem) {
  const package::KernelName &name = choice.few->entry.name;
  const int64_t rows = rows_of(choice, problem.max_q_len);
  check_bound("max_batch", problem.max_batch);
  check_bound("max_kv_len", problem.max_kv_len);
  if (rows == INT32_MAX) check_bound("max_q_len", problem.max_q_len);
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
  const uint64_t tiles = divide_up(uint64_t(problem.max_kv_len), uint64_t{name.tile_kv});
  choice.split_tiles = fixed_split_keys / name.tile_kv;
  const uint64_t splits = divide_up(tiles, uint64_t{choice.split_tiles});
  if (splits > max_splits) {
    throw Failure(Status::unsupported, "max_kv_len",
                  text("max_kv_len is ", problem.max_kv_len,
                       "; with SLUICE_DETERMINISM_BATCH_INVARIANT the nearest supported is ",
                       max_splits * fixed_split_keys));
  }
  choice.splits = uint32_t(splits);
  // A sink logit joins the denominator in the merge or not at all. If bits must not depend on whether there
  // is a merge, there always is one.
  choice.merges = splits > 1 || problem.flags & SLUICE_SINK_LOGITS;
  if (!choice.merges) return;
  choice.workspace_bytes = bytes_of(problem, splits, rows);
  const uint64_t ceiling = problem.workspace_ceiling_bytes;
  if (ceiling != 0 && choice.workspace_bytes > ceiling) {
    throw Failure(Status::unsupported, "workspace_ceiling_bytes",
                  text("workspace_ceiling_bytes is ", ceiling,
                       "; with SLUICE_DETERMINISM_BATCH_INVARIANT the nearest supported is ",
                       choice.workspace_bytes));
  }
}

} // namespace sluice::runtime

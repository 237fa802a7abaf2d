//===- split.cpp - dividing the keys of a row among workgroups, and the workspace that takes ------------===//
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

// A workgroup of one wave and 16 KiB of LDS leaves room for three more on its compute unit: one per SIMD.
constexpr uint64_t workgroups_per_compute_unit = 4;
// What the merging kernel takes.
constexpr uint64_t max_parts = 65536;

int32_t rows_of(const Choice &choice, int32_t q_len) {
  return std::min(choice.packed_rows, q_len == 0 ? choice.packed_rows : q_len);
}

void check_bound(const char *field, int64_t bound) {
  if (bound != 0) return;
  throw Failure(Status::unsupported, field,
                text(field,
                     " is 0, which is no bound; with SLUICE_DETERMINISM_BATCH_INVARIANT keys are split at "
                     "fixed places, and the parts need workspace; nearest supported: 1 or more"));
}

} // namespace

PartsLayout parts_layout(const sluice_problem &problem, uint32_t parts, int32_t batch, int32_t rows) {
  PartsLayout out = {};
  out.lse_token_stride = problem.q_heads;
  out.lse_batch_stride = out.lse_token_stride * rows;
  out.lse_part_stride = out.lse_batch_stride * batch;
  out.token_stride = out.lse_token_stride * problem.head_dim_v;
  out.batch_stride = out.lse_batch_stride * problem.head_dim_v;
  out.part_stride = out.lse_part_stride * problem.head_dim_v;
  out.lse_offset_bytes = uint64_t(out.part_stride) * parts * sizeof(float);
  out.bytes = out.lse_offset_bytes + uint64_t(out.lse_part_stride) * parts * sizeof(float);
  return out;
}

void split_keys(Choice &choice, const sluice_problem &problem, uint32_t compute_units, bool can_merge) {
  if (choice.packed == nullptr || !can_merge) return;
  const package::KernelName &name = choice.packed->entry.name;
  const bool fixed = problem.determinism == SLUICE_DETERMINISM_BATCH_INVARIANT;
  const int64_t rows = rows_of(choice, problem.max_q_len);
  if (fixed) {
    check_bound("max_batch", problem.max_batch);
    check_bound("max_kv_len", problem.max_kv_len);
    if (rows == INT32_MAX) check_bound("max_q_len", problem.max_q_len);
  } else if (problem.max_batch == 0 || problem.max_kv_len == 0 || rows == INT32_MAX) {
    return;
  }
  // Rows of a merge are counted in 31 bits.
  const int64_t rows_of_sequence = rows * problem.q_heads;
  if (rows_of_sequence > INT32_MAX / problem.max_batch) {
    if (!fixed) return;
    if (rows_of_sequence > INT32_MAX) {
      throw Failure(Status::unsupported, "max_q_len",
                    text("max_q_len is ", problem.max_q_len, " with ", problem.q_heads,
                         " heads; with SLUICE_DETERMINISM_BATCH_INVARIANT the nearest supported is ",
                         INT32_MAX / problem.q_heads));
    }
    throw Failure(Status::unsupported, "max_batch",
                  text("max_batch is ", problem.max_batch, " with ", rows, " rows of ", problem.q_heads,
                       " heads; with SLUICE_DETERMINISM_BATCH_INVARIANT the nearest supported is ",
                       INT32_MAX / rows_of_sequence));
  }
  const uint64_t tiles = divide_up(uint64_t(problem.max_kv_len), uint64_t{name.tile_kv});
  uint64_t parts = 1;
  if (fixed) {
    choice.part_tiles = fixed_part_keys / name.tile_kv;
    parts = divide_up(tiles, uint64_t{choice.part_tiles});
    if (parts > max_parts) {
      throw Failure(Status::unsupported, "max_kv_len",
                    text("max_kv_len is ", problem.max_kv_len,
                         "; with SLUICE_DETERMINISM_BATCH_INVARIANT the nearest supported is ",
                         max_parts * fixed_part_keys));
    }
  } else {
    const uint64_t group = uint64_t(problem.q_heads / problem.kv_heads);
    const uint64_t row_tiles = divide_up(uint64_t(rows) * group, uint64_t{name.tile_q});
    const uint64_t workgroups = uint64_t(problem.max_batch) * uint64_t(problem.kv_heads) * row_tiles;
    const uint64_t wanted = divide_up(compute_units * workgroups_per_compute_unit, workgroups);
    parts = std::clamp<uint64_t>(divide_up(tiles, uint64_t{min_part_tiles}), 1, wanted);
  }
  const auto bytes_of = [&](uint64_t count) {
    return parts_layout(problem, uint32_t(count), problem.max_batch, int32_t(rows)).bytes;
  };
  const uint64_t ceiling = problem.workspace_ceiling_bytes;
  // A sink logit joins the denominator in the merge or not at all: it always does where bits must not depend
  // on whether there is one.
  const bool merges = parts > 1 || (fixed && problem.flags & SLUICE_SINK_LOGITS);
  if (ceiling != 0 && merges && bytes_of(parts) > ceiling) {
    if (fixed) {
      throw Failure(Status::unsupported, "workspace_ceiling_bytes",
                    text("workspace_ceiling_bytes is ", ceiling,
                         "; with SLUICE_DETERMINISM_BATCH_INVARIANT the nearest supported is ",
                         bytes_of(parts)));
    }
    parts = std::max<uint64_t>(ceiling / bytes_of(1), 1);
  }
  choice.parts = uint32_t(parts);
  choice.merges = merges && (fixed || parts > 1);
  if (choice.merges) choice.workspace_bytes = bytes_of(parts);
}

} // namespace sluice::runtime

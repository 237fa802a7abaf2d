//===- attention_arguments.cpp - problems and calls as arguments of attention kernels -------------------===//
#include "runtime/attention_arguments.h"

#include "calls/args.h"
#include "calls/problem.h"
#include "features/all.h"
#include "package/attention_launch.h"
#include "runtime/dtype.h"
#include "runtime/problem.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numbers>
#include <utility>

namespace sluice::runtime {
namespace {

using features::address_of;
using features::Feature;

/// `rows` for kernels: 0 is unknown, and becomes the limit of the type.
int32_t rows_or_unknown(int64_t rows) {
  constexpr int32_t unknown = std::numeric_limits<int32_t>::max();
  return rows == 0 ? unknown : int32_t(std::min<int64_t>(rows, unknown));
}

uint32_t score_flags(const calls::Problem &problem) {
  uint32_t flags = 0;
  const auto set = [&flags](bool condition, uint32_t bit) { flags |= condition ? bit : 0; };
  const auto has_keys = [](uint32_t kind) {
    return kind == SLUICE_SCALE_PER_TOKEN || kind == SLUICE_SCALE_PER_PAGE;
  };
  set(features::any<&Feature::changes_scores>(problem), package::score_changed);
  set(has_keys(problem.k_scale_kind) || has_keys(problem.v_scale_kind), package::score_key_scales);
  set(problem.q_scale_kind == SLUICE_SCALE_PER_HEAD, package::score_q_scale_heads);
  set(problem.k_scale_kind == SLUICE_SCALE_PER_HEAD, package::score_k_scale_heads);
  set(problem.v_scale_kind == SLUICE_SCALE_PER_HEAD, package::score_v_scale_heads);
  set(problem.flags & calls::page_index_64, package::score_page_index_64);
  set(problem.o_type == SLUICE_F32, package::score_o_f32);
  set(problem.o_type == SLUICE_E4M3FNUZ, package::score_o_fp8);
  set(problem.scale_group == 64, package::score_groups_of_64);
  set(problem.o_scale_kind == SLUICE_SCALE_PER_HEAD, package::score_o_scale_heads);
  return flags;
}

/// Whether V is by columns, and all tokens of a column of a page or sequence are neighbours. To a kernel,
/// that is packs of one token each, one element apart.
bool is_one_v_pack(const calls::Problem &problem) {
  return problem.v_pack == SLUICE_PACK_ALL || (problem.v_pack != 0 && problem.v_pack == problem.page_size);
}

/// Kernels address blocks by bytes.
sluice_tensor in_bytes_if_blocks(uint32_t type, const sluice_tensor &tensor) {
  const Block block = dtype_block(type);
  const auto in_bytes = [&](int64_t stride) {
    return block.elements == 1 ? stride : stride / block.elements * block.bytes;
  };
  const auto &stride = tensor.stride;
  return {tensor.data, {in_bytes(stride[0]), in_bytes(stride[1]), in_bytes(stride[2]), stride[3]}};
}

/// The parts of a side's arguments.
#define SLUICE_FILL(side, tensor)                                                                            \
  do {                                                                                                       \
    const sluice_tensor &used = tensor;                                                                      \
    out.side = address_of(used.data);                                                                        \
    out.side##_batch_stride = used.stride[0];                                                                \
    out.side##_token_stride = used.stride[1];                                                                \
    out.side##_head_stride = used.stride[2];                                                                 \
  } while (false)

void fill_rows(package::AttentionKernargs &out, const calls::Problem &problem, const RowSet &rows) {
  SLUICE_FILL(q, with_used_strides(rows.q, rows.extents, problem.q_heads, row_elements(problem.head_dim_qk)));
  out.q_starts = address_of(rows.starts);
  out.q_lengths = address_of(rows.lengths);
  out.q_len = rows.most_rows;
  out.q_rows = known_q_rows(problem, rows.tokens);
}

void fill_pages(package::AttentionKernargs &out, const calls::Problem &problem, const KeySet &keys,
                int64_t page_count) {
  out.page_table = address_of(keys.page_table);
  out.page_starts = address_of(keys.page_starts);
  out.page_table_stride = keys.page_table_stride;
  out.page_table_head_stride = problem.kv_heads == 1 ? 0 : keys.page_table_head_stride;
  if (keys.page_table == nullptr) return;
  const bool is_64 = problem.flags & calls::page_index_64;
  const uint64_t last = uint64_t(page_count) - 1; // the largest number if the count is unknown
  // A negative 32-bit number is too large when read as unsigned.
  out.last_page_low = is_64 ? uint32_t(last) : uint32_t(std::min<uint64_t>(last, INT32_MAX));
  out.last_page_high = is_64 && page_count == 0 ? INT32_MAX : 0;
}

void fill_keys(package::AttentionKernargs &out, const calls::Problem &problem, const KeySet &keys) {
  const int32_t row_k = row_elements(problem.head_dim_qk);
  const bool v_in_k = problem.flags & calls::v_in_k;
  const sluice_tensor &v = v_in_k ? keys.k : keys.v;
  const int32_t row_v = v_in_k ? row_k : row_elements(problem.head_dim_v);
  SLUICE_FILL(k, in_bytes_if_blocks(problem.k_type,
                                    with_used_strides(keys.k, keys.extents, problem.kv_heads, row_k)));
  SLUICE_FILL(
      v, in_bytes_if_blocks(problem.v_type, with_used_strides(v, keys.extents, problem.kv_heads, row_v)));
  out.kv_starts = address_of(keys.starts);
  out.kv_lengths = address_of(keys.lengths);
  out.kv_len = keys.most_keys;
  out.kv_rows = rows_or_unknown(keys.tokens);
  if (problem.v_pack != 0) {
    out.v_column_stride = uint32_t(keys.v.stride[3]);
    if (is_one_v_pack(problem)) out.v_token_stride = 1;
  }
  // A row of one pack has no stride between packs.
  out.k_pack_stride = problem.k_pack == 0                     ? 0
                      : problem.k_pack == problem.head_dim_qk ? problem.k_pack
                                                              : keys.k.stride[3];
}

/// Scales for each key, found like the rows of k and v.
void fill_key_scales(package::AttentionKernargs &out, const calls::Problem &problem, const calls::Args &call,
                     const Rows &extents) {
  const auto scales = [&](const sluice_tensor &tensor, uint32_t kind) {
    const Rows scaled = {extents.outer, kind == SLUICE_SCALE_PER_PAGE ? 1 : extents.inner};
    sluice_tensor used = with_used_strides(tensor, scaled, problem.kv_heads, 1);
    if (kind == SLUICE_SCALE_PER_PAGE) used.stride[1] = 0; // all rows of a page have its scale
    return used;
  };
  SLUICE_FILL(k_scales, scales(call.k_scales, problem.k_scale_kind));
  SLUICE_FILL(v_scales, scales(call.v_scales, problem.v_scale_kind));
  if (problem.k_scale_kind != SLUICE_SCALE_PER_GROUP) return;
  out.k_groups = std::exchange(out.k_scales, 0);
  out.v_groups = std::exchange(out.v_scales, 0);
  out.k_zeros = address_of(call.k_zeros.data);
  out.v_zeros = address_of(call.v_zeros.data);
}

void fill_scales(package::AttentionKernargs &out, const calls::Args &call) {
  out.scale_log2e = float(call.scale * std::numbers::log2e);
  out.q_scale = address_of(call.q_scale);
  out.k_scale = address_of(call.k_scale);
  out.v_scale = address_of(call.v_scale);
  out.o_scale = address_of(call.o_scale);
}

/// The sequences whose rows see prefixes: between them there may be rows that belong to none, which are not
/// read. Prefixes have neither masks nor a bias; kernargs.h says which of their arguments these take.
void fill_sequences_of_rows(package::AttentionKernargs &out, const calls::Args &call) {
  if (call.q_starts == nullptr && call.q_lengths == nullptr) return;
  uint64_t &starts = out.diagonals, &lengths = out.causal;
  int64_t &count = out.span_stride, &rows_without_starts = out.bias_row_stride;
  out.score_flags |= package::score_rows_of_sequences;
  starts = address_of(call.q_starts);
  lengths = address_of(call.q_lengths);
  count = call.batch;
  rows_without_starts = call.q_len;
}

void fill_results(package::AttentionKernargs &out, const Results &results) {
  SLUICE_FILL(o, results.o);
  SLUICE_FILL(lse, results.lse);
  out.o_split_stride = results.o_split_stride;
  out.lse_split_stride = results.lse_split_stride;
  out.sink_logits = address_of(results.sink_logits);
}

#undef SLUICE_FILL

void fill_level(package::AttentionKernargs &out, const calls::Problem &problem, const calls::Args &call,
                const Level &level, const Results &results) {
  fill_rows(out, problem, level.rows);
  fill_keys(out, problem, level.keys);
  fill_pages(out, problem, level.keys, call.page_count);
  fill_key_scales(out, problem, call, level.keys.extents);
  fill_scales(out, call);
  fill_results(out, results);
}

} // namespace

int32_t known_q_rows(const calls::Problem &problem, int64_t tokens) {
  return std::min(rows_or_unknown(tokens), rows_or_unknown(problem.max_q_tokens));
}

package::AttentionKernargs problem_arguments(const package::KernelEntry &kernel,
                                             const calls::Problem &problem) {
  package::AttentionKernargs out = package::plain_kernargs(kernel.name);
  out.head_dim_qk = row_elements(problem.head_dim_qk);
  out.head_dim_v = row_elements(problem.head_dim_v);
  package::set_group(out, uint32_t(group_heads(problem)));
  if (problem.mode == calls::paged) package::set_page_rows(out, uint32_t(problem.page_size));
  if (problem.k_pack != 0) out.k_pack_log2 = uint32_t(std::countr_zero(uint32_t(problem.k_pack)));
  if (problem.v_pack != 0)
    out.v_pack_log2 = is_one_v_pack(problem) ? 0 : uint32_t(std::countr_zero(uint32_t(problem.v_pack)));
  if (problem.flags & calls::lse_log2) out.lse_per_log2 = 1;
  out.score_flags = score_flags(problem);
  features::for_each<&Feature::fill_problem>([&](auto fill) { fill(out, problem); });
  out.score_flags |= uint32_t(out.head_dim_qk - problem.head_dim_qk) << package::score_unused_shift;
  return out;
}

void set_splits(package::AttentionKernargs &args, const Splits &splits) {
  package::set_splits(args, splits.count);
  args.split_tiles = splits.tiles;
  args.min_split_tiles = splits.least_tiles;
}

Results final_results(const calls::Problem &problem, const calls::Args &call) {
  const Rows rows = q_rows(call);
  return {.o = with_used_strides(call.o, rows, problem.q_heads, row_elements(problem.head_dim_v)),
          .lse = with_used_strides(call.lse, rows, problem.q_heads, 1),
          .sink_logits = call.sink_logits};
}

void fill_own(package::AttentionKernargs &out, const calls::Problem &problem, const calls::Args &call,
              const Level &level, const Results &results) {
  fill_level(out, problem, call, level, results);
  features::for_each<&Feature::fill_call>([&](auto fill) { fill(out, problem, call); });
}

void fill_prefixes(package::AttentionKernargs &out, const calls::Problem &problem, const calls::Args &call,
                   const Level &level, const Results &results) {
  fill_level(out, problem, call, level, results);
  fill_sequences_of_rows(out, call);
}

} // namespace sluice::runtime

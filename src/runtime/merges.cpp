//===- merges.cpp - merges: arguments of the kernels, and their launch ----------------------------------===//
#include "runtime/cache_op_launch.h"

#include "runtime/call_rows.h"
#include "runtime/cost.h"
#include "runtime/ranges.h"
#include "support/checked.h"
#include "support/divisor.h"

#include <array>
#include <cstring>
#include <numbers>

namespace sluice::runtime {
namespace {

using package::cache_op_chunk_elements;
using package::cache_op_threads;
using support::divide_up;
using support::Divisor32;

// A merge has all rows in one grid: HIP limits x to fewer than 2^32 lanes, and y to this many workgroups.
constexpr uint32_t usual_grid_x = 4096, most_grid_y = 65535;

/// Where the parts of a merge are, in elements from the first one.
struct PartPlaces {
  uint64_t first;
  int64_t stride;         // if has_stride
  bool has_stride = true; // also for a list of parts that are equally far from one another
  std::array<int64_t, package::merge_most_listed_parts> distances = {};

  PartPlaces(const sluice_tensor &parts, const void *const *list, uint32_t count, uint32_t element_bytes)
      : first(address_of(parts.data)), stride(parts.stride[0]) {
    if (list == nullptr) return;
    first = address_of(list[0]);
    for (uint32_t part = 1; part < count; ++part) {
      distances[part] = int64_t(address_of(list[part]) - first) / element_bytes;
      has_stride = has_stride && distances[part] - distances[part - 1] == distances[1];
    }
    stride = distances[1];
  }
};

struct MergeExtents {
  uint32_t parts, batch, tokens, most_tokens, max_tokens, heads, head_dim;
};

struct LaneDivision {
  uint32_t lanes_log2, slots_log2, slot_place, groups_log2;
};

/// Divides the lanes of a merge among rows, chunks and parts. Bits depend on the order in which parts are
/// added: more slots than parts do not change it; otherwise it follows from the row's width.
LaneDivision divide_lanes(uint32_t parts, uint32_t row_chunks) {
  constexpr uint32_t threads_log2 = std::bit_width(cache_op_threads) - 1;
  LaneDivision division = {};
  division.lanes_log2 = lanes_log2(row_chunks, cache_op_threads);
  division.slots_log2 =
      std::min(lanes_log2(parts, 1u << package::merge_most_slots_log2), threads_log2 - division.lanes_log2);
  division.groups_log2 = threads_log2 - division.lanes_log2 - division.slots_log2;
  // Bits 3, 2, 4 and 5: exchanging values between lanes is free if only the first two differ. At least four
  // adjacent lanes of a row read 64 or more adjacent bytes.
  division.slot_place = 4 - std::min(division.slots_log2, 2u);
  return division;
}

/// Strides of contiguous rows.
struct PlainStrides {
  int64_t head, token, tokens;
  PlainStrides(const MergeExtents &extents, int64_t row)
      : head(row), token(head * extents.heads), tokens(token * extents.tokens) {}
};

/// Whether rows of this many elements are contiguous; true for a tensor that is not given.
bool is_plain(const sluice_tensor &tensor, const MergeExtents &extents, int64_t row) {
  const PlainStrides plain(extents, row);
  return tensor.data == nullptr || (tensor.stride[2] == plain.head && tensor.stride[1] == plain.token &&
                                    (extents.batch == 1 || tensor.stride[0] == plain.tokens));
}

/// Whether the parts are contiguous, and few enough for merge_at_once or merge_several_at_once.
bool is_at_once(const MergeExtents &extents, const LaneDivision &division, uint32_t element_bytes,
                const package::MergeKernargs &out) {
  const MergeExtents all = {.parts = extents.parts,
                            .batch = 1,
                            .tokens = extents.batch * extents.tokens,
                            .most_tokens = 0,
                            .max_tokens = 0,
                            .heads = extents.heads,
                            .head_dim = extents.head_dim};
  const PlainStrides rows(all, extents.head_dim), lses(all, 1);
  const bool is_dense = out.partial_head_stride == rows.head && out.partial_token_stride == rows.token &&
                        out.partial_part_stride == rows.tokens && out.partial_lse_head_stride == lses.head &&
                        out.partial_lse_token_stride == lses.token &&
                        out.partial_lse_part_stride == lses.tokens;
  const uint64_t bytes = uint64_t{extents.parts} * out.rows * extents.head_dim * element_bytes;
  constexpr uint32_t other_places = package::merge_listed_parts | package::merge_lse_sequences;
  return is_dense && out.prefix_starts == 0 && (out.mode & other_places) == 0 &&
         double(bytes) <= merge_at_once_bytes &&
         extents.parts <= package::merge_parts_of_lane << division.slots_log2 &&
         out.row_chunks <= 1u << division.lanes_log2;
}

/// Fills in where the result goes, and what follows from the extents and from the strides and arrays already
/// filled in. Returns the workgroups.
Grid fill_merge(const MergeExtents &extents, const MergeResult &call, uint32_t element_bytes,
                package::MergeKernargs &out) {
  const bool is_natural = !call.to_log2;
  out.o = address_of(call.o.data);
  out.lse = address_of(call.lse.data);
  out.sink_logits = address_of(call.sinks);
  out.o_scale = address_of(call.o_scale);
  out.o_batch_stride = call.o.stride[0];
  out.o_token_stride = call.o.stride[1];
  out.o_head_stride = call.o.stride[2];
  out.lse_batch_stride = call.lse.stride[0];
  out.lse_token_stride = call.lse.stride[1];
  out.lse_head_stride = call.lse.stride[2];
  out.log2_per_unit = is_natural ? std::numbers::log2e_v<float> : 1;
  out.unit_per_log2 = is_natural ? std::numbers::ln2_v<float> : 1;
  out.unit_per_nat = is_natural ? 1 : std::numbers::log2e_v<float>;
  const Divisor32 by_heads{extents.heads}, by_tokens{extents.tokens};
  out.parts = extents.parts;
  if (out.prefix_starts == 0) out.own_parts = extents.parts;
  out.rows = extents.batch * extents.tokens * extents.heads;
  out.heads = extents.heads;
  out.heads_magic = by_heads.magic;
  out.heads_shift = by_heads.shift;
  out.tokens = extents.tokens;
  out.tokens_magic = by_tokens.magic;
  out.tokens_shift = by_tokens.shift;
  out.most_tokens = extents.most_tokens;
  out.max_tokens = extents.max_tokens;
  out.row_chunks = extents.head_dim / cache_op_chunk_elements;
  const LaneDivision division = divide_lanes(extents.parts, out.row_chunks);
  out.lane_division =
      division.lanes_log2 | division.slots_log2 << 8 | division.slot_place << 16 | division.groups_log2 << 24;
  const bool is_one_each = extents.parts <= 1u << division.slots_log2,
             at_once = is_at_once(extents, division, element_bytes, out);
  if (out.mode != 0)
    out.mode |= at_once && is_one_each ? package::merge_specially_at_once : package::merge_specially;
  else if (at_once)
    out.mode |= is_one_each ? package::merge_at_once : package::merge_several_at_once;
  const bool has_all_rows = out.q_starts == 0 && out.q_lengths == 0;
  if (has_all_rows && is_plain(call.o, extents, extents.head_dim) && is_plain(call.lse, extents, 1))
    out.mode |= package::merge_to_plain_rows;
  if (call.o_scale_kind == SLUICE_SCALE_PER_HEAD) out.mode |= package::merge_o_scale_heads;
  const uint32_t groups = divide_up(out.rows, 1u << division.groups_log2);
  const uint32_t in_x = std::max(std::min(groups, usual_grid_x), divide_up(groups, most_grid_y));
  const Grid grid = {in_x, divide_up(groups, in_x), 1};
  out.row_step = in_x << division.groups_log2;
  return grid;
}

} // namespace

void merge(Context &context, const sluice_merge_args &call, const sluice_launch &launch) {
  const CacheOpKernel &kernel =
      find(context, CacheOperation::merge_states, "o_format.type", call.parts.type, call.o_format.type);
  if (has_nothing_to_do(call)) return enqueue_nothing(*context.device().hip, launch);
  package::MergeKernargs out = {};
  const uint32_t parts = uint32_t(call.parts.count), element_bytes = call.parts.type == SLUICE_F32 ? 4 : 2;
  const PartPlaces rows(call.parts.o, call.parts.o_list, parts, element_bytes),
      lses(call.parts.lse, call.parts.lse_list, parts, sizeof(float));
  const uint32_t tokens = uint32_t(call.sequence_tokens != 0 ? call.sequence_tokens : call.tokens);
  const Rows part = {parts, call.tokens}, part_lse = {parts, tokens};
  const sluice_tensor partial = with_used_strides(call.parts.o, part, call.heads, call.head_dim),
                      partial_lse = with_used_strides(call.parts.lse, part_lse, call.heads, 1);
  out.partial = rows.first;
  out.partial_lse = lses.first;
  out.partial_part_stride = rows.stride;
  out.partial_token_stride = partial.stride[1];
  out.partial_head_stride = partial.stride[2];
  out.partial_lse_part_stride = lses.stride;
  out.partial_lse_token_stride = partial_lse.stride[1];
  out.partial_lse_head_stride = partial_lse.stride[2];
  if (!rows.has_stride || !lses.has_stride) {
    out.mode |= package::merge_listed_parts;
    std::memcpy(&out.partial_distance_0, rows.distances.data(), sizeof rows.distances);
    std::memcpy(&out.partial_lse_distance_0, lses.distances.data(), sizeof lses.distances);
  }
  if (call.flags & SLUICE_MERGE_INFINITY_IS_EMPTY) out.mode |= package::merge_infinity_is_empty;
  const MergeExtents extents = {.parts = parts,
                                .batch = uint32_t(call.tokens) / tokens,
                                .tokens = tokens,
                                .most_tokens = tokens,
                                .max_tokens = tokens,
                                .heads = uint32_t(call.heads),
                                .head_dim = uint32_t(call.head_dim)};
  MergeResult placed = {.o = with_used_strides(call.o, {1, call.tokens}, call.heads, call.head_dim),
                        .lse = with_used_strides(call.lse, {1, tokens}, call.heads, 1),
                        .sinks = call.sinks,
                        .o_scale = call.o_scale,
                        .o_scale_kind = call.o_format.scale_kind,
                        .to_log2 = call.lse_base == SLUICE_LSE_LOG2};
  if (extents.batch > 1) {
    placed.o.stride[0] = tokens * placed.o.stride[1];
    placed.lse.stride[0] = call.lse_sequence_stride;
    // Unsigned: two sequences may be as far from each other as addresses reach.
    out.partial_lse_sequence_skip =
        int64_t(uint64_t(call.parts.lse_sequence_stride) - tokens * uint64_t(partial_lse.stride[1]));
    if (out.partial_lse_sequence_skip != 0) out.mode |= package::merge_lse_sequences;
  }
  const Grid grid = fill_merge(extents, placed, element_bytes, out);
  const Range range(context, [&](RangeText &text) {
    text << kernel.name << " n" << call.parts.count << " t" << call.tokens << " h" << call.heads << " d"
         << call.head_dim;
  });
  run(context, kernel, grid, out, launch);
}

void merge_parts(const Context &context, const CacheOpKernel &kernel, const PartsMerge &call, void *stream) {
  package::MergeKernargs out = {};
  const uint32_t heads = uint32_t(call.heads),
                 tokens = uint32_t(call.batch) * uint32_t(call.rows_per_sequence);
  out.partial = address_of(call.partial);
  out.partial_lse = address_of(call.partial_lse);
  out.q_starts = address_of(call.q_starts);
  out.q_lengths = address_of(call.q_lengths);
  out.q_rows = call.q_rows;
  out.prefix_starts = address_of(call.prefix_starts);
  out.prefix_count = uint32_t(call.prefix_count);
  out.searched_batch = uint32_t(call.searched_batch);
  out.own_parts = uint32_t(call.own_parts);
  out.first_prefix_part = uint32_t(call.first_prefix_part);
  out.partial_lse_head_stride = 1;
  out.partial_lse_token_stride = heads;
  out.partial_lse_part_stride = int64_t{tokens} * heads;
  out.partial_head_stride = call.head_dim_v;
  out.partial_token_stride = out.partial_lse_token_stride * call.head_dim_v;
  out.partial_part_stride = out.partial_lse_part_stride * call.head_dim_v;
  const MergeExtents extents = {.parts = uint32_t(call.parts),
                                .batch = uint32_t(call.batch),
                                .tokens = uint32_t(call.rows_per_sequence),
                                .most_tokens = uint32_t(call.most_rows),
                                .max_tokens = uint32_t(call.max_rows),
                                .heads = heads,
                                .head_dim = uint32_t(call.head_dim_v)};
  const Grid grid = fill_merge(extents, call.result, sizeof(float), out);
  void *const function = kernel.function.load(std::memory_order_acquire);
  trace_and_enqueue(context, kernel, function, grid, out, stream);
}

} // namespace sluice::runtime

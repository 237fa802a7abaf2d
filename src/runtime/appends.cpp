//===- appends.cpp - appends: arguments of the kernels, and their launch --------------------------------===//
#include "calls/cache_ops.h"
#include "calls/problem.h"
#include "runtime/cache_op_launch.h"
#include "runtime/dtype.h"
#include "runtime/ranges.h"
#include "support/checked.h"
#include "support/divisor.h"

#include <optional>

namespace sluice::runtime {
namespace {

using package::cache_op_chunk_elements;
using package::cache_op_threads;
using support::divide_up;
using support::Divisor32;

/// K or V of an append.
struct Side {
  const sluice_tensor &rows, &cache;
  const float *scale = nullptr;
  uint32_t scale_kind = 0;
  int32_t heads = 0, head_dim = 0;
  int32_t pack = 0; // 0: a whole row
};

package::AppendSide arguments_of(const Side &side) {
  const uint32_t chunks = uint32_t(side.head_dim) / cache_op_chunk_elements;
  const uint32_t packed = side.pack == 0 ? chunks : uint32_t(side.pack) / cache_op_chunk_elements;
  const Divisor32 by_head(chunks), by_pack(packed);
  return {.rows = address_of(side.rows.data),
          .cache = address_of(side.cache.data),
          .scale = address_of(side.scale),
          .token_stride = side.rows.stride[1],
          .head_stride = side.rows.stride[2],
          .cache_page_stride = side.cache.stride[0],
          .cache_row_stride = side.cache.stride[1],
          .cache_head_stride = side.cache.stride[2],
          .cache_pack_stride = side.cache.stride[3],
          .chunks = uint32_t(side.heads) * chunks,
          .head_chunks = chunks,
          .head_magic = by_head.magic,
          .head_shift = by_head.shift,
          .pack_chunks = packed,
          .pack_magic = by_pack.magic,
          .pack_shift = by_pack.shift,
          .scale_stride = side.scale_kind == SLUICE_SCALE_PER_HEAD ? 1u : 0u};
}

/// One section of a step: K, V or Q.
struct Section {
  sluice_tensor rows = {}, out = {}, tail = {};
  uint32_t heads = 0, head_dim = 0, tail_dim = 0, pack = 0, rotary_dim = 0;
  const void *norm = nullptr;
  Scales scales = {};
  const void *zeros = nullptr;
  uint32_t type = SLUICE_F16;               // of `out`; all types of 16 bits are the same here
  uint32_t group = cache_op_chunk_elements; // elements that have a common scale in groups, else one chunk
  uint32_t rotary_first = 0;

  uint32_t chunks() const { return head_dim / cache_op_chunk_elements; }
  uint32_t rotary_half() const { return rotary_dim / 2 / cache_op_chunk_elements; }
  /// Whether the halves of the rotation, or the elements before them, are not whole groups.
  bool regroups() const { return rotary_dim / 2 % group != 0 || rotary_first % group != 0; }
  /// Lanes with a chunk: each rotated pair has one, and two of the other chunks have one. Chunks of a group
  /// are in neighbouring lanes.
  uint32_t lane_chunks() const {
    const uint32_t group_chunks = group / cache_op_chunk_elements, rotated = regroups() ? 0 : rotary_half();
    const uint32_t others = divide_up(chunks() - 2 * rotated, package::step_chunks_of_lane);
    return rotated + divide_up(others, group_chunks) * group_chunks;
  }
};

/// A tensor's elements of 16 bits from `element` on, in each row.
sluice_tensor from_element(sluice_tensor tensor, uint32_t element) {
  tensor.data = static_cast<uint16_t *>(tensor.data) + element;
  return tensor;
}

/// Those of the workgroups from `first_group` on.
package::StepSection arguments_of(const Section &section, int32_t tokens, const Context &context,
                                  uint32_t first_group) {
  const uint32_t chunks = section.chunks(), lane_chunks = section.lane_chunks();
  const uint32_t packed = section.pack == 0 ? chunks : section.pack / cache_op_chunk_elements;
  const uint32_t row_count = uint32_t(tokens) * section.heads;
  const uint32_t row_lanes_log2 = lanes_log2(lane_chunks, package::step_most_lanes);
  const Divisor32 by_heads(section.heads), by_pack(packed);
  const auto out_stride = [&](size_t i) { return counted_stride(section.type, section.out.stride[i]); };
  return {.rows = address_of(section.rows.data),
          .tail = address_of(section.tail.data),
          .norm = address_of(section.norm),
          .out = address_of(section.out.data),
          .scale = address_of(section.scales.data),
          .zeros = address_of(section.zeros),
          .token_stride = section.rows.stride[1],
          .head_stride = section.rows.stride[2],
          .tail_token_stride = section.tail.stride[1],
          .tail_head_stride = section.tail.stride[2],
          .out_page_stride = out_stride(0),
          .out_row_stride = out_stride(1),
          .out_head_stride = out_stride(2),
          .out_pack_stride = section.out.stride[3],
          .scale_page_stride = section.scales.page_stride,
          .scale_row_stride = section.scales.row_stride,
          .scale_head_stride = section.scales.head_stride,
          .row_count = row_count,
          .heads = section.heads,
          .heads_magic = by_heads.magic,
          .heads_shift = by_heads.shift,
          .chunks = chunks,
          .body_chunks = chunks - section.tail_dim / cache_op_chunk_elements,
          .lane_chunks = lane_chunks,
          .lanes_log2 = row_lanes_log2,
          .rotary_half = section.rotary_half(),
          .first_group = first_group,
          .groups = row_groups(context, row_count, cache_op_threads >> row_lanes_log2, 1),
          .pack_chunks = packed,
          .pack_magic = by_pack.magic,
          .pack_shift = by_pack.shift,
          .scale_source = uint32_t(section.scales.source),
          .row_inverse = 1 / float(section.head_dim - section.tail_dim)};
}

/// Those of a call.
struct Sections {
  Section k;
  std::optional<Section> v = {}, q = {};
};

Sections sections_of(const calls::Append &call) {
  const uint32_t head_dim = uint32_t(call.head_dim_qk), tail_dim = uint32_t(call.tail_dim);
  // A block of ggml, or a group.
  const uint32_t group = call.scale_group != 0           ? uint32_t(call.scale_group)
                         : is_in_blocks(call.cache_type) ? uint32_t(dtype_block(call.cache_type).elements)
                                                         : cache_op_chunk_elements;
  Sections sections = {.k = {.rows = call.k,
                             .out = call.k_cache,
                             .tail = call.k_tail,
                             .heads = uint32_t(call.kv_heads),
                             .head_dim = head_dim,
                             .tail_dim = tail_dim,
                             .pack = uint32_t(call.k_pack),
                             .rotary_dim = uint32_t(call.rotary_dim),
                             .norm = call.k_norm,
                             .scales = scales_of(call.k_scale_kind, call.k_scale, call.k_scales),
                             .zeros = call.k_zeros.data,
                             .type = call.cache_type,
                             .group = group,
                             .rotary_first = uint32_t(call.rotary_first)}};
  if (!(call.flags & calls::v_in_k)) {
    sections.v = {.rows = call.v,
                  .out = call.v_cache,
                  .heads = uint32_t(call.kv_heads),
                  .head_dim = uint32_t(call.head_dim_v),
                  .scales = scales_of(call.v_scale_kind, call.v_scale, call.v_scales),
                  .zeros = call.v_zeros.data,
                  .type = call.cache_type,
                  .group = group};
  }
  if (call.q_heads != 0) {
    const bool is_whole = call.q_tail.data == nullptr;
    sections.q = {.rows = call.q,
                  .out = call.q_out,
                  .tail = is_whole ? from_element(call.q, head_dim - tail_dim) : call.q_tail,
                  .heads = uint32_t(call.q_heads),
                  .head_dim = head_dim,
                  .tail_dim = tail_dim,
                  .rotary_dim = uint32_t(call.rotary_dim),
                  .norm = call.q_norm};
  }
  return sections;
}

void fill_rotation(const calls::Append &call, package::StepKernargs &out) {
  const uint64_t sines_behind = uint64_t(call.rotary_dim / 2) * dtype_bytes(call.rotary_type);
  out.rotary = address_of(call.rotary);
  out.rotary_sin =
      call.rotary_sin != nullptr ? address_of(call.rotary_sin) : address_of(call.rotary) + sines_behind;
  out.positions = address_of(call.positions);
  out.rotary_stride = call.rotary_stride;
  out.rotary_first = uint32_t(call.rotary_first) / cache_op_chunk_elements;
  out.rotary_type = call.rotary_type;
}

void fill_modes(const calls::Append &call, bool regroups, package::StepKernargs &out) {
  out.modes = (call.rotary_style == SLUICE_ROTARY_PAIRS ? uint32_t(package::step_rotary_pairs) : 0) |
              (call.norm_type == SLUICE_F32 ? uint32_t(package::step_norm_is_f32) : 0) |
              (call.scale_group == 64 ? uint32_t(package::step_wide_groups) : 0) |
              (regroups ? uint32_t(package::step_regroups) : 0);
  if (call.v_pack == 0) return;
  out.modes |= package::step_v_columns;
  // One pack: stride[1], which is 1, is between rows.
  const uint32_t pack = call.v_pack == SLUICE_PACK_ALL ? 1 : uint32_t(call.v_pack);
  out.v_pack_log2 = uint32_t(std::countr_zero(pack));
  out.v_pack_mask = pack - 1;
}

void append_step(Context &context, const calls::Append &call, const sluice_launch &launch) {
  const CacheOpKernel &kernel =
      find(context, CacheOperation::append_step, "cache_type", call.source_type, call.cache_type);
  if (has_nothing_to_do(call)) return enqueue_nothing(*context.device().hip, launch);
  const Sections sections = sections_of(call);
  package::StepKernargs out = {};
  uint32_t groups = 0;
  const auto fill = [&](package::StepSection &filled, const std::optional<Section> &section) {
    filled.first_group = groups;
    if (!section) return;
    filled = arguments_of(*section, call.tokens, context, groups);
    groups += filled.groups;
  };
  fill(out.k, sections.k);
  fill(out.v, sections.v);
  fill(out.q, sections.q);
  out.slots = address_of(call.slots);
  out.places = places_of(call, call.starts);
  set_pages(out.places, call.page_size, call.page_count);
  fill_rotation(call, out);
  fill_modes(call, sections.k.regroups(), out);
  out.norm_epsilon = call.norm_epsilon;
  const Range range(context, [&](RangeText &text) {
    text << kernel.name << " t" << call.tokens << " h" << call.q_heads << "/" << call.kv_heads << " d"
         << call.head_dim_qk << "/" << call.head_dim_v << (call.slots != nullptr ? " slots" : " table");
  });
  run(context, kernel, {groups, 1, 1}, out, launch);
}

} // namespace

void append(Context &context, const calls::Append &call, const sluice_launch &launch) {
  if (is_step(call)) return append_step(context, call, launch);
  const CacheOpKernel &kernel =
      find(context, CacheOperation::kv_append, "cache_type", call.source_type, call.cache_type);
  if (has_nothing_to_do(call)) return enqueue_nothing(*context.device().hip, launch);
  const bool has_v = !(call.flags & calls::v_in_k);
  package::AppendKernargs out = {};
  out.k = arguments_of(Side{call.k, call.k_cache, call.k_scale, call.k_scale_kind, call.kv_heads,
                            call.head_dim_qk, call.k_pack});
  if (has_v) {
    out.v = arguments_of(
        Side{call.v, call.v_cache, call.v_scale, call.v_scale_kind, call.kv_heads, call.head_dim_v});
  }
  out.slots = address_of(call.slots);
  out.places = places_of(call, call.starts);
  set_pages(out.places, call.page_size, call.page_count);
  out.rotary = address_of(call.rotary);
  out.positions = address_of(call.positions);
  out.rotary_stride = call.rotary_stride;
  out.tokens = uint32_t(call.tokens);
  out.rotary_dim = uint32_t(call.rotary_dim);
  out.rotary_pairs = call.rotary_style == SLUICE_ROTARY_PAIRS ? 1 : 0;

  const uint32_t chunks = std::max(out.k.chunks, out.v.chunks);
  out.lanes_log2 = lanes_log2(chunks, cache_op_threads);
  const uint32_t lanes = 1u << out.lanes_log2, tokens_per_group = cache_op_threads / lanes;
  Grid grid;
  grid[2] = has_v ? 2 : 1;
  grid[1] = std::min(divide_up(chunks, lanes), max_grid_y);
  grid[0] = row_groups(context, out.tokens, tokens_per_group, grid[1] * grid[2]);
  out.token_step = grid[0] * tokens_per_group;
  out.chunk_step = grid[1] * lanes;
  const Range range(context, [&](RangeText &text) {
    text << kernel.name << " t" << call.tokens << " h" << call.kv_heads << " d" << call.head_dim_qk << "/"
         << call.head_dim_v << (call.slots != nullptr ? " slots" : " table");
  });
  run(context, kernel, grid, out, launch);
}

} // namespace sluice::runtime

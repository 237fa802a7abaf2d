//===- appends.cpp - appends: arguments of the kernels, and their launch --------------------------------===//
#include "runtime/cache_op_launch.h"
#include "runtime/dtype.h"
#include "runtime/ranges.h"
#include "support/checked.h"
#include "support/divisor.h"

namespace sluice::runtime {
namespace {

using package::cache_op_chunk_elements;
using package::cache_op_threads;
using support::divide_up;
using support::Divisor32;
using support::Divisor64;

/// The kernarg table has K and V as k_... and v_..., with the same meaning.
#define SLUICE_FILL_SIDE(side, source, target, factor, factor_kind, head_dim, pack)                          \
  do {                                                                                                       \
    const uint32_t chunks = uint32_t(head_dim) / cache_op_chunk_elements;                                    \
    const uint32_t packed = (pack) == 0 ? chunks : uint32_t(pack) / cache_op_chunk_elements;                 \
    const Divisor32 by_head(chunks), by_pack(packed);                                                        \
    out.side##rows = address_of((source).data);                                                              \
    out.side##cache = address_of((target).data);                                                             \
    out.side##scale = address_of(factor);                                                                    \
    out.side##token_stride = (source).stride[1];                                                             \
    out.side##head_stride = (source).stride[2];                                                              \
    out.side##cache_page_stride = (target).stride[0];                                                        \
    out.side##cache_row_stride = (target).stride[1];                                                         \
    out.side##cache_head_stride = (target).stride[2];                                                        \
    out.side##cache_pack_stride = (target).stride[3];                                                        \
    out.side##chunks = uint32_t(call.kv_heads) * chunks;                                                     \
    out.side##head_chunks = chunks;                                                                          \
    out.side##head_magic = by_head.magic;                                                                    \
    out.side##head_shift = by_head.shift;                                                                    \
    out.side##pack_chunks = packed;                                                                          \
    out.side##pack_magic = by_pack.magic;                                                                    \
    out.side##pack_shift = by_pack.shift;                                                                    \
    out.side##scale_stride = (factor_kind) == SLUICE_SCALE_PER_HEAD ? 1 : 0;                                 \
  } while (false)

/// The arguments that say where rows go.
template <typename Kernargs> void fill_places(const sluice_append &call, Kernargs &out) {
  const Divisor64 by_page{uint64_t(call.page_size)};
  out.slots = address_of(call.slots);
  out.starts = address_of(call.starts);
  out.kv_lengths = address_of(call.kv_lengths);
  out.page_table = address_of(call.page_table);
  out.page_starts = address_of(call.page_starts);
  out.page_table_stride = call.page_table_stride;
  out.page_table_entries = entries_of_sequence(call);
  out.page_count = call.page_count != 0 ? uint64_t(call.page_count) : uint64_t{1} << 63;
  out.page_magic = by_page.magic;
  out.page_shift = by_page.shift;
  out.page_size = uint32_t(call.page_size);
  out.page_source = uint32_t(page_source_of(call.page_table_kind));
  out.page_index_64 = call.flags & SLUICE_PAGE_INDEX_64 ? 1 : 0;
  out.batch = uint32_t(call.batch);
  out.search_steps = uint32_t(std::bit_width(out.batch + 1));
}

/// One section of a step: K, V or Q.
struct Section {
  const sluice_tensor &rows, &out;
  sluice_tensor tail = {};
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
    const uint32_t of_group = group / cache_op_chunk_elements, rotated = regroups() ? 0 : rotary_half();
    const uint32_t others = divide_up(chunks() - 2 * rotated, package::step_chunks_of_lane);
    return rotated + divide_up(others, of_group) * of_group;
  }
};

/// A tensor's elements of 16 bits from `element` on, in each row.
sluice_tensor from_element(sluice_tensor tensor, uint32_t element) {
  tensor.data = static_cast<uint16_t *>(tensor.data) + element;
  return tensor;
}

/// The kernarg table has the sections as k_..., v_... and q_..., with the same meaning. `next` is the first
/// workgroup of the section, and then that of the next one.
#define SLUICE_FILL_SECTION(prefix, section, next)                                                           \
  do {                                                                                                       \
    const uint32_t chunks = (section).chunks();                                                              \
    const uint32_t packed = (section).pack == 0 ? chunks : (section).pack / cache_op_chunk_elements;         \
    const Divisor32 by_heads((section).heads), by_pack(packed);                                              \
    out.prefix##rows = address_of((section).rows.data);                                                      \
    out.prefix##tail = address_of((section).tail.data);                                                      \
    out.prefix##norm = address_of((section).norm);                                                           \
    out.prefix##out = address_of((section).out.data);                                                        \
    out.prefix##scale = address_of((section).scales.data);                                                   \
    out.prefix##zeros = address_of((section).zeros);                                                         \
    out.prefix##scale_page_stride = (section).scales.page_stride;                                            \
    out.prefix##scale_row_stride = (section).scales.row_stride;                                              \
    out.prefix##scale_head_stride = (section).scales.head_stride;                                            \
    out.prefix##scale_source = uint32_t((section).scales.source);                                            \
    out.prefix##token_stride = (section).rows.stride[1];                                                     \
    out.prefix##head_stride = (section).rows.stride[2];                                                      \
    out.prefix##tail_token_stride = (section).tail.stride[1];                                                \
    out.prefix##tail_head_stride = (section).tail.stride[2];                                                 \
    out.prefix##out_page_stride = counted_stride((section).type, (section).out.stride[0]);                   \
    out.prefix##out_row_stride = counted_stride((section).type, (section).out.stride[1]);                    \
    out.prefix##out_head_stride = counted_stride((section).type, (section).out.stride[2]);                   \
    out.prefix##out_pack_stride = (section).out.stride[3];                                                   \
    out.prefix##row_count = uint32_t(call.tokens) * (section).heads;                                         \
    out.prefix##heads = (section).heads;                                                                     \
    out.prefix##heads_magic = by_heads.magic;                                                                \
    out.prefix##heads_shift = by_heads.shift;                                                                \
    out.prefix##chunks = chunks;                                                                             \
    out.prefix##body_chunks = chunks - (section).tail_dim / cache_op_chunk_elements;                         \
    out.prefix##lane_chunks = (section).lane_chunks();                                                       \
    out.prefix##lanes_log2 = lanes_log2((section).lane_chunks(), package::step_most_lanes);                  \
    out.prefix##rotary_half = (section).rotary_half();                                                       \
    out.prefix##pack_chunks = packed;                                                                        \
    out.prefix##pack_magic = by_pack.magic;                                                                  \
    out.prefix##pack_shift = by_pack.shift;                                                                  \
    out.prefix##row_inverse = 1 / float((section).head_dim - (section).tail_dim);                            \
    out.prefix##first_group = next;                                                                          \
    out.prefix##groups =                                                                                     \
        row_groups(context, out.prefix##row_count, cache_op_threads >> out.prefix##lanes_log2, 1);           \
    next += out.prefix##groups;                                                                              \
  } while (false)

void append_step(Context &context, const sluice_append &call, const sluice_launch &launch) {
  const CacheOpKernel &kernel =
      find(context, CacheOperation::append_step, "cache_type", call.source_type, call.cache_type);
  if (has_nothing_to_do(call)) return enqueue_nothing(*context.device().hip, launch);
  package::StepKernargs out = {};
  const uint32_t head_dim = uint32_t(call.head_dim_qk), tail_dim = uint32_t(call.tail_dim);
  // A block of ggml, or a group.
  const uint32_t group = call.scale_group != 0           ? uint32_t(call.scale_group)
                         : is_in_blocks(call.cache_type) ? uint32_t(dtype_block(call.cache_type).elements)
                                                         : cache_op_chunk_elements;
  const Section k = {.rows = call.k,
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
                     .rotary_first = uint32_t(call.rotary_first)};
  uint32_t groups = 0;
  SLUICE_FILL_SECTION(k_, k, groups);
  out.v_first_group = groups;
  if (!(call.flags & SLUICE_V_IN_K)) {
    const Section v = {.rows = call.v,
                       .out = call.v_cache,
                       .heads = uint32_t(call.kv_heads),
                       .head_dim = uint32_t(call.head_dim_v),
                       .scales = scales_of(call.v_scale_kind, call.v_scale, call.v_scales),
                       .zeros = call.v_zeros.data,
                       .type = call.cache_type,
                       .group = group};
    SLUICE_FILL_SECTION(v_, v, groups);
  }
  out.q_first_group = groups;
  if (call.q_heads != 0) {
    const bool is_whole = call.q_tail.data == nullptr;
    const Section q = {.rows = call.q,
                       .out = call.q_out,
                       .tail = is_whole ? from_element(call.q, head_dim - tail_dim) : call.q_tail,
                       .heads = uint32_t(call.q_heads),
                       .head_dim = head_dim,
                       .tail_dim = tail_dim,
                       .rotary_dim = uint32_t(call.rotary_dim),
                       .norm = call.q_norm};
    SLUICE_FILL_SECTION(q_, q, groups);
  }
  fill_places(call, out);
  const uint32_t rotary_type = call.rotary_type == 0 ? uint32_t(SLUICE_F32) : call.rotary_type;
  const uint64_t sines_behind = uint64_t(call.rotary_dim / 2) * dtype_bytes(rotary_type);
  out.rotary = address_of(call.rotary);
  out.rotary_sin =
      call.rotary_sin != nullptr ? address_of(call.rotary_sin) : address_of(call.rotary) + sines_behind;
  out.positions = address_of(call.positions);
  out.rotary_stride = call.rotary_stride;
  out.rotary_first = uint32_t(call.rotary_first) / cache_op_chunk_elements;
  out.rotary_type = rotary_type;
  out.modes = (call.rotary_style == SLUICE_ROTARY_PAIRS ? uint32_t(package::step_rotary_pairs) : 0) |
              (call.norm_type == SLUICE_F32 ? uint32_t(package::step_norm_is_f32) : 0) |
              (call.scale_group == 64 ? uint32_t(package::step_wide_groups) : 0) |
              (k.regroups() ? uint32_t(package::step_regroups) : 0);
  if (call.v_pack != 0) {
    out.modes |= package::step_v_columns;
    // One pack: stride[1], which is 1, is between rows.
    const uint32_t pack = call.v_pack == SLUICE_V_PACK_ALL ? 1 : uint32_t(call.v_pack);
    out.v_pack_log2 = uint32_t(std::countr_zero(pack));
    out.v_pack_mask = pack - 1;
  }
  out.norm_epsilon = call.norm_epsilon;
  const Range range(context, [&](RangeText &text) {
    text << kernel.name << " t" << call.tokens << " h" << call.q_heads << "/" << call.kv_heads << " d"
         << call.head_dim_qk << "/" << call.head_dim_v << (call.slots != nullptr ? " slots" : " table");
  });
  run(context, kernel, {groups, 1, 1}, out, launch);
}
#undef SLUICE_FILL_SECTION

} // namespace

void append(Context &context, const sluice_append &call, const sluice_launch &launch) {
  if (is_step(call)) return append_step(context, call, launch);
  const CacheOpKernel &kernel =
      find(context, CacheOperation::kv_append, "cache_type", call.source_type, call.cache_type);
  if (has_nothing_to_do(call)) return enqueue_nothing(*context.device().hip, launch);
  const bool has_v = !(call.flags & SLUICE_V_IN_K);
  package::AppendKernargs out = {};
  SLUICE_FILL_SIDE(k_, call.k, call.k_cache, call.k_scale, call.k_scale_kind, call.head_dim_qk, call.k_pack);
  if (has_v) SLUICE_FILL_SIDE(v_, call.v, call.v_cache, call.v_scale, call.v_scale_kind, call.head_dim_v, 0);
  fill_places(call, out);
  out.rotary = address_of(call.rotary);
  out.positions = address_of(call.positions);
  out.rotary_stride = call.rotary_stride;
  out.tokens = uint32_t(call.tokens);
  out.rotary_dim = uint32_t(call.rotary_dim);
  out.rotary_pairs = call.rotary_style == SLUICE_ROTARY_PAIRS ? 1 : 0;

  const uint32_t chunks = std::max(out.k_chunks, out.v_chunks);
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
#undef SLUICE_FILL_SIDE

} // namespace sluice::runtime

//===- cache_ops.cpp - cache operations: arguments of the kernels, and their launch ---------------------===//
#include "runtime/cache_ops.h"

#include "package/cache_op_kernargs.h"
#include "runtime/cost.h"
#include "runtime/dtype.h"
#include "runtime/launch.h"
#include "runtime/ranges.h"
#include "support/checked.h"
#include "support/divisor.h"
#include "support/failure.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>
#include <numbers>

namespace sluice::runtime {
namespace {

using package::cache_op_chunk_elements;
using package::cache_op_threads;
using support::divide_up;
using support::Divisor32;
using support::Divisor64;
using support::Failure;
using support::Status;
using support::text;

constexpr uint32_t wave_lanes = 64;
// Enough to fill the machine several times over; each workgroup loops over the remaining rows.
constexpr uint32_t workgroups_per_compute_unit = 16;
constexpr uint32_t max_grid_y = 64;
// A merge has all rows in one grid: HIP limits x to fewer than 2^32 lanes, and y to this many workgroups.
constexpr uint32_t usual_grid_x = 4096, most_grid_y = 65535;

uint64_t address_of(const void *pointer) {
  return reinterpret_cast<uint64_t>(pointer);
}

/// The power of two that holds `chunks`, but at most `most`.
uint32_t lanes_log2(uint32_t chunks, uint32_t most) {
  return uint32_t(std::bit_width(std::min(std::bit_ceil(chunks), most)) - 1);
}

/// Workgroups for `rows`, `rows_per_group` at a time; the grid's other dimensions multiply them by `others`.
uint32_t row_groups(const Context &context, uint32_t rows, uint32_t rows_per_group, uint32_t others) {
  const uint32_t enough = std::max(context.device().compute_units * workgroups_per_compute_unit / others, 1u);
  return std::min(divide_up(rows, rows_per_group), enough);
}

/// The kernel's function, loaded the first time; later calls cost one atomic read.
void *function_of(Context &context, const CacheOpKernel &kernel, const sluice_launch &launch) {
  if (void *function = kernel.function.load(std::memory_order_acquire)) return function;
  if (is_capturing(*context.device().hip, launch.stream, "stream")) {
    throw Failure(
        Status::invalid_argument, "stream",
        text("stream is capturing, but ", kernel.name,
             " is not loaded, and loading is not legal now; call sluice_preload with a NULL problem "
             "before"));
  }
  return context.function(*kernel.packed);
}

void trace(const Context &context, const CacheOpKernel &kernel, const Grid &grid) {
  if (context.trace == nullptr) return;
  sluice_trace_record record = {};
  record.struct_size = sizeof record;
  record.event = SLUICE_TRACE_RUN;
  std::copy(grid.begin(), grid.end(), record.grid);
  record.block[0] = cache_op_threads;
  record.block[1] = record.block[2] = 1;
  record.lds_bytes = kernel.packed->entry.lds_bytes;
  record.waves = cache_op_threads / wave_lanes;
  record.kernel = kernel.name.c_str();
  record.reason = "the only kernel for its types";
  context.trace(&record, context.trace_user);
}

const CacheOpKernel &find(const Context &context, CacheOperation operation, std::string_view field,
                          uint32_t from, uint32_t to) {
  const CacheOpKernel &kernel = context.cache_op_kernels().find(operation, from, to);
  if (kernel.packed == nullptr) {
    throw Failure(Status::unsupported, std::string(field),
                  text(field, " is ", dtype_name(to), ": the kernel pack has no kernel for ",
                       context.device().chip, " from ", dtype_name(from), " to ", dtype_name(to)));
  }
  if (!context.device().hip) {
    throw Failure(Status::no_device, "context",
                  text("context is the target ", context.device().arch, ", which has no device"));
  }
  return kernel;
}

template <typename Kernargs>
void trace_and_enqueue(const Context &context, const CacheOpKernel &kernel, void *function, const Grid &grid,
                       Kernargs &kernargs, void *stream) {
  trace(context, kernel, grid);
  enqueue(*context.device().hip, {function, grid, cache_op_threads, &kernargs, sizeof kernargs}, stream);
}

template <typename Kernargs>
void run(Context &context, const CacheOpKernel &kernel, const Grid &grid, Kernargs &kernargs,
         const sluice_launch &launch) {
  void *const function = function_of(context, kernel, launch);
  wait_for_dependencies(*context.device().hip, launch);
  trace_and_enqueue(context, kernel, function, grid, kernargs, launch.stream);
  signal(*context.device().hip, launch);
}

package::PageSource page_source_of(uint32_t page_table_kind) {
  return page_table_kind == SLUICE_PAGE_TABLE_CSR     ? package::PageSource::csr_table
         : page_table_kind == SLUICE_PAGE_TABLE_BLOCK ? package::PageSource::block_table
                                                      : package::PageSource::slots;
}

/// The entries of a block table that are a sequence's own: a single sequence owns all entries, and all
/// sequences may have the same ones.
template <typename Call> int64_t entries_of_sequence(const Call &call) {
  return call.batch > 1 && call.page_table_stride != 0 ? call.page_table_stride
                                                       : std::numeric_limits<int64_t>::max();
}

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

/// Where a step finds the scales of a cache, or stores them.
struct Scales {
  const void *data = nullptr;
  int64_t page_stride = 0, row_stride = 0, head_stride = 0;
  package::ScaleSource source = package::ScaleSource::head;
};

Scales scales_of(uint32_t kind, const float *given, const sluice_tensor &tensor) {
  switch (kind) {
  case SLUICE_SCALE_PER_TENSOR:
    return {.data = given};
  case SLUICE_SCALE_PER_HEAD:
    return {.data = given, .head_stride = 1};
  case SLUICE_SCALE_PER_PAGE:
    return {tensor.data, tensor.stride[0], 0, tensor.stride[2], package::ScaleSource::page};
  case SLUICE_SCALE_PER_TOKEN:
  case SLUICE_SCALE_PER_GROUP:
    return {tensor.data, tensor.stride[0], tensor.stride[1], tensor.stride[2],
            package::ScaleSource::computed};
  default:
    return {};
  }
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

  uint32_t chunks() const { return head_dim / cache_op_chunk_elements; }
  uint32_t rotary_half() const { return rotary_dim / 2 / cache_op_chunk_elements; }
  /// Lanes with a chunk: each rotated pair has one, and two of the other chunks have one. Chunks of a group
  /// are in neighbouring lanes.
  uint32_t lane_chunks() const {
    const uint32_t of_group = group / cache_op_chunk_elements;
    const uint32_t others = divide_up(chunks() - 2 * rotary_half(), package::step_chunks_of_lane);
    return rotary_half() + divide_up(others, of_group) * of_group;
  }
  /// A stride of `out` as the kernel counts it: blocks in bytes.
  int64_t out_stride(size_t i) const {
    const Block block = dtype_block(type);
    return is_in_blocks(type) ? out.stride[i] / block.elements * block.bytes : out.stride[i];
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
    out.prefix##out_page_stride = (section).out_stride(0);                                                   \
    out.prefix##out_row_stride = (section).out_stride(1);                                                    \
    out.prefix##out_head_stride = (section).out_stride(2);                                                   \
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
                     .group = group};
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
              (call.scale_group == 64 ? uint32_t(package::step_wide_groups) : 0);
  out.norm_epsilon = call.norm_epsilon;
  const Range range(context, [&](RangeText &text) {
    text << kernel.name << " t" << call.tokens << " h" << call.q_heads << "/" << call.kv_heads << " d"
         << call.head_dim_qk << "/" << call.head_dim_v << (call.slots != nullptr ? " slots" : " table");
  });
  run(context, kernel, {groups, 1, 1}, out, launch);
}
#undef SLUICE_FILL_SECTION

struct MergeExtents {
  uint32_t parts, batch, tokens, most_tokens, max_tokens, heads, head_dim;
};

/// K or V of a copy: rows of pages, in units of the kernel's elements.
struct CopySide {
  sluice_tensor source, target;
  int64_t dim, source_pack, target_pack; // a pack of 0 is a whole row
  const float *scale;
  uint32_t scale_kind;
};

#define SLUICE_FILL_COPY_SIDE(side, of)                                                                      \
  do {                                                                                                       \
    const auto chunks_of = [&](int64_t pack) {                                                               \
      return uint32_t((pack == 0 ? (of).dim : pack) / cache_op_chunk_elements);                              \
    };                                                                                                       \
    const uint32_t head = chunks_of(0), source_pack = chunks_of((of).source_pack),                           \
                   target_pack = chunks_of((of).target_pack);                                                \
    const Divisor32 by_head(head), by_source_pack(source_pack), by_target_pack(target_pack);                 \
    out.side##source = address_of((of).source.data);                                                         \
    out.side##target = address_of((of).target.data);                                                         \
    out.side##scale = address_of((of).scale);                                                                \
    out.side##source_page_stride = (of).source.stride[0];                                                    \
    out.side##source_row_stride = (of).source.stride[1];                                                     \
    out.side##source_head_stride = (of).source.stride[2];                                                    \
    out.side##source_pack_stride = (of).source.stride[3];                                                    \
    out.side##target_page_stride = (of).target.stride[0];                                                    \
    out.side##target_row_stride = (of).target.stride[1];                                                     \
    out.side##target_head_stride = (of).target.stride[2];                                                    \
    out.side##target_pack_stride = (of).target.stride[3];                                                    \
    out.side##chunks = uint32_t(heads) * head;                                                               \
    out.side##head_chunks = head;                                                                            \
    out.side##head_magic = by_head.magic;                                                                    \
    out.side##head_shift = by_head.shift;                                                                    \
    out.side##source_pack_chunks = source_pack;                                                              \
    out.side##source_pack_magic = by_source_pack.magic;                                                      \
    out.side##source_pack_shift = by_source_pack.shift;                                                      \
    out.side##target_pack_chunks = target_pack;                                                              \
    out.side##target_pack_magic = by_target_pack.magic;                                                      \
    out.side##target_pack_shift = by_target_pack.shift;                                                      \
    out.side##scale_stride = (of).scale_kind == SLUICE_SCALE_PER_HEAD ? 1 : 0;                               \
  } while (false)

/// The strides of packs count only where there are packs.
template <typename Function> void for_each_length(CopySide &side, const Function &function) {
  for (sluice_tensor *const tensor : {&side.source, &side.target}) {
    const bool is_packed = (tensor == &side.source ? side.source_pack : side.target_pack) != 0;
    for (size_t i = 0; i < (is_packed ? 4u : 3u); ++i)
      function(tensor->stride[i]);
  }
  for (int64_t *const length : {&side.dim, &side.source_pack, &side.target_pack})
    function(*length);
}

/// The kernel for these types. Bits are copied as those of F16 if they are that many, and else as bytes: the
/// sides' lengths then become those of this type.
const CacheOpKernel &copy_kernel(const Context &context, std::string_view field, uint32_t from, uint32_t to,
                                 CopySide &k, CopySide &v) {
  if (from != to) return find(context, CacheOperation::kv_copy, field, from, to);
  const int64_t bytes = dtype_bytes(from);
  bool is_wide = true;
  for (CopySide *const side : {&k, &v})
    for_each_length(*side, [&](int64_t &length) {
      length *= bytes;
      is_wide = is_wide && length % (2 * cache_op_chunk_elements) == 0;
    });
  const uint32_t kernels = is_wide ? uint32_t(SLUICE_F16) : uint32_t(SLUICE_E4M3FNUZ);
  if (is_wide) {
    for (CopySide *const side : {&k, &v})
      for_each_length(*side, [](int64_t &length) { length /= 2; });
  }
  return find(context, CacheOperation::kv_copy, field, kernels, kernels);
}

/// Fills in the sides, the places of pages, and the grid, which this returns.
Grid fill_copy(const Context &context, int32_t heads, const CopySide &k, const CopySide &v, int32_t page_size,
               int64_t page_count, package::CopyKernargs &out) {
  SLUICE_FILL_COPY_SIDE(k_, k);
  if (v.dim != 0) SLUICE_FILL_COPY_SIDE(v_, v);
  const Divisor64 by_page{uint64_t(page_size)};
  out.page_size = uint32_t(page_size);
  out.page_magic = by_page.magic;
  out.page_shift = by_page.shift;
  out.page_count = page_count != 0 ? uint64_t(page_count) : uint64_t{1} << 63;
  const uint32_t chunks = std::max(out.k_chunks, out.v_chunks);
  out.lanes_log2 = lanes_log2(chunks, cache_op_threads);
  const uint32_t lanes = 1u << out.lanes_log2, rows_per_group = cache_op_threads / lanes;
  Grid grid;
  grid[2] = v.dim != 0 ? 2 : 1;
  grid[1] = std::min(divide_up(chunks, lanes), max_grid_y);
  // More rows than fit 32 bits have as many groups as the most that do.
  const auto rows = uint32_t(std::min<uint64_t>(out.rows, UINT32_MAX));
  grid[0] = row_groups(context, rows, rows_per_group, grid[1] * grid[2]);
  out.row_step = uint64_t{grid[0]} * rows_per_group;
  out.chunk_step = grid[1] * lanes;
  return grid;
}
#undef SLUICE_FILL_COPY_SIDE

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

/// Fills in the common fields of a sluice_merge and a PartsMerge, and those that follow from the extents and
/// from the strides and arrays already filled in. Returns the workgroups.
template <typename Call>
Grid fill_merge(const MergeExtents &extents, const Call &call, uint32_t element_bytes,
                package::MergeKernargs &out) {
  const bool is_natural = call.lse_base == SLUICE_LSE_BASE_E;
  out.o = address_of(call.o.data);
  out.lse = address_of(call.lse.data);
  out.sink_logits = address_of(call.sink_logits);
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
  const uint32_t groups = divide_up(out.rows, 1u << division.groups_log2);
  const uint32_t in_x = std::max(std::min(groups, usual_grid_x), divide_up(groups, most_grid_y));
  const Grid grid = {in_x, divide_up(groups, in_x), 1};
  out.row_step = in_x << division.groups_log2;
  return grid;
}

} // namespace

void append(Context &context, const sluice_append &call, const sluice_launch &launch) {
  if (is_step(call)) return append_step(context, call, launch);
  const CacheOpKernel &kernel =
      find(context, CacheOperation::kv_append, "cache_type", call.source_type, call.cache_type);
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

void copy(Context &context, const sluice_page_copy &call, const sluice_launch &launch) {
  CopySide k = {call.k_source,      call.k_target, call.head_dim_qk, call.source_k_pack,
                call.target_k_pack, call.k_scale,  call.k_scale_kind};
  CopySide v = {call.v_source, call.v_target, call.head_dim_v, 0, 0, call.v_scale, call.v_scale_kind};
  const CacheOpKernel &kernel = copy_kernel(context, "target_type", call.source_type, call.target_type, k, v);
  package::CopyKernargs out = {};
  out.pairs = address_of(call.pairs);
  const int64_t pages = call.pairs != nullptr ? call.pair_count : call.page_count;
  out.rows = uint64_t(pages) * uint64_t(call.page_size);
  out.page_source =
      uint32_t(call.pairs != nullptr ? package::PageSource::pairs : package::PageSource::same_page);
  out.page_index_64 = call.flags & SLUICE_PAGE_INDEX_64 ? 1 : 0;
  const Grid grid = fill_copy(context, call.kv_heads, k, v, call.page_size, call.page_count, out);
  const Range range(context, [&](RangeText &text) {
    text << kernel.name << " pages" << pages << " of" << call.page_size << " h" << call.kv_heads << " d"
         << call.head_dim_qk << "/" << call.head_dim_v;
  });
  run(context, kernel, grid, out, launch);
}

void gather(Context &context, const sluice_gather &call, const sluice_launch &launch) {
  CopySide k = {call.k_cache, call.k_out, call.head_dim_qk, call.k_pack, 0, call.k_scale, call.k_scale_kind};
  CopySide v = {call.v_cache, call.v_out, call.head_dim_v, 0, 0, call.v_scale, call.v_scale_kind};
  const CacheOpKernel &kernel = copy_kernel(context, "out_type", call.cache_type, call.out_type, k, v);
  package::CopyKernargs out = {};
  out.starts = address_of(call.out_starts);
  out.kv_lengths = address_of(call.kv_lengths);
  out.first_keys = address_of(call.first_keys);
  out.page_table = address_of(call.page_table);
  out.page_starts = address_of(call.page_starts);
  out.page_table_stride = call.page_table_stride;
  out.page_table_entries = entries_of_sequence(call);
  out.rows = uint64_t(call.tokens);
  out.page_source = uint32_t(page_source_of(call.page_table_kind));
  out.page_index_64 = call.flags & SLUICE_PAGE_INDEX_64 ? 1 : 0;
  out.batch = uint32_t(call.batch);
  out.search_steps = uint32_t(std::bit_width(out.batch + 1));
  const Grid grid = fill_copy(context, call.kv_heads, k, v, call.page_size, call.page_count, out);
  const Range range(context, [&](RangeText &text) {
    text << kernel.name << " gather b" << call.batch << " t" << call.tokens << " h" << call.kv_heads << " d"
         << call.head_dim_qk << "/" << call.head_dim_v;
  });
  run(context, kernel, grid, out, launch);
}

void merge(Context &context, const sluice_merge &call, const sluice_launch &launch) {
  const CacheOpKernel &kernel =
      find(context, CacheOperation::merge_states, "o_type", call.partial_type, call.o_type);
  package::MergeKernargs out = {};
  const uint32_t parts = uint32_t(call.parts), element_bytes = call.partial_type == SLUICE_F32 ? 4 : 2;
  const PartPlaces rows(call.partial, call.partial_list, parts, element_bytes),
      lses(call.partial_lse, call.partial_lse_list, parts, sizeof(float));
  out.partial = rows.first;
  out.partial_lse = lses.first;
  out.partial_part_stride = rows.stride;
  out.partial_token_stride = call.partial.stride[1];
  out.partial_head_stride = call.partial.stride[2];
  out.partial_lse_part_stride = lses.stride;
  out.partial_lse_token_stride = call.partial_lse.stride[1];
  out.partial_lse_head_stride = call.partial_lse.stride[2];
  if (!rows.has_stride || !lses.has_stride) {
    out.mode |= package::merge_listed_parts;
    std::memcpy(&out.partial_distance_0, rows.distances.data(), sizeof rows.distances);
    std::memcpy(&out.partial_lse_distance_0, lses.distances.data(), sizeof lses.distances);
  }
  if (call.flags & SLUICE_MERGE_INFINITY_IS_EMPTY) out.mode |= package::merge_infinity_is_empty;
  const uint32_t tokens = uint32_t(call.sequence_tokens != 0 ? call.sequence_tokens : call.tokens);
  const MergeExtents extents = {.parts = parts,
                                .batch = uint32_t(call.tokens) / tokens,
                                .tokens = tokens,
                                .most_tokens = tokens,
                                .max_tokens = tokens,
                                .heads = uint32_t(call.heads),
                                .head_dim = uint32_t(call.head_dim_v)};
  sluice_merge placed = call;
  if (extents.batch > 1) {
    placed.o.stride[0] = tokens * call.o.stride[1];
    placed.lse.stride[0] = call.lse_sequence_stride;
    // Unsigned: two sequences may be as far from each other as addresses reach.
    out.partial_lse_sequence_skip =
        int64_t(uint64_t(call.partial_lse_sequence_stride) - tokens * uint64_t(call.partial_lse.stride[1]));
    if (out.partial_lse_sequence_skip != 0) out.mode |= package::merge_lse_sequences;
  }
  const Grid grid = fill_merge(extents, placed, element_bytes, out);
  const Range range(context, [&](RangeText &text) {
    text << kernel.name << " n" << call.parts << " t" << call.tokens << " h" << call.heads << " d"
         << call.head_dim_v;
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
  const Grid grid = fill_merge(extents, call, sizeof(float), out);
  void *const function = kernel.function.load(std::memory_order_acquire);
  trace_and_enqueue(context, kernel, function, grid, out, stream);
}

} // namespace sluice::runtime

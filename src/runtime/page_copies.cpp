//===- page_copies.cpp - copies of pages and gathers: arguments of the kernels, and their launches ------===//
//
// A call has a launch for the elements, and one for each kind of array that goes with them: scales per token,
// page or group, and zero points. They do not depend on one another.
//
//===----------------------------------------------------------------------------------------------------===//
#include "calls/cache_ops.h"
#include "calls/problem.h"
#include "runtime/cache_op_launch.h"
#include "runtime/dtype.h"
#include "runtime/ranges.h"
#include "support/checked.h"
#include "support/divisor.h"

#include <array>
#include <cstddef>
#include <numeric>
#include <span>
#include <utility>

namespace sluice::runtime {
namespace {

using package::cache_op_chunk_elements;
using package::cache_op_threads;
using support::divide_up;
using support::Divisor32;

/// K or V of a copy: rows of pages, in units of the kernel's elements.
struct PageCopySide {
  sluice_tensor source = {}, target = {};
  int32_t heads = 0;
  int64_t dim = 0;                          // of a head's row
  int64_t source_pack = 0, target_pack = 0; // a pack of 0 is a whole row
  Scales scales = {};
  const void *zeros = nullptr;
  uint32_t group_chunks_log2 = 0;
  uint32_t chunk = cache_op_chunk_elements; // in a kernel of pieces, their bytes
};

package::PageCopySide arguments_of(const PageCopySide &side) {
  const auto chunks_of = [&](int64_t pack) { return uint32_t((pack == 0 ? side.dim : pack) / side.chunk); };
  const uint32_t head = chunks_of(0), source_pack = chunks_of(side.source_pack),
                 target_pack = chunks_of(side.target_pack);
  const Divisor32 by_head(head), by_source_pack(source_pack), by_target_pack(target_pack);
  return {.source = address_of(side.source.data),
          .target = address_of(side.target.data),
          .scale = address_of(side.scales.data),
          .zeros = address_of(side.zeros),
          .scale_page_stride = side.scales.page_stride,
          .scale_row_stride = side.scales.row_stride,
          .scale_head_stride = side.scales.head_stride,
          .source_page_stride = side.source.stride[0],
          .source_row_stride = side.source.stride[1],
          .source_head_stride = side.source.stride[2],
          .source_pack_stride = side.source.stride[3],
          .target_page_stride = side.target.stride[0],
          .target_row_stride = side.target.stride[1],
          .target_head_stride = side.target.stride[2],
          .target_pack_stride = side.target.stride[3],
          .chunks = uint32_t(side.heads) * head,
          .head_chunks = head,
          .head_magic = by_head.magic,
          .head_shift = by_head.shift,
          .source_pack_chunks = source_pack,
          .source_pack_magic = by_source_pack.magic,
          .source_pack_shift = by_source_pack.shift,
          .target_pack_chunks = target_pack,
          .target_pack_magic = by_target_pack.magic,
          .target_pack_shift = by_target_pack.shift,
          .group_chunks_log2 = side.group_chunks_log2,
          .piece_bytes = side.chunk};
}

/// The strides of packs count only where there are packs.
template <typename Function> void for_each_length(PageCopySide &side, const Function &function) {
  for (sluice_tensor *const tensor : {&side.source, &side.target}) {
    const bool is_packed = (tensor == &side.source ? side.source_pack : side.target_pack) != 0;
    for (size_t i = 0; i < (is_packed ? 4u : 3u); ++i)
      function(tensor->stride[i]);
  }
  for (int64_t *const length : {&side.dim, &side.source_pack, &side.target_pack})
    function(*length);
}

/// One launch: K and V, or only one of them.
struct PageCopyLaunch {
  const CacheOpKernel *kernel = nullptr;
  std::array<PageCopySide, 2> side = {};
  size_t count = 0;
  int32_t page_rows = 0; // of a page

  void add(const PageCopySide &more) { side[count++] = more; }
  std::span<PageCopySide> sides() { return std::span(side).first(count); }
};

/// The launches of a call: of elements, and of K's and V's scales and zero points.
struct PageCopyLaunches {
  std::array<PageCopyLaunch, 5> launch = {};
  size_t count = 0;

  PageCopyLaunch &add(int32_t page_rows) {
    launch[count].page_rows = page_rows;
    return launch[count++];
  }
  std::span<PageCopyLaunch> all() { return std::span(launch).first(count); }
};

constexpr uint32_t bits_16 = SLUICE_F16, bits_8 = SLUICE_E4M3FNUZ, pieces = SLUICE_Q8_0;

/// The kernel that copies bits: as those of F16 if they are that many, and else as bytes. The sides' lengths
/// then become those of this type.
const CacheOpKernel &bits_kernel(const Context &context, std::string_view field, uint32_t type,
                                 std::span<PageCopySide> sides) {
  const int64_t bytes = dtype_bytes(type);
  bool is_wide = true;
  for (PageCopySide &side : sides)
    for_each_length(side, [&](int64_t &length) {
      length *= bytes;
      is_wide = is_wide && length % (2 * cache_op_chunk_elements) == 0;
    });
  const uint32_t kernels = is_wide ? bits_16 : bits_8;
  if (is_wide) {
    for (PageCopySide &side : sides)
      for_each_length(side, [](int64_t &length) { length /= 2; });
  }
  return find(context, CacheOperation::kv_copy, field, kernels, kernels);
}

/// A side whose lengths are in bytes, in the largest pieces that its rows consist of. Heads that follow one
/// another are one row.
PageCopySide in_pieces(PageCopySide side) {
  constexpr int64_t largest = 16;
  if (side.source.stride[2] == side.dim && side.target.stride[2] == side.dim) {
    side.dim *= side.heads;
    side.heads = 1;
  }
  side.chunk = uint32_t(std::gcd(side.dim, largest));
  return side;
}

/// The members of both structs that say what K, or V, is.
struct SideOfCall {
  sluice_tensor source, target;
  int64_t dim;
  int64_t source_pack, target_pack;
  uint32_t scale_kind;
  const float *scale;
  sluice_tensor scales, zeros, target_scales, target_zeros;
};

/// The strides of a tensor of this type as kernels count them.
void to_counted(sluice_tensor &tensor, uint32_t type) {
  for (size_t i = 0; i < 3; ++i)
    tensor.stride[i] = counted_stride(type, tensor.stride[i]);
}

/// The elements of K or V, from type `from` to type `to`.
template <typename Call>
PageCopySide elements_of(const Call &call, uint32_t from, uint32_t to, const SideOfCall &side) {
  PageCopySide made = {.source = side.source,
                       .target = side.target,
                       .heads = call.kv_heads,
                       .dim = side.dim,
                       .source_pack = side.source_pack,
                       .target_pack = side.target_pack};
  if (from != to) {
    made.scales = scales_of(side.scale_kind, side.scale, side.scales);
    made.zeros = side.zeros.data;
    made.group_chunks_log2 = call.scale_group == 64 ? 3 : 2;
    to_counted(made.source, from);
    return made;
  }
  if (!is_in_blocks(from)) return made;
  to_counted(made.source, from);
  to_counted(made.target, from);
  made.dim = counted_stride(from, made.dim);
  return in_pieces(made);
}

/// An array of K or V: its scales or its zero points.
template <typename Call>
PageCopySide array_of(const Call &call, const SideOfCall &side, const sluice_tensor &source,
                      const sluice_tensor &target) {
  const bool has_groups = side.scale_kind == SLUICE_SCALE_PER_GROUP;
  const int64_t bytes = has_groups ? sizeof(uint16_t) : sizeof(float);
  PageCopySide made = {.source = source,
                       .target = target,
                       .heads = call.kv_heads,
                       .dim = bytes * (has_groups ? side.dim / call.scale_group : 1)};
  for (sluice_tensor *const tensor : {&made.source, &made.target})
    for (int64_t &stride : tensor->stride)
      stride *= bytes;
  if (side.scale_kind == SLUICE_SCALE_PER_PAGE) made.source.stride[1] = 0; // one for all rows of a page
  return in_pieces(made);
}

/// The rows of a page that have entries in such an array: a copy moves the scale of a page once, a gather to
/// each of the page's rows.
template <typename Call> int32_t array_rows(const Call &call, const SideOfCall &side) {
  constexpr bool is_page_copy = requires { call.pairs; };
  return is_page_copy && side.scale_kind == SLUICE_SCALE_PER_PAGE ? 1 : call.page_size;
}

/// The launches of a call that copies from type `from` to type `to`.
template <typename Call>
PageCopyLaunches launches_of(const Context &context, std::string_view field, const Call &call, uint32_t from,
                             uint32_t to, std::span<const SideOfCall> sides) {
  PageCopyLaunches launches;
  PageCopyLaunch &elements = launches.add(call.page_size);
  for (const SideOfCall &side : sides)
    elements.add(elements_of(call, from, to, side));
  const auto find_kernel = [&](uint32_t source, uint32_t target) {
    return &find(context, CacheOperation::kv_copy, field, source, target);
  };
  if (from != to) {
    elements.kernel = find_kernel(from, to);
    return launches;
  }
  elements.kernel =
      is_in_blocks(from) ? find_kernel(pieces, pieces) : &bits_kernel(context, field, from, elements.sides());

  for (const auto &[arrays, target_arrays] : {std::pair{&SideOfCall::scales, &SideOfCall::target_scales},
                                              std::pair{&SideOfCall::zeros, &SideOfCall::target_zeros}}) {
    PageCopyLaunch *previous = nullptr; // K's
    for (const SideOfCall &side : sides) {
      if ((side.*arrays).data == nullptr) continue;
      const int32_t page_rows = array_rows(call, side);
      if (previous == nullptr || previous->page_rows != page_rows) previous = &launches.add(page_rows);
      previous->kernel = find_kernel(pieces, pieces);
      previous->add(array_of(call, side, side.*arrays, side.*target_arrays));
    }
  }
  return launches;
}

/// Fills in the sides, the places of pages, and the grid, which this returns.
Grid fill_page_copy(const Context &context, std::span<const PageCopySide> sides, int32_t page_rows,
                    int64_t page_count, package::PageCopyKernargs &out) {
  out.k = arguments_of(sides[0]);
  if (sides.size() > 1) out.v = arguments_of(sides[1]);
  set_pages(out.places, page_rows, page_count);
  const uint32_t chunks = std::max(out.k.chunks, out.v.chunks);
  out.lanes_log2 = lanes_log2(chunks, cache_op_threads);
  const uint32_t lanes = 1u << out.lanes_log2, rows_per_group = cache_op_threads / lanes;
  Grid grid;
  grid[2] = uint32_t(sides.size());
  grid[1] = std::min(divide_up(chunks, lanes), max_grid_y);
  // More rows than fit 32 bits have as many groups as the most that do.
  const auto rows = uint32_t(std::min<uint64_t>(out.rows, UINT32_MAX));
  grid[0] = row_groups(context, rows, rows_per_group, grid[1] * grid[2]);
  out.row_step = uint64_t{grid[0]} * rows_per_group;
  out.chunk_step = grid[1] * lanes;
  return grid;
}

/// Enqueues the launches. `rows_of` says how many rows there are, given those of a page.
template <typename RowsOf>
void run(Context &context, int64_t page_count, std::span<PageCopyLaunch> launches,
         const package::PageCopyKernargs &places, const RowsOf &rows_of, const sluice_launch &launch) {
  for (const PageCopyLaunch &one : launches)
    function_of(context, *one.kernel, launch);
  wait_for_dependencies(*context.device().hip, launch);
  for (PageCopyLaunch &one : launches) {
    package::PageCopyKernargs out = places;
    out.rows = rows_of(one.page_rows);
    const Grid grid = fill_page_copy(context, one.sides(), one.page_rows, page_count, out);
    trace_and_enqueue(context, *one.kernel, function_of(context, *one.kernel, launch), grid, out,
                      launch.stream);
  }
  signal(*context.device().hip, launch);
}

} // namespace

void copy_pages(Context &context, const calls::PageCopy &call, const sluice_launch &launch) {
  const SideOfCall sides[] = {{call.k_source, call.k_target, call.head_dim_qk, call.source_k_pack,
                               call.target_k_pack, call.k_scale_kind, call.k_scale, call.k_scales,
                               call.k_zeros, call.k_target_scales, call.k_target_zeros},
                              {call.v_source, call.v_target, call.head_dim_v, 0, 0, call.v_scale_kind,
                               call.v_scale, call.v_scales, call.v_zeros, call.v_target_scales,
                               call.v_target_zeros}};
  PageCopyLaunches launches = launches_of(context, "target_type", call, call.source_type, call.target_type,
                                          std::span(sides).first(call.head_dim_v != 0 ? 2 : 1));
  if (has_nothing_to_do(call)) return enqueue_nothing(*context.device().hip, launch);
  package::PageCopyKernargs out = {};
  out.pairs = address_of(call.pairs);
  const int64_t pages = call.pairs != nullptr ? call.pair_count : call.page_count;
  out.places.page_source =
      uint32_t(call.pairs != nullptr ? package::PageSource::pairs : package::PageSource::same_page);
  out.places.page_index_64 = call.flags & calls::page_index_64 ? 1 : 0;
  const Range range(context, [&](RangeText &text) {
    text << launches.launch[0].kernel->name << " pages" << pages << " of" << call.page_size << " h"
         << call.kv_heads << " d" << call.head_dim_qk << "/" << call.head_dim_v;
  });
  run(
      context, call.page_count, launches.all(), out,
      [&](int32_t page_rows) { return uint64_t(pages) * uint64_t(page_rows); }, launch);
}

void gather(Context &context, const calls::Gather &call, const sluice_launch &launch) {
  const SideOfCall sides[] = {
      {call.k_cache, call.k_out, call.head_dim_qk, call.k_pack, 0, call.k_scale_kind, call.k_scale,
       call.k_scales, call.k_zeros, call.k_out_scales, call.k_out_zeros},
      {call.v_cache, call.v_out, call.head_dim_v, 0, 0, call.v_scale_kind, call.v_scale, call.v_scales,
       call.v_zeros, call.v_out_scales, call.v_out_zeros}};
  PageCopyLaunches launches = launches_of(context, "out_type", call, call.cache_type, call.out_type,
                                          std::span(sides).first(call.head_dim_v != 0 ? 2 : 1));
  if (has_nothing_to_do(call)) return enqueue_nothing(*context.device().hip, launch);
  package::PageCopyKernargs out = {};
  out.places = places_of(call, call.out_starts);
  out.first_keys = address_of(call.first_keys);
  const Range range(context, [&](RangeText &text) {
    text << launches.launch[0].kernel->name << " gather b" << call.batch << " t" << call.tokens << " h"
         << call.kv_heads << " d" << call.head_dim_qk << "/" << call.head_dim_v;
  });
  run(context, call.page_count, launches.all(), out, [&](int32_t) { return uint64_t(call.tokens); }, launch);
}

} // namespace sluice::runtime

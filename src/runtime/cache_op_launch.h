//===- cache_op_launch.h - what the launches of all cache operations share ------------------------------===//
#pragma once

#include "calls/problem.h"
#include "package/cache_op_kernargs.h"
#include "runtime/cache_ops.h"
#include "runtime/launch.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>
#include <string_view>

namespace sluice::runtime {

inline constexpr uint32_t max_grid_y = 64;

inline uint64_t address_of(const void *pointer) {
  return reinterpret_cast<uint64_t>(pointer);
}

/// The power of two that holds `chunks`, but at most `most`.
inline uint32_t lanes_log2(uint32_t chunks, uint32_t most) {
  return uint32_t(std::bit_width(std::min(std::bit_ceil(chunks), most)) - 1);
}

/// Workgroups for `rows`, `rows_per_group` at a time; the grid's other dimensions multiply them by `others`.
/// Enough to fill the machine several times over; each workgroup loops over the remaining rows.
uint32_t row_groups(const Context &context, uint32_t rows, uint32_t rows_per_group, uint32_t others);

/// The kernel for these types. Throws support::Failure: unsupported if it does not exist, no_device for a
/// target.
const CacheOpKernel &find(const Context &context, CacheOperation operation, std::string_view field,
                          uint32_t from, uint32_t to);

/// The kernel's function, loaded the first time; later calls cost one atomic read.
void *function_of(Context &context, const CacheOpKernel &kernel, const sluice_launch &launch);

void trace(const Context &context, const CacheOpKernel &kernel, const Grid &grid);

template <typename Kernargs>
void trace_and_enqueue(const Context &context, const CacheOpKernel &kernel, void *function, const Grid &grid,
                       Kernargs &kernargs, void *stream) {
  trace(context, kernel, grid);
  enqueue(*context.device().hip, {function, grid, package::cache_op_threads, &kernargs, sizeof kernargs},
          stream);
}

template <typename Kernargs>
void run(Context &context, const CacheOpKernel &kernel, const Grid &grid, Kernargs &kernargs,
         const sluice_launch &launch) {
  void *const function = function_of(context, kernel, launch);
  wait_for_dependencies(*context.device().hip, launch);
  trace_and_enqueue(context, kernel, function, grid, kernargs, launch.stream);
  signal(*context.device().hip, launch);
}

package::PageSource page_source_of(uint32_t page_table_kind);

/// The entries of a block table that are a sequence's own: a single sequence owns all entries, and all
/// sequences may have the same ones.
template <typename Call> int64_t entries_of_sequence(const Call &call) {
  return call.batch > 1 && call.page_table_stride != 0 ? call.page_table_stride
                                                       : std::numeric_limits<int64_t>::max();
}

/// The sequences, which begin at the given starts, and their page table.
template <typename Call> package::Places places_of(const Call &call, const int32_t *starts) {
  package::Places places = {};
  places.starts = address_of(starts);
  places.kv_lengths = address_of(call.kv_lengths);
  places.page_table = address_of(call.page_table);
  places.page_starts = address_of(call.page_starts);
  places.page_table_stride = call.page_table_stride;
  places.page_table_entries = entries_of_sequence(call);
  places.page_source = uint32_t(page_source_of(call.page_table_kind));
  places.page_index_64 = call.flags & calls::page_index_64 ? 1 : 0;
  places.batch = uint32_t(call.batch);
  places.search_steps = uint32_t(std::bit_width(places.batch + 1));
  return places;
}

/// The size and the number of the cache's pages; a number of 0 is unknown.
void set_pages(package::Places &places, int32_t page_rows, int64_t page_count);

/// Where the scales of a cache are, in elements. `source` is for a step.
struct Scales {
  const void *data = nullptr;
  int64_t page_stride = 0, row_stride = 0, head_stride = 0;
  package::ScaleSource source = package::ScaleSource::head;
};
Scales scales_of(uint32_t kind, const float *given, const sluice_tensor &tensor);

/// A stride of a tensor of this type as kernels count it: blocks in bytes, others in elements.
int64_t counted_stride(uint32_t type, int64_t stride);

} // namespace sluice::runtime

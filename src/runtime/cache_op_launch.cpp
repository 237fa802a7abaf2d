//===- cache_op_launch.cpp - what the launches of all cache operations share ----------------------------===//
#include "runtime/cache_op_launch.h"

#include "runtime/dtype.h"
#include "support/checked.h"
#include "support/divisor.h"
#include "support/failure.h"

#include <algorithm>
#include <utility>

namespace sluice::runtime {

using package::cache_op_threads;
using support::divide_up;
using support::Failure;
using support::Status;
using support::text;

uint32_t row_groups(const Context &context, uint32_t rows, uint32_t rows_per_group, uint32_t others) {
  constexpr uint32_t workgroups_per_compute_unit = 16;
  const uint32_t enough = std::max(context.device().compute_units * workgroups_per_compute_unit / others, 1u);
  return std::min(divide_up(rows, rows_per_group), enough);
}

void *function_of(Context &context, const CacheOpKernel &kernel, const sluice_launch &launch) {
  if (void *function = kernel.function.load(std::memory_order_acquire)) return function;
  if (is_capturing(*context.device().hip, launch.stream, "stream")) {
    throw Failure(Status::invalid_argument, "stream",
                  text(kernel.name,
                       " is not loaded, and no kernel can be loaded while the stream is capturing; call "
                       "sluice_attention_preload with a NULL attention before the capture"));
  }
  return context.function(*kernel.packed);
}

void trace(const Context &context, const CacheOpKernel &kernel, const Grid &grid) {
  if (context.trace == nullptr) return;
  constexpr uint32_t wave_lanes = 64;
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

namespace {

/// Of the types that the pack has a kernel for from this one: the nearest in the list of types, and before
/// all others those with blocks as large. 0: there is none.
uint32_t nearest_type(const CacheOpKernels &kernels, CacheOperation operation, uint32_t from, uint32_t to) {
  const auto is_supported = [&](uint32_t type) {
    const auto has = [&](CacheOperation of) { return kernels.find(of, from, type).packed != nullptr; };
    return has(operation) || (operation == CacheOperation::append_step && has(CacheOperation::kv_append));
  };
  const auto distance = [&](uint32_t type) {
    const bool is_other_block = dtype_block(type).elements != dtype_block(to).elements;
    return std::pair(is_other_block, std::max(type, to) - std::min(type, to));
  };
  uint32_t nearest = 0;
  for (const package::Dtype &dtype : package::dtypes) {
    if (!is_supported(dtype.value)) continue;
    if (nearest == 0 || distance(dtype.value) < distance(nearest)) nearest = dtype.value;
  }
  return nearest;
}

} // namespace

const CacheOpKernel &find(const Context &context, CacheOperation operation, std::string_view field,
                          uint32_t from, uint32_t to) {
  const CacheOpKernel &kernel = context.cache_op_kernels().find(operation, from, to);
  if (kernel.packed == nullptr) {
    const uint32_t nearest = nearest_type(context.cache_op_kernels(), operation, from, to);
    throw Failure(Status::unsupported, std::string(field),
                  text(field, " is ", dtype_name(to), ": the kernel pack has no kernel for ",
                       context.device().chip, " from ", dtype_name(from), " to ", dtype_name(to),
                       nearest != 0 ? text("; nearest supported: ", dtype_name(nearest)) : std::string()));
  }
  if (!context.device().hip) {
    throw Failure(Status::no_device, "context",
                  text("context is the target ", context.device().arch, ", which has no device"));
  }
  return kernel;
}

package::PageSource page_source_of(uint32_t page_table_kind) {
  return page_table_kind == SLUICE_PAGE_TABLE_CSR     ? package::PageSource::csr_table
         : page_table_kind == SLUICE_PAGE_TABLE_BLOCK ? package::PageSource::block_table
                                                      : package::PageSource::slots;
}

void set_pages(package::Places &places, int32_t page_rows, int64_t page_count) {
  const support::Divisor64 by_page{uint64_t(page_rows)};
  places.page_count = page_count != 0 ? uint64_t(page_count) : uint64_t{1} << 63;
  places.page_magic = by_page.magic;
  places.page_shift = by_page.shift;
  places.page_size = uint32_t(page_rows);
}

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

int64_t counted_stride(uint32_t type, int64_t stride) {
  const Block block = dtype_block(type);
  return is_in_blocks(type) ? stride / block.elements * block.bytes : stride;
}

} // namespace sluice::runtime

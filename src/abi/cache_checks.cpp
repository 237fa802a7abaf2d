//===- cache_checks.cpp - what a caller can get wrong in a paged cache ----------------------------------===//
#include "abi/cache_checks.h"

#include "calls/problem.h"
#include "runtime/dtype.h"

#include <algorithm>
#include <bit>
#include <limits>

namespace sluice::abi {

using support::Failure;
using support::Status;
using support::text;

namespace {

constexpr uint32_t problem_flags = ((calls::v_in_k << 1) - 1) | calls::zero_points;
constexpr uint32_t pointer_alignment = 16;

void check_head_dim(std::string_view field, int32_t value) {
  check_at_least(field, value, 1);
  if (value % cache_chunk != 0)
    invalid(field, text(field, " is ", value, "; it must be a multiple of ", cache_chunk));
}

void check_multiples(const Shape &shape, size_t count) {
  for (size_t i = 0; i < count; ++i)
    check_multiple(shape, i, cache_chunk);
}

/// PER_PAGE: a page has one scale for all its rows.
Shape scales_shape(std::string_view name, const sluice_tensor &scales, const ScaleArray &array) {
  const int64_t rows = array.kind == SLUICE_SCALE_PER_PAGE ? 1 : array.rows;
  return {name,
          scales,
          {array.pages, rows, array.heads, array.groups},
          array.kind == SLUICE_SCALE_PER_GROUP ? uint32_t(sizeof(uint16_t)) : uint32_t(sizeof(float))};
}

} // namespace

void check_zero(std::string_view field, int64_t value, std::string_view when) {
  if (value != 0) invalid(field, text(field, " is ", value, "; it must be 0 ", when));
}

void check_array(std::string_view field, const void *pointer, uint32_t alignment) {
  const uint64_t address = reinterpret_cast<uint64_t>(pointer);
  if (address % alignment != 0) {
    invalid(field, text(field, " is ", support::hexadecimal(address), "; it must be aligned to ", alignment,
                        " bytes"));
  }
}

void check_given(std::string_view field, const void *pointer, uint32_t alignment, bool wanted,
                 std::string_view when) {
  if ((pointer != nullptr) != wanted) {
    invalid(field, wanted ? text(field, " is NULL; it is required ", when)
                          : text(field, " is given; it must be NULL except in calls ", when));
  }
  check_array(field, pointer, alignment);
}

void check_cache_op_flags(uint32_t flags, std::string_view operation, uint32_t allowed,
                          std::string_view names) {
  if (flags & ~problem_flags) {
    throw Failure(Status::newer_struct, "flags",
                  text("flags has unknown bits ", support::hexadecimal(flags & ~problem_flags),
                       ": the library is older than the caller's header"));
  }
  if (flags & ~allowed) {
    invalid("flags",
            text("flags is ", support::hexadecimal(flags), "; ", operation, " has ", names, " only"));
  }
}

void check_cache_extents(const CacheExtents &extents) {
  check_at_least("kv_heads", extents.kv_heads, 1);
  check_head_dim("head_dim_qk", extents.head_dim_qk);
  if (extents.has_v) {
    check_head_dim("head_dim_v", extents.head_dim_v);
  } else if (extents.head_dim_v != 0) {
    invalid("head_dim_v", text("head_dim_v is ", extents.head_dim_v, "; it must be 0 with SLUICE_KV_V_IN_K"));
  }
  check_row_size("kv_heads", extents.kv_heads, extents.head_dim_qk);
  check_row_size("kv_heads", extents.kv_heads, extents.head_dim_v);
  check_at_least("page_size", extents.page_size, 1);
}

void check_row_size(std::string_view field, int32_t heads, int32_t head_dim) {
  const int64_t elements = int64_t{heads} * head_dim;
  if (elements <= std::numeric_limits<int32_t>::max()) return;
  throw Failure(Status::unsupported, std::string(field),
                text(field, " is ", heads, ", which makes rows of ", elements,
                     " elements; nearest supported: ", std::numeric_limits<int32_t>::max() / head_dim));
}

void check_pack(std::string_view field, int32_t pack, int32_t head_dim_qk) {
  if (pack < 0 || (pack > 0 && head_dim_qk % pack != 0)) {
    invalid(field, text(field, " is ", pack, "; it must divide head_dim_qk, which is ", head_dim_qk,
                        ", or be 0 for no packs"));
  }
  if (pack % cache_chunk != 0) unsupported_value(field, pack, "multiples of 8");
}

void check_scale(std::string_view kind_field, uint32_t kind, std::string_view field, const float *scale,
                 bool allowed, std::string_view without, ScaleKinds kinds) {
  const bool has_keys = kinds == ScaleKinds::also_of_keys,
             has_groups = kinds == ScaleKinds::groups && allowed;
  check_known(kind_field, kind, SLUICE_SCALE_PER_GROUP, "SLUICE_SCALE_PER_GROUP (5)");
  if (has_groups && kind != SLUICE_SCALE_PER_GROUP) {
    invalid(kind_field, text(kind_field, " is ", kind, "; it must be SLUICE_SCALE_PER_GROUP (5) for u4"));
  }
  if (!has_groups && kind > (has_keys ? uint32_t(SLUICE_SCALE_PER_PAGE) : uint32_t(SLUICE_SCALE_PER_HEAD))) {
    unsupported_value(kind_field, kind, has_keys ? "SLUICE_SCALE_PER_PAGE (4)" : "SLUICE_SCALE_PER_HEAD (2)");
  }
  if (kind != SLUICE_SCALE_NONE && !allowed) {
    invalid(kind_field, text(kind_field, " is ", kind, "; it must be SLUICE_SCALE_NONE (0) ", without));
  }
  check_given(field, scale, sizeof(float), kind == SLUICE_SCALE_PER_TENSOR || kind == SLUICE_SCALE_PER_HEAD,
              "with a scale kind of PER_TENSOR or PER_HEAD");
}

int64_t checked_pages(int64_t page_count) {
  return page_count != 0 ? page_count : 2;
}

void check_block_cache(std::string_view name, const sluice_tensor &cache, const CacheExtents &extents,
                       int32_t head_dim, uint32_t type, int64_t page_count, bool is_output) {
  const Shape shape = {name,
                       cache,
                       {checked_pages(page_count), extents.page_size, extents.kv_heads, head_dim},
                       runtime::dtype_bytes(type)};
  // ggml's blocks begin with an F16 scale.
  check_pointer(shape, type == SLUICE_U4 ? pointer_alignment : sizeof(uint16_t));
  check_stride(shape, 3, 1);
  check_reach(shape, UINT64_MAX);
  for (size_t i = 0; i < 3; ++i)
    check_multiple(shape, i, block_elements);
  if (is_output) check_disjoint(shape);
}

void check_blocks(const CacheType &cache, const CacheExtents &extents) {
  const bool is_u4 = cache.type == SLUICE_U4;
  if (is_u4 ? cache.scale_group != 32 && cache.scale_group != 64 : cache.scale_group != 0) {
    invalid("scale_group", text("scale_group is ", cache.scale_group,
                                is_u4 ? "; it must be 32 or 64" : "; it must be 0 without scales per group"));
  }
  if (cache.flags & calls::zero_points && !is_u4)
    invalid("flags", text("flags has zero points, but ", cache.field, " is not u4"));
  if (!runtime::is_in_blocks(cache.type)) return;
  const int32_t multiple = std::max(cache.scale_group, block_elements);
  const auto check_dim = [&](std::string_view field, int32_t dim) {
    if (dim % multiple != 0) {
      invalid(field, text(field, " is ", dim, "; it must be a multiple of ", multiple, " for ",
                          runtime::dtype_text(cache.type)));
    }
  };
  check_dim("head_dim_qk", extents.head_dim_qk);
  if (extents.has_v) check_dim("head_dim_v", extents.head_dim_v);
}

void check_no_pack(std::string_view field, int32_t pack, uint32_t type) {
  if (pack != 0) {
    invalid(field, text(field, " is ", pack, "; it must be 0 for ", runtime::dtype_text(type)));
  }
}

void check_scale_array(std::string_view name, const sluice_tensor &scales, const ScaleArray &array,
                       bool is_output) {
  if (array.kind < SLUICE_SCALE_PER_TOKEN)
    return check_all_zero(name, scales, "without a scale kind of PER_TOKEN, PER_PAGE or PER_GROUP");
  const Shape shape = scales_shape(name, scales, array);
  check_pointer(shape, shape.element_bytes);
  check_stride(shape, 3, 1);
  check_reach(shape, UINT64_MAX);
  if (is_output) check_disjoint(shape);
}

void check_zeros(std::string_view name, const sluice_tensor &zeros, const sluice_tensor &scales,
                 const ScaleArray &array, bool is_wanted) {
  if (!is_wanted) return check_all_zero(name, zeros, "except of caches with zero points");
  const Shape shape = scales_shape(name, zeros, array);
  check_pointer(shape, shape.element_bytes);
  check_same_strides(shape, scales);
}

void check_cache(std::string_view name, const sluice_tensor &cache, const CacheExtents &extents,
                 int32_t head_dim, const Pack &pack, uint32_t element_bytes, int64_t page_count,
                 bool is_output) {
  const bool has_packs = pack.elements != 0;
  const int32_t run = has_packs ? pack.elements : 1;
  const Shape shape = {name,
                       cache,
                       {checked_pages(page_count), extents.page_size, extents.kv_heads, head_dim / run},
                       element_bytes,
                       run};
  check_pointer(shape, pointer_alignment);
  if (!has_packs) check_stride(shape, 3, 1);
  check_reach(shape, UINT64_MAX);
  for (size_t i = 0; i < (has_packs ? 4 : 3); ++i)
    check_multiple(shape, i, has_packs ? pack.elements : cache_chunk, has_packs ? pack.field : "");
  if (is_output) check_disjoint(shape);
}

void check_v_pack_of_pages(int32_t pack, int32_t page_size) {
  const bool divides = pack > 0 && std::has_single_bit(uint32_t(pack)) && page_size % pack == 0;
  if (pack != SLUICE_PACK_ALL && (pack < v_unit || !divides)) {
    invalid("v_pack", text("v_pack is ", pack, "; it must be a power of two from 8 on that divides ",
                           "page_size, which is ", page_size, ", SLUICE_PACK_ALL (2^30), or 0 for rows"));
  }
  if (page_size % v_unit != 0) {
    invalid("page_size", text("page_size is ", page_size, "; with v_pack it must be a multiple of ", v_unit));
  }
}

void check_columns(std::string_view name, const sluice_tensor &cache, const CacheExtents &extents,
                   int32_t v_pack, uint32_t element_bytes, int64_t page_count) {
  check_pointer({name, cache, {1, 1, 1, 1}, element_bytes}, pointer_alignment);
  const int32_t pack = v_pack == SLUICE_PACK_ALL ? extents.page_size : v_pack;
  const sluice_tensor packs = column_packs(name, cache, v_pack, extents.page_size);
  const Shape shape = {
      name,
      packs,
      {checked_pages(page_count), extents.page_size / pack, extents.kv_heads, extents.head_dim_v},
      element_bytes,
      pack};
  check_reach(shape, UINT64_MAX);
  check_multiples(shape, 4);
  check_disjoint(shape);
}

void check_cache_rows(const Shape &rows) {
  check_pointer(rows, pointer_alignment);
  check_stride(rows, 3, 1);
  check_reach(rows, UINT64_MAX);
  check_multiples(rows, 3);
}

bool is_given(const sluice_tensor &tensor) {
  bool given = tensor.data != nullptr;
  for (const int64_t stride : tensor.stride)
    given |= stride != 0;
  return given;
}

void check_all_zero(std::string_view name, const sluice_tensor &tensor, std::string_view when) {
  if (is_given(tensor)) invalid(name, text(name, " is given; it must be all zero ", when));
}

} // namespace sluice::abi

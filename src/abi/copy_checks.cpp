//===- copy_checks.cpp - what a caller can get wrong in a copy of pages or a gather ---------------------===//
#include "abi/cache_checks.h"
#include "abi/cache_op_checks.h"
#include "runtime/dtype.h"

#include <limits>

namespace sluice::abi {
namespace {

using runtime::dtype_bytes;
using runtime::dtype_text;
using support::text;

constexpr uint32_t copy_flags = SLUICE_PAGE_INDEX_64 | SLUICE_V_IN_K;
constexpr std::string_view flag_names = "SLUICE_PAGE_INDEX_64 and SLUICE_V_IN_K";
constexpr int64_t most_pages = std::numeric_limits<int32_t>::max();

void check_type(std::string_view field, uint32_t type) {
  if (type == 0) invalid(std::string(field), text(field, " is missing; it must be a sluice_dtype"));
  if (type > SLUICE_I8) unsupported_value(field, dtype_text(type), "i8");
}

bool converts(uint32_t from, uint32_t to) {
  const auto is_half = [](uint32_t type) { return type == SLUICE_F16 || type == SLUICE_BF16; };
  return (is_half(from) && to == SLUICE_E4M3FNUZ) || (from == SLUICE_E4M3FNUZ && is_half(to));
}

void check_types(std::string_view from_field, uint32_t from, std::string_view to_field, uint32_t to) {
  check_type(from_field, from);
  check_type(to_field, to);
  if (from != to && !converts(from, to))
    unsupported_value(to_field, text(dtype_text(to), " and ", from_field, " ", dtype_text(from)),
                      dtype_text(from));
}

template <typename Call> CacheExtents extents_of(const Call &call) {
  return {call.kv_heads, call.head_dim_qk, call.head_dim_v, call.page_size, !(call.flags & SLUICE_V_IN_K)};
}

template <typename Call> void check_scales(const Call &call, bool is_converted) {
  constexpr std::string_view without = "between equal types and without V";
  check_scale("k_scale_kind", call.k_scale_kind, "k_scale", call.k_scale, is_converted, without);
  check_scale("v_scale_kind", call.v_scale_kind, "v_scale", call.v_scale,
              is_converted && !(call.flags & SLUICE_V_IN_K), without);
}

void check_count(std::string_view field, int64_t value, int64_t least) {
  if (value < least) invalid(std::string(field), text(field, " is ", value, "; it must be at least ", least));
}

void check_most(std::string_view field, int64_t value) {
  if (value > most_pages) unsupported_value(field, value, std::to_string(most_pages));
}

void check_pairs(const sluice_page_copy &copy) {
  const bool has_pairs = copy.pairs != nullptr, is_wide = copy.flags & SLUICE_PAGE_INDEX_64;
  if (is_wide && !has_pairs)
    invalid("flags", "flags has SLUICE_PAGE_INDEX_64, but pairs is NULL: every page goes to itself");
  check_array("pairs", copy.pairs, is_wide ? sizeof(int64_t) : sizeof(int32_t));
  if (has_pairs) {
    check_count("pair_count", copy.pair_count, 1);
    check_most("pair_count", copy.pair_count);
    check_count("page_count", copy.page_count, 0);
  } else {
    check_zero("pair_count", copy.pair_count, "without pairs");
    check_count("page_count", copy.page_count, 1);
    check_most("page_count", copy.page_count);
  }
}

void check_table(const sluice_gather &gather) {
  const uint32_t kind = gather.page_table_kind;
  if (kind > SLUICE_PAGE_TABLE_CSR) unsupported_value("page_table_kind", kind, "SLUICE_PAGE_TABLE_CSR (2)");
  if (kind == SLUICE_PAGE_TABLE_NONE)
    invalid("page_table_kind", "page_table_kind is 0; it must be SLUICE_PAGE_TABLE_BLOCK (1) or "
                               "SLUICE_PAGE_TABLE_CSR (2)");
  const auto required = [](std::string_view field, const void *array, uint32_t alignment) {
    check_given(field, array, alignment, true, "in a gather");
  };
  required("out_starts", gather.out_starts, sizeof(int32_t));
  required("kv_lengths", gather.kv_lengths, sizeof(int32_t));
  check_array("first_keys", gather.first_keys, sizeof(int32_t));
  required("page_table", gather.page_table,
           gather.flags & SLUICE_PAGE_INDEX_64 ? sizeof(int64_t) : sizeof(int32_t));
  check_given("page_starts", gather.page_starts, sizeof(int32_t), kind == SLUICE_PAGE_TABLE_CSR,
              "with SLUICE_PAGE_TABLE_CSR");
  check_count("page_table_stride", gather.page_table_stride, 0);
  if (kind == SLUICE_PAGE_TABLE_CSR)
    check_zero("page_table_stride", gather.page_table_stride, "without SLUICE_PAGE_TABLE_BLOCK");
  check_count("page_count", gather.page_count, 0);
}

} // namespace

void check_copy(const sluice_page_copy &copy) {
  check_cache_op_flags(copy.flags, "a copy of pages", copy_flags, flag_names);
  check_types("source_type", copy.source_type, "target_type", copy.target_type);
  const CacheExtents extents = extents_of(copy);
  check_cache_extents(extents);
  check_pack("source_k_pack", copy.source_k_pack, copy.head_dim_qk);
  check_pack("target_k_pack", copy.target_k_pack, copy.head_dim_qk);
  check_scales(copy, copy.source_type != copy.target_type);
  check_pairs(copy);
  const auto check = [&](std::string_view name, const sluice_tensor &cache, int32_t dim, const Pack &pack,
                         bool is_target) {
    check_cache(name, cache, extents, dim, pack, dtype_bytes(is_target ? copy.target_type : copy.source_type),
                copy.page_count, is_target);
  };
  check("k_source", copy.k_source, copy.head_dim_qk, {"source_k_pack", copy.source_k_pack}, false);
  check("k_target", copy.k_target, copy.head_dim_qk, {"target_k_pack", copy.target_k_pack}, true);
  if (extents.has_v) {
    check("v_source", copy.v_source, copy.head_dim_v, {}, false);
    check("v_target", copy.v_target, copy.head_dim_v, {}, true);
  } else {
    check_all_zero("v_source", copy.v_source, "with SLUICE_V_IN_K");
    check_all_zero("v_target", copy.v_target, "with SLUICE_V_IN_K");
  }
}

void check_gather(const sluice_gather &gather) {
  check_cache_op_flags(gather.flags, "a gather", copy_flags, flag_names);
  check_types("cache_type", gather.cache_type, "out_type", gather.out_type);
  const CacheExtents extents = extents_of(gather);
  check_cache_extents(extents);
  check_positive("batch", gather.batch);
  check_positive("tokens", gather.tokens);
  check_pack("k_pack", gather.k_pack, gather.head_dim_qk);
  check_scales(gather, gather.cache_type != gather.out_type);
  check_table(gather);
  const uint32_t cache_bytes = dtype_bytes(gather.cache_type), out_bytes = dtype_bytes(gather.out_type);
  const auto check_out = [&](std::string_view name, const sluice_tensor &out, int32_t dim) {
    const Shape shape = {name, out, {1, gather.tokens, gather.kv_heads, dim}, out_bytes};
    check_cache_rows(shape);
    check_disjoint(shape);
  };
  check_cache("k_cache", gather.k_cache, extents, gather.head_dim_qk, {"k_pack", gather.k_pack}, cache_bytes,
              gather.page_count, false);
  check_out("k_out", gather.k_out, gather.head_dim_qk);
  if (extents.has_v) {
    check_cache("v_cache", gather.v_cache, extents, gather.head_dim_v, {}, cache_bytes, gather.page_count,
                false);
    check_out("v_out", gather.v_out, gather.head_dim_v);
  } else {
    check_all_zero("v_cache", gather.v_cache, "with SLUICE_V_IN_K");
    check_all_zero("v_out", gather.v_out, "with SLUICE_V_IN_K");
  }
}

} // namespace sluice::abi

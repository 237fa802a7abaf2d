//===- page_copy_checks.cpp - what a caller can get wrong in a copy of pages or a gather ----------------===//
#include "abi/cache_checks.h"
#include "abi/cache_op_checks.h"
#include "calls/cache_ops.h"
#include "calls/problem.h"
#include "runtime/cache_ops.h"
#include "runtime/dtype.h"

#include <limits>

namespace sluice::abi {
namespace {

using runtime::dtype_bytes;
using runtime::dtype_text;
using support::text;

constexpr uint32_t page_copy_flags = calls::page_index_64 | calls::v_in_k | calls::zero_points;
constexpr std::string_view flag_names = "SLUICE_KV_PAGE_INDEX_64, SLUICE_KV_V_IN_K and zero points";
constexpr int64_t most_pages = std::numeric_limits<int32_t>::max();

bool is_half(uint32_t type) {
  return type == SLUICE_F16 || type == SLUICE_BF16;
}
/// Types of a byte that may have scales: for kernels only those of appends, bits also of other flavours.
bool is_byte(uint32_t type) {
  return !runtime::is_in_blocks(type) && dtype_bytes(type) == 1;
}
bool is_e4m3(uint32_t type) {
  return type == SLUICE_E4M3FNUZ || type == SLUICE_E4M3FN;
}
bool converts(uint32_t from, uint32_t to) {
  const bool is_stored = is_byte(from) || runtime::is_in_blocks(from);
  return (is_half(from) && is_e4m3(to)) || (is_stored && is_half(to));
}

void check_types(std::string_view from_field, uint32_t from, std::string_view to_field, uint32_t to) {
  check_dtype(from_field, from);
  check_dtype(to_field, to);
  if (from != to && !converts(from, to))
    unsupported_value(to_field, text(dtype_text(to), " and ", from_field, " ", dtype_text(from)),
                      dtype_text(from));
}

template <typename Call> CacheExtents extents_of(const Call &call) {
  return {call.kv_heads, call.head_dim_qk, call.head_dim_v, call.page_size, !(call.flags & calls::v_in_k)};
}

/// Types of a call, and where its elements go: pages or rows of an output.
struct Types {
  uint32_t from, to;
  bool is_same() const { return from == to; }
};

template <typename Call> void check_scale_kinds(const Call &call, const Types &types) {
  constexpr std::string_view without = "between equal types and without V";
  const bool has_v = !(call.flags & calls::v_in_k), is_u4 = types.from == SLUICE_U4;
  const bool scales_keys = is_byte(types.from) && (types.is_same() || is_half(types.to));
  const ScaleKinds kinds = is_u4         ? ScaleKinds::groups
                           : scales_keys ? ScaleKinds::also_of_keys
                                         : ScaleKinds::few;
  // ggml's blocks have their scales.
  const bool is_scaled = is_u4 || scales_keys || is_e4m3(types.to);
  const auto check = [&](std::string_view kind_field, uint32_t kind, std::string_view field,
                         const float *scale, bool exists) {
    if (types.is_same() && (kind == SLUICE_SCALE_PER_TENSOR || kind == SLUICE_SCALE_PER_HEAD)) {
      invalid(kind_field, text(kind_field, " is ", kind, "; it must be SLUICE_SCALE_NONE (0) ", without));
    }
    check_scale(kind_field, kind, field, scale, is_scaled && exists, without, kinds);
  };
  // The target has the scales of what becomes FP8.
  const bool to_target = !types.is_same() && is_e4m3(types.to);
  check(to_target ? "k_target_scale_kind" : "k_scale_kind", call.k_scale_kind,
        to_target ? "k_target_scale" : "k_scale", call.k_scale, true);
  check(to_target ? "v_target_scale_kind" : "v_scale_kind", call.v_scale_kind,
        to_target ? "v_target_scale" : "v_scale", call.v_scale, has_v);
}

/// Arrays of scales and zero points: those of the source, and the target's between equal types.
struct SideArrays {
  std::string_view side; // "k" or "v"
  uint32_t kind;
  int32_t head_dim;
  const sluice_tensor &scales, &zeros, &target_scales, &target_zeros;
};
/// `target`: what the target's arrays are called between the side and "scales", and their pages and rows.
struct TargetArrays {
  std::string_view name;
  int64_t pages;
  int32_t rows;
  bool is_pages;
};

template <typename Call>
void check_arrays(const Call &call, const Types &types, const TargetArrays &target, const SideArrays &side) {
  const bool has_zeros = call.flags & calls::zero_points && side.head_dim != 0;
  const int32_t groups = side.kind == SLUICE_SCALE_PER_GROUP ? side.head_dim / call.scale_group : 1;
  const std::string scales = text(side.side, "_scales"), zeros = text(side.side, "_zeros"),
                    target_scales = text(side.side, "_", target.name, "_scales"),
                    target_zeros = text(side.side, "_", target.name, "_zeros");
  const ScaleArray source = {side.kind, checked_pages(call.page_count), call.page_size, call.kv_heads,
                             groups};
  check_scale_array(scales, side.scales, source, false);
  check_zeros(zeros, side.zeros, side.scales, source, has_zeros);
  if (!types.is_same()) {
    check_all_zero(target_scales, side.target_scales, "between types that differ");
    check_all_zero(target_zeros, side.target_zeros, "between types that differ");
    return;
  }
  // The scale of a page becomes that of each of its rows in a gather.
  const bool is_spread = side.kind == SLUICE_SCALE_PER_PAGE && !target.is_pages;
  const uint32_t kind = is_spread ? uint32_t(SLUICE_SCALE_PER_TOKEN) : side.kind;
  const ScaleArray copied = {kind, target.pages, target.rows, call.kv_heads, groups};
  check_scale_array(target_scales, side.target_scales, copied, true);
  check_zeros(target_zeros, side.target_zeros, side.target_scales, copied, has_zeros);
}

void check_most(std::string_view field, int64_t value) {
  if (value > most_pages) unsupported_value(field, value, std::to_string(most_pages));
}

/// Whether a copy has pairs, and how many of them or of pages.
void check_pairs(const calls::PageCopy &copy) {
  const bool has_pairs = copy.pairs != nullptr, is_wide = copy.flags & calls::page_index_64;
  if (is_wide && !has_pairs)
    invalid("pairs_64", "pairs_64 is 1, but pairs is NULL: every page goes to itself");
  check_array("pairs", copy.pairs, is_wide ? sizeof(int64_t) : sizeof(int32_t));
  if (has_pairs) {
    check_at_least("pair_count", copy.pair_count, 0);
    check_most("pair_count", copy.pair_count);
    check_at_least("page_count", copy.page_count, 0);
  } else {
    check_zero("pair_count", copy.pair_count, "without pairs");
    check_at_least("page_count", copy.page_count, 1);
    check_most("page_count", copy.page_count);
  }
}

void check_table(const calls::Gather &gather) {
  const uint32_t kind = gather.page_table_kind;
  check_known("page_table_kind", kind, SLUICE_PAGE_TABLE_CSR, "SLUICE_PAGE_TABLE_CSR (2)");
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
           gather.flags & calls::page_index_64 ? sizeof(int64_t) : sizeof(int32_t));
  check_given("page_starts", gather.page_starts, sizeof(int32_t), kind == SLUICE_PAGE_TABLE_CSR,
              "with SLUICE_PAGE_TABLE_CSR");
  check_at_least("page_table_stride", gather.page_table_stride, 0);
  if (kind == SLUICE_PAGE_TABLE_CSR)
    check_zero("page_table_stride", gather.page_table_stride, "without SLUICE_PAGE_TABLE_BLOCK");
  check_at_least("page_count", gather.page_count, 0);
}

/// A cache whose pages are read, or written.
struct PagesOfType {
  uint32_t type;
  int64_t page_count;
  bool is_written;
};
void check_pages(std::string_view name, const sluice_tensor &cache, const CacheExtents &extents, int32_t dim,
                 const Pack &pack, const PagesOfType &pages) {
  if (runtime::is_in_blocks(pages.type))
    return check_block_cache(name, cache, extents, dim, pages.type, pages.page_count, pages.is_written);
  check_cache(name, cache, extents, dim, pack, dtype_bytes(pages.type), pages.page_count, pages.is_written);
}

} // namespace

void check_page_copy(const calls::PageCopy &copy) {
  check_cache_op_flags(copy.flags, "a copy of pages", page_copy_flags, flag_names);
  check_types("source_type", copy.source_type, "target_type", copy.target_type);
  const Types types = {copy.source_type, copy.target_type};
  const CacheExtents extents = extents_of(copy);
  check_cache_extents(extents);
  check_pack("source_k_pack", copy.source_k_pack, copy.head_dim_qk);
  check_pack("target_k_pack", copy.target_k_pack, copy.head_dim_qk);
  check_scale_kinds(copy, types);
  check_blocks({"source_type", types.from, copy.scale_group, copy.flags}, extents);
  if (runtime::is_in_blocks(types.from)) {
    check_no_pack("source_k_pack", copy.source_k_pack, types.from);
    if (types.is_same()) check_no_pack("target_k_pack", copy.target_k_pack, types.to);
  }
  check_pairs(copy);
  if (runtime::has_nothing_to_do(copy)) return; // nothing else is used
  const PagesOfType source = {types.from, copy.page_count, false},
                    written = {types.to, copy.page_count, true};
  check_pages("k_source", copy.k_source, extents, copy.head_dim_qk, {"source_k_pack", copy.source_k_pack},
              source);
  check_pages("k_target", copy.k_target, extents, copy.head_dim_qk, {"target_k_pack", copy.target_k_pack},
              written);
  if (extents.has_v) {
    check_pages("v_source", copy.v_source, extents, copy.head_dim_v, {}, source);
    check_pages("v_target", copy.v_target, extents, copy.head_dim_v, {}, written);
  } else {
    check_all_zero("v_source", copy.v_source, "with SLUICE_KV_V_IN_K");
    check_all_zero("v_target", copy.v_target, "with SLUICE_KV_V_IN_K");
  }
  const TargetArrays target = {"target", checked_pages(copy.page_count), copy.page_size, true};
  check_arrays(copy, types, target,
               {"k", copy.k_scale_kind, copy.head_dim_qk, copy.k_scales, copy.k_zeros, copy.k_target_scales,
                copy.k_target_zeros});
  check_arrays(copy, types, target,
               {"v", copy.v_scale_kind, copy.head_dim_v, copy.v_scales, copy.v_zeros, copy.v_target_scales,
                copy.v_target_zeros});
}

void check_gather(const calls::Gather &gather) {
  check_cache_op_flags(gather.flags, "a gather", page_copy_flags, flag_names);
  check_types("cache_type", gather.cache_type, "out_type", gather.out_type);
  const Types types = {gather.cache_type, gather.out_type};
  const CacheExtents extents = extents_of(gather);
  check_cache_extents(extents);
  check_not_negative("batch", gather.batch);
  check_not_negative("tokens", gather.tokens);
  check_pack("k_pack", gather.k_pack, gather.head_dim_qk);
  check_scale_kinds(gather, types);
  check_blocks({"cache_type", types.from, gather.scale_group, gather.flags}, extents);
  if (runtime::is_in_blocks(types.from)) check_no_pack("k_pack", gather.k_pack, types.from);
  if (runtime::has_nothing_to_do(gather)) return; // nothing else is used
  check_table(gather);
  const PagesOfType read = {types.from, gather.page_count, false};
  const auto check_out = [&](std::string_view name, const sluice_tensor &out, int32_t dim) {
    const Shape shape = {name, out, {1, gather.tokens, gather.kv_heads, dim}, dtype_bytes(types.to)};
    if (runtime::is_in_blocks(types.to)) {
      const CacheExtents rows = {gather.kv_heads, gather.head_dim_qk, gather.head_dim_v, gather.tokens,
                                 extents.has_v};
      return check_block_cache(name, out, rows, dim, types.to, 1, true);
    }
    check_cache_rows(shape);
    check_disjoint(shape);
  };
  check_pages("k_cache", gather.k_cache, extents, gather.head_dim_qk, {"k_pack", gather.k_pack}, read);
  check_out("k_out", gather.k_out, gather.head_dim_qk);
  if (extents.has_v) {
    check_pages("v_cache", gather.v_cache, extents, gather.head_dim_v, {}, read);
    check_out("v_out", gather.v_out, gather.head_dim_v);
  } else {
    check_all_zero("v_cache", gather.v_cache, "with SLUICE_KV_V_IN_K");
    check_all_zero("v_out", gather.v_out, "with SLUICE_KV_V_IN_K");
  }
  const TargetArrays out = {"out", 1, gather.tokens, false};
  check_arrays(gather, types, out,
               {"k", gather.k_scale_kind, gather.head_dim_qk, gather.k_scales, gather.k_zeros,
                gather.k_out_scales, gather.k_out_zeros});
  check_arrays(gather, types, out,
               {"v", gather.v_scale_kind, gather.head_dim_v, gather.v_scales, gather.v_zeros,
                gather.v_out_scales, gather.v_out_zeros});
}

} // namespace sluice::abi

//===- append_checks.cpp - what a caller can get wrong in an append -------------------------------------===//
#include "abi/cache_checks.h"
#include "abi/cache_op_checks.h"
#include "runtime/dtype.h"

namespace sluice::abi {
namespace {

using runtime::dtype_text;
using support::text;

constexpr uint32_t append_flags = SLUICE_PAGE_INDEX_64 | SLUICE_V_IN_K;

CacheExtents extents_of(const sluice_append &append) {
  return {append.kv_heads, append.head_dim_qk, append.head_dim_v, append.page_size,
          !(append.flags & SLUICE_V_IN_K)};
}

void check_types(const sluice_append &append) {
  if (append.source_type == 0) invalid("source_type", "source_type is missing; it must be a sluice_dtype");
  if (append.source_type != SLUICE_F16 && append.source_type != SLUICE_BF16) {
    unsupported_value("source_type", dtype_text(append.source_type), "f16 or bf16");
  }
  if (append.cache_type == 0) invalid("cache_type", "cache_type is missing; it must be a sluice_dtype");
  if (append.cache_type != append.source_type && append.cache_type != SLUICE_E4M3FNUZ) {
    // The nearest one-byte type is e4m3fnuz, the nearest wider one the source's.
    const bool is_wide = runtime::dtype_bytes(append.cache_type) > 1;
    unsupported_value("cache_type", dtype_text(append.cache_type),
                      dtype_text(is_wide ? append.source_type : uint32_t(SLUICE_E4M3FNUZ)));
  }
}

void check_places(const sluice_append &append) {
  const bool has_starts = append.starts != nullptr;
  if ((append.slots != nullptr) == has_starts) {
    invalid("slots", has_starts ? "slots and starts are both given; exactly one of them must be given"
                                : "slots and starts are both NULL; exactly one of them must be given");
  }
  check_array("slots", append.slots, sizeof(int64_t));
  check_array("starts", append.starts, sizeof(int32_t));
  const uint32_t kind = append.page_table_kind;
  if (kind > SLUICE_PAGE_TABLE_CSR) unsupported_value("page_table_kind", kind, "SLUICE_PAGE_TABLE_CSR (2)");
  if ((kind != SLUICE_PAGE_TABLE_NONE) != has_starts) {
    invalid("page_table_kind",
            text("page_table_kind is ", kind, "; it must be ",
                 has_starts ? "SLUICE_PAGE_TABLE_BLOCK (1) or SLUICE_PAGE_TABLE_CSR (2) with starts"
                            : "SLUICE_PAGE_TABLE_NONE (0) with slots"));
  }
  if (has_starts)
    check_positive("batch", append.batch);
  else
    check_zero("batch", append.batch, "with slots");
  const bool wide = append.flags & SLUICE_PAGE_INDEX_64;
  if (wide && !has_starts)
    invalid("flags", "flags has SLUICE_PAGE_INDEX_64, but page_table is not used: rows are placed by slots");
  check_given("kv_lengths", append.kv_lengths, sizeof(int32_t), has_starts, "with starts");
  check_given("page_table", append.page_table, wide ? sizeof(int64_t) : sizeof(int32_t), has_starts,
              "with starts");
  check_given("page_starts", append.page_starts, sizeof(int32_t), kind == SLUICE_PAGE_TABLE_CSR,
              "with SLUICE_PAGE_TABLE_CSR");
  if (append.page_table_stride < 0) {
    invalid("page_table_stride",
            text("page_table_stride is ", append.page_table_stride, "; it must not be negative"));
  }
  if (append.page_count < 0) {
    invalid("page_count",
            text("page_count is ", append.page_count, "; it must not be negative; 0 means unknown"));
  }
  if (kind != SLUICE_PAGE_TABLE_BLOCK)
    check_zero("page_table_stride", append.page_table_stride, "without SLUICE_PAGE_TABLE_BLOCK");
}

void check_rotary(const sluice_append &append) {
  if (append.rotary_dim < 0 || append.rotary_dim % 2 != 0 || append.rotary_dim > append.head_dim_qk) {
    invalid("rotary_dim", text("rotary_dim is ", append.rotary_dim, "; it must be even and at most ",
                               "head_dim_qk, which is ", append.head_dim_qk));
  }
  if (append.rotary_style > SLUICE_ROTARY_PAIRS)
    unsupported_value("rotary_style", append.rotary_style, "SLUICE_ROTARY_PAIRS (1)");
  const bool rotates = append.rotary_dim != 0;
  if (!rotates) check_zero("rotary_style", append.rotary_style, "without rotary_dim");
  check_given("rotary", append.rotary, sizeof(float), rotates, "with rotary_dim");
  if (append.rotary_stride < 0) {
    invalid("rotary_stride", text("rotary_stride is ", append.rotary_stride, "; it must not be negative"));
  }
  if (!rotates) {
    check_zero("rotary_stride", append.rotary_stride, "without rotary_dim");
    if (append.positions != nullptr) invalid("positions", "positions is given, but rotary_dim is 0");
  } else if (append.positions == nullptr && append.starts == nullptr) {
    invalid("positions", "positions is NULL; a rotation needs them where rows are placed by slots");
  }
  check_array("positions", append.positions, sizeof(int32_t));
}

} // namespace

void check_append(const sluice_append &append) {
  check_cache_op_flags(append.flags, "an append", append_flags, "SLUICE_PAGE_INDEX_64 and SLUICE_V_IN_K");
  check_types(append);
  const CacheExtents extents = extents_of(append);
  check_cache_extents(extents);
  check_positive("tokens", append.tokens);
  check_pack("k_pack", append.k_pack, append.head_dim_qk);
  check_places(append);
  const bool is_fp8 = append.cache_type == SLUICE_E4M3FNUZ;
  constexpr std::string_view without = "without a cache of FP8";
  check_scale("k_scale_kind", append.k_scale_kind, "k_scale", append.k_scale, is_fp8, without);
  check_scale("v_scale_kind", append.v_scale_kind, "v_scale", append.v_scale, is_fp8 && extents.has_v,
              without);
  check_rotary(append);
  const uint32_t bytes = runtime::dtype_bytes(append.cache_type);
  check_cache_rows({"k", append.k, {1, append.tokens, append.kv_heads, append.head_dim_qk}, 2});
  check_cache("k_cache", append.k_cache, extents, append.head_dim_qk, {"k_pack", append.k_pack}, bytes,
              append.page_count, true);
  if (extents.has_v) {
    check_cache_rows({"v", append.v, {1, append.tokens, append.kv_heads, append.head_dim_v}, 2});
    check_cache("v_cache", append.v_cache, extents, append.head_dim_v, {}, bytes, append.page_count, true);
  } else {
    check_no_v("v", append.v);
    check_no_v("v_cache", append.v_cache);
  }
}

} // namespace sluice::abi

//===- append_checks.cpp - what a caller can get wrong in an append -------------------------------------===//
#include "abi/cache_checks.h"
#include "abi/cache_op_checks.h"
#include "calls/cache_ops.h"
#include "calls/problem.h"
#include "runtime/cache_ops.h"
#include "runtime/dtype.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace sluice::abi {
namespace {

using runtime::dtype_text;
using support::Failure;
using support::Status;
using support::text;

constexpr uint32_t append_flags = calls::page_index_64 | calls::v_in_k | calls::zero_points;

CacheExtents extents_of(const calls::Append &append) {
  return {append.kv_heads, append.head_dim_qk, append.head_dim_v, append.page_size,
          !(append.flags & calls::v_in_k)};
}

/// Numbers of a byte may have scales, those of 4 bits have one per group.
bool has_scales(uint32_t cache_type) {
  switch (cache_type) {
  case SLUICE_E4M3FNUZ:
  case SLUICE_E4M3FN:
  case SLUICE_E5M2FNUZ:
  case SLUICE_E5M2:
  case SLUICE_I8:
  case SLUICE_U4:
    return true;
  default:
    return false;
  }
}

void check_types(const calls::Append &append) {
  check_dtype("source_type", append.source_type);
  if (append.source_type != SLUICE_F16 && append.source_type != SLUICE_BF16) {
    unsupported_value("source_type", dtype_text(append.source_type), "f16 or bf16");
  }
  check_dtype("cache_type", append.cache_type);
  if (append.cache_type != append.source_type && !has_scales(append.cache_type) &&
      !runtime::is_in_blocks(append.cache_type)) {
    unsupported_value("cache_type", dtype_text(append.cache_type), dtype_text(append.source_type));
  }
}

/// Attention reads V by columns only of some types.
void check_has_columns(const calls::Append &append) {
  if (append.v_pack == 0) return;
  if (append.flags & calls::v_in_k)
    invalid("v_pack", text("v_pack is ", append.v_pack, "; it must be 0 with SLUICE_KV_V_IN_K"));
  if (runtime::is_in_blocks(append.cache_type)) check_no_pack("v_pack", append.v_pack, append.cache_type);
  if (append.cache_type != append.source_type && append.cache_type != SLUICE_E4M3FNUZ) {
    throw Failure(Status::unsupported, "v_pack",
                  text("v_pack is ", append.v_pack, " with a cache of ", dtype_text(append.cache_type),
                       "; nearest supported: 0"));
  }
  check_v_pack_of_pages(append.v_pack, append.page_size);
}

/// Of Q and of tails.
void check_step_extents(const calls::Append &append) {
  if (append.q_heads < 0)
    invalid("q_heads", text("q_heads is ", append.q_heads, "; it must not be negative; 0 means no Q"));
  check_row_size("q_heads", append.q_heads, append.head_dim_qk);
  if (append.tail_dim < 0 || append.tail_dim % cache_chunk != 0 || append.tail_dim >= append.head_dim_qk) {
    invalid("tail_dim",
            text("tail_dim is ", append.tail_dim, "; it must be a multiple of ", cache_chunk,
                 " and less than head_dim_qk, which is ", append.head_dim_qk, ", or be 0 for no tail"));
  }
}

void check_places(const calls::Append &append) {
  const bool has_starts = append.starts != nullptr;
  if ((append.slots != nullptr) == has_starts) {
    invalid("slots", has_starts ? "slots and starts are both given; exactly one of them must be given"
                                : "slots and starts are both NULL; exactly one of them must be given");
  }
  check_array("slots", append.slots, sizeof(int64_t));
  check_array("starts", append.starts, sizeof(int32_t));
  const uint32_t kind = append.page_table_kind;
  check_known("page_table_kind", kind, SLUICE_PAGE_TABLE_CSR, "SLUICE_PAGE_TABLE_CSR (2)");
  if ((kind != SLUICE_PAGE_TABLE_NONE) != has_starts) {
    invalid("page_table_kind",
            text("page_table_kind is ", kind, "; it must be ",
                 has_starts ? "SLUICE_PAGE_TABLE_BLOCK (1) or SLUICE_PAGE_TABLE_CSR (2) with starts"
                            : "SLUICE_PAGE_TABLE_NONE (0) with slots"));
  }
  if (!has_starts) check_zero("batch", append.batch, "with slots");
  const bool wide = append.flags & calls::page_index_64;
  if (wide && !has_starts)
    invalid("flags",
            "flags has SLUICE_KV_PAGE_INDEX_64, but page_table is not used: rows are placed by slots");
  check_given("kv_lengths", append.kv_lengths, sizeof(int32_t), has_starts, "with starts");
  check_given("page_table", append.page_table, wide ? sizeof(int64_t) : sizeof(int32_t), has_starts,
              "with starts");
  check_given("page_starts", append.page_starts, sizeof(int32_t), kind == SLUICE_PAGE_TABLE_CSR,
              "with SLUICE_PAGE_TABLE_CSR");
  check_not_negative("page_table_stride", append.page_table_stride);
  if (append.page_count < 0) {
    invalid("page_count",
            text("page_count is ", append.page_count, "; it must not be negative; 0 means unknown"));
  }
  if (kind != SLUICE_PAGE_TABLE_BLOCK)
    check_zero("page_table_stride", append.page_table_stride, "without SLUICE_PAGE_TABLE_BLOCK");
}

void check_rotary(const calls::Append &append) {
  if (append.rotary_dim < 0 || append.rotary_dim % 2 != 0 || append.rotary_dim > append.head_dim_qk) {
    invalid("rotary_dim", text("rotary_dim is ", append.rotary_dim, "; it must be even and at most ",
                               "head_dim_qk, which is ", append.head_dim_qk));
  }
  check_known("rotary_style", append.rotary_style, SLUICE_ROTARY_PAIRS, "SLUICE_ROTARY_PAIRS (1)");
  const bool rotates = append.rotary_dim != 0;
  if (!rotates) {
  }
  check_known_dtype("rotary_type", append.rotary_type);
  if (append.rotary_type > SLUICE_F32)
    unsupported_value("rotary_type", dtype_text(append.rotary_type), "f16, bf16 or f32");
  const int32_t most_first = append.head_dim_qk - append.rotary_dim;
  if (append.rotary_first < 0 || append.rotary_first % cache_chunk != 0 || append.rotary_first > most_first) {
    invalid("rotary_first",
            text("rotary_first is ", append.rotary_first, "; it must be a multiple of ", cache_chunk,
                 " and at most head_dim_qk - rotary_dim, which is ", most_first));
  }
  const uint32_t bytes = runtime::dtype_bytes(append.rotary_type);
  check_given("rotary", append.rotary, bytes, rotates, "with rotary_dim");
  check_array("rotary_sin", append.rotary_sin, bytes);
  check_not_negative("rotary_stride", append.rotary_stride);
  if (!rotates) {
    check_zero("rotary_stride", append.rotary_stride, "without rotary_dim");
    if (append.positions != nullptr) invalid("positions", "positions is given, but rotary_dim is 0");
  } else if (append.positions == nullptr && append.starts == nullptr) {
    invalid("positions", "positions is NULL; a rotation needs them where rows are placed by slots");
  }
  check_array("positions", append.positions, sizeof(int32_t));
}

/// A tensor of new rows; those of K and Q may lack their tail.
void check_rows(std::string_view name, const sluice_tensor &rows, int32_t tokens, int32_t heads,
                int32_t head_dim) {
  check_cache_rows({name, rows, {1, tokens, heads, head_dim}, 2});
}

void check_norms(const calls::Append &append) {
  const bool norms = append.k_norm != nullptr || append.q_norm != nullptr;
  if (append.q_norm != nullptr && append.q_heads == 0) invalid("q_norm", "q_norm is given, but q_heads is 0");
  // Both norms have the same numbers: they are called those of Q only where K has no norm.
  const bool is_of_q = append.q_norm != nullptr && append.k_norm == nullptr;
  const std::string_view type_field = is_of_q ? "q_norm_type" : "norm_type",
                         epsilon_field = is_of_q ? "q_norm_epsilon" : "norm_epsilon";
  check_known_dtype(type_field, append.norm_type);
  if (append.norm_type != 0 && append.norm_type != append.source_type && append.norm_type != SLUICE_F32) {
    unsupported_value(type_field, dtype_text(append.norm_type),
                      text(runtime::dtype_name(append.source_type), " or f32"));
  }
  if (!norms) check_zero("norm_type", append.norm_type, "without q_norm and k_norm");
  if (!(append.norm_epsilon >= 0) || !std::isfinite(append.norm_epsilon) ||
      (!norms && append.norm_epsilon != 0)) {
    invalid(epsilon_field, text(epsilon_field, " is ", append.norm_epsilon,
                                norms ? "; it must be finite and not negative"
                                      : "; it must be 0 without q_norm and k_norm"));
  }
  const uint32_t bytes = append.norm_type == SLUICE_F32 ? sizeof(float) : 2;
  check_array("q_norm", append.q_norm, bytes);
  check_array("k_norm", append.k_norm, bytes);
}

void check_q(const calls::Append &append) {
  if (append.q_heads == 0) {
    check_all_zero("q", append.q, "without q_heads");
    check_all_zero("q_out", append.q_out, "without q_heads");
    check_all_zero("q_tail", append.q_tail, "without q_heads");
    return;
  }
  const bool has_tail = is_given(append.q_tail);
  check_rows("q", append.q, append.tokens, append.q_heads,
             append.head_dim_qk - (has_tail ? append.tail_dim : 0));
  check_rows("q_out", append.q_out, append.tokens, append.q_heads, append.head_dim_qk);
  check_disjoint({"q_out", append.q_out, {1, append.tokens, append.q_heads, append.head_dim_qk}, 2});
  if (append.tail_dim == 0) check_all_zero("q_tail", append.q_tail, "without tail_dim");
  if (has_tail) check_rows("q_tail", append.q_tail, append.tokens, append.q_heads, append.tail_dim);
}

/// What the kernels for whole steps cannot do.
void check_step(const calls::Append &append) {
  constexpr int32_t most = package::step_most_row_elements;
  constexpr std::string_view when = " for a kernel append_step; nearest supported: ";
  constexpr int32_t rotary_unit = 2 * cache_chunk; // halves are chunks
  if (append.rotary_dim % rotary_unit != 0) {
    const int32_t nearest = std::max(append.rotary_dim / rotary_unit * rotary_unit, rotary_unit);
    throw Failure(Status::unsupported, "rotary_dim",
                  text("rotary_dim is ", append.rotary_dim, when, nearest));
  }
  const auto check_dim = [&](const char *field, int32_t dim) {
    if (dim > most) throw Failure(Status::unsupported, field, text(field, " is ", dim, when, most));
  };
  check_dim("head_dim_qk", append.head_dim_qk);
  check_dim("head_dim_v", append.head_dim_v);
  const int32_t heads = std::max(append.kv_heads, append.q_heads);
  const int64_t rows = int64_t{append.tokens} * heads;
  if (rows > std::numeric_limits<int32_t>::max()) {
    throw Failure(Status::unsupported, "tokens",
                  text("tokens is ", append.tokens, ", which makes ", rows, " rows of ", heads, " heads",
                       when, std::numeric_limits<int32_t>::max() / heads));
  }
}

} // namespace

void check_append(const calls::Append &append) {
  check_cache_op_flags(append.flags, "an append", append_flags,
                       "SLUICE_KV_PAGE_INDEX_64, SLUICE_KV_V_IN_K and zero points");
  check_types(append);
  const CacheExtents extents = extents_of(append);
  check_cache_extents(extents);
  check_step_extents(append);
  check_not_negative("tokens", append.tokens);
  check_not_negative("batch", append.batch);
  if (runtime::has_nothing_to_do(append)) return; // nothing else is used
  check_pack("k_pack", append.k_pack, append.head_dim_qk);
  check_has_columns(append);
  check_places(append);
  const bool scaled = has_scales(append.cache_type);
  const ScaleKinds kinds = append.cache_type == SLUICE_U4 ? ScaleKinds::groups : ScaleKinds::also_of_keys;
  constexpr std::string_view without = "without a cache of FP8, i8 or u4";
  check_scale("k_scale_kind", append.k_scale_kind, "k_scale", append.k_scale, scaled, without, kinds);
  check_scale("v_scale_kind", append.v_scale_kind, "v_scale", append.v_scale, scaled && extents.has_v,
              without, kinds);
  check_blocks({"cache_type", append.cache_type, append.scale_group, append.flags}, extents);
  if (runtime::is_in_blocks(append.cache_type)) check_no_pack("k_pack", append.k_pack, append.cache_type);
  const auto array_of = [&](uint32_t kind, int32_t dim) {
    return ScaleArray{kind, checked_pages(append.page_count), append.page_size, append.kv_heads,
                      kind == SLUICE_SCALE_PER_GROUP ? dim / append.scale_group : 1};
  };
  const ScaleArray k_array = array_of(append.k_scale_kind, append.head_dim_qk),
                   v_array = array_of(append.v_scale_kind, append.head_dim_v);
  check_scale_array("k_scales", append.k_scales, k_array, k_array.kind != SLUICE_SCALE_PER_PAGE);
  check_scale_array("v_scales", append.v_scales, v_array, v_array.kind != SLUICE_SCALE_PER_PAGE);
  const bool has_zeros = append.flags & calls::zero_points;
  check_zeros("k_zeros", append.k_zeros, append.k_scales, k_array, has_zeros);
  check_zeros("v_zeros", append.v_zeros, append.v_scales, v_array, has_zeros && extents.has_v);
  check_rotary(append);
  check_norms(append);
  const auto check_target = [&](std::string_view name, const sluice_tensor &cache, int32_t head_dim,
                                const Pack &pack) {
    if (runtime::is_in_blocks(append.cache_type))
      return check_block_cache(name, cache, extents, head_dim, append.cache_type, append.page_count, true);
    check_cache(name, cache, extents, head_dim, pack, runtime::dtype_bytes(append.cache_type),
                append.page_count, true);
  };
  check_rows("k", append.k, append.tokens, append.kv_heads, append.head_dim_qk - append.tail_dim);
  if (append.tail_dim == 0)
    check_all_zero("k_tail", append.k_tail, "without tail_dim");
  else
    check_rows("k_tail", append.k_tail, append.tokens, append.kv_heads, append.tail_dim);
  check_target("k_cache", append.k_cache, append.head_dim_qk, {"k_pack", append.k_pack});
  if (extents.has_v) {
    check_rows("v", append.v, append.tokens, append.kv_heads, append.head_dim_v);
    if (append.v_pack != 0)
      check_columns("v_cache", append.v_cache, extents, append.v_pack,
                    runtime::dtype_bytes(append.cache_type), append.page_count);
    else
      check_target("v_cache", append.v_cache, append.head_dim_v, {});
  } else {
    check_all_zero("v", append.v, "with SLUICE_KV_V_IN_K");
    check_all_zero("v_cache", append.v_cache, "with SLUICE_KV_V_IN_K");
  }
  check_q(append);
  if (runtime::is_step(append)) check_step(append);
}

} // namespace sluice::abi

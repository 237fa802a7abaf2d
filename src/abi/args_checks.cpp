//===- args_checks.cpp - what a caller can get wrong in a call ------------------------------------------===//
//
// On the path of every run: no allocation unless something is wrong.
//
//===----------------------------------------------------------------------------------------------------===//
#include "abi/checks.h"
#include "abi/tensor_checks.h"
#include "runtime/call_rows.h"
#include "runtime/dtype.h"

#include "support/checked.h"
#include "support/failure.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <string>
#include <string_view>

namespace sluice::abi {
namespace {

using runtime::dtype_bytes;
using runtime::kv_rows;
using runtime::q_rows;
using runtime::Rows;
using support::divide_up;
using support::Failure;
using support::Status;
using support::text;

constexpr uint32_t max_grid_yz = 65535;
constexpr int64_t max_lengths = (int64_t{1} << 31) - 512;
// A buffer descriptor holds 48 address bits (CDNA3 ISA, buffer resource): a higher address would wrap.
constexpr uint64_t device_address_end = uint64_t{1} << 48;
// One buffer descriptor serves a tile of K or V: its 64 rows of 16-bit elements span less than 4 GiB.
constexpr int64_t kv_row_stride_end = int64_t{1} << 25;
// Kernels compare the two 32-bit halves of a page number separately.
constexpr int64_t max_pages = int64_t{1} << 32;
// Kernels reach the packs of a row of K with 31-bit offsets from its start.
constexpr int64_t pack_stride_end = int64_t{1} << 22;
// The same for the columns of V, up to 512, with 32-bit offsets.
constexpr int64_t column_stride_end = int64_t{1} << 23;

// Kernels add the number of a row to that of a key on the diagonal, which is at most as large.
constexpr int32_t most_rows_with_diagonal = 1 << 30;
constexpr int64_t most_spans = 1 << 20;

void check_extent(std::string_view field, std::string_view bound_field, int32_t value, int64_t bound) {
  if (value < 0) invalid(std::string(field), text(field, " is ", value, "; it must not be negative"));
  if (bound != 0 && value > bound) {
    invalid(std::string(field), text(field, " is ", value, "; the problem's ", bound_field, " is ", bound));
  }
}

/// An extent that is the problem's bound where the call says 0, unless its lengths are exact.
void check_length(std::string_view field, std::string_view bound_field, int32_t value, int64_t bound,
                  const sluice_args &args) {
  check_extent(field, bound_field, value, bound);
  if (value == 0 && !(args.flags & SLUICE_EXACT_LENGTHS)) {
    invalid(std::string(field), text(field, " is 0, which is the problem's ", bound_field,
                                     ", but the problem has no bound; it must be at least 1, or the call's "
                                     "flags have SLUICE_EXACT_LENGTHS"));
  }
}

void check_extents(const sluice_problem &problem, const TensorRules &rules, const sluice_args &args) {
  check_extent("batch", "max_batch", args.batch, problem.max_batch);
  check_length("q_len", "max_q_len", args.q_len, problem.max_q_len, args);
  check_length("kv_len", "max_kv_len", args.kv_len, problem.max_kv_len, args);
  // With q_starts only the device knows how many rows there are.
  const int64_t tokens = int64_t{args.batch} * args.q_len;
  if (args.q_starts == nullptr && problem.max_q_tokens != 0 && tokens > problem.max_q_tokens) {
    invalid("batch",
            text("batch * q_len is ", tokens, "; the problem's max_q_tokens is ", problem.max_q_tokens));
  }
  if (rules.tile_q == 0) return;
  if (uint32_t(args.batch) > max_grid_yz) {
    unsupported("batch", text("batch is ", args.batch, "; nearest supported: ", max_grid_yz));
  }
  const uint64_t most_rows = uint64_t{max_grid_yz} * rules.tile_q;
  const auto group = uint64_t(problem.q_heads / problem.kv_heads);
  if (uint64_t(args.q_len) * group > most_rows) {
    unsupported("q_len", text("q_len is ", args.q_len, "; nearest supported: ", most_rows / group,
                              ", which is ", max_grid_yz, " tiles of ", rules.tile_q, " rows"));
  }
  if (int64_t{args.q_len} + args.kv_len > max_lengths) {
    unsupported("kv_len", text("kv_len is ", args.kv_len, " and q_len ", args.q_len,
                               "; nearest supported: ", max_lengths - args.q_len));
  }
}

void check_prefix_extents(const sluice_problem &problem, const TensorRules &rules, const sluice_args &args) {
  check_extent("prefix_count", "max_prefixes", args.prefix_count, problem.max_prefixes);
  if (args.prefix_count == 0 && !(args.flags & SLUICE_EXACT_LENGTHS)) {
    invalid("prefix_count", "prefix_count is 0; it must be at least 1, or the call's flags have "
                            "SLUICE_EXACT_LENGTHS");
  }
  check_length("prefix_len", "max_prefix_len", args.prefix_len, problem.max_prefix_len, args);
  if (args.q_tokens > problem.max_q_tokens) {
    invalid("q_tokens",
            text("q_tokens is ", args.q_tokens, "; the problem's max_q_tokens is ", problem.max_q_tokens));
  }
  if (rules.tile_q == 0) return;
  if (uint32_t(args.prefix_count) > max_grid_yz) {
    unsupported("prefix_count",
                text("prefix_count is ", args.prefix_count, "; nearest supported: ", max_grid_yz));
  }
}

void check_scale(float scale) {
  if (!std::isfinite(scale)) invalid("scale", text("scale is ", scale, "; it must be finite"));
  if (scale < 0) {
    unsupported("scale",
                text("scale is ", scale,
                     "; it must not be negative; nearest supported: 0, which is 1 / sqrt(head_dim_qk) "
                     "without SLUICE_EXACT_SCALE"));
  }
  if (!std::isfinite(float(double{scale} * std::numbers::log2e))) {
    invalid("scale", text("scale is ", scale, "; scale * log2(e) must be finite"));
  }
}

void check_count(std::string_view field, int64_t value, bool has_meaning, std::string_view why_not) {
  if (value < 0) invalid(std::string(field), text(field, " is ", value, "; it must not be negative"));
  if (value != 0 && !has_meaning)
    invalid(std::string(field), text(field, " is ", value, "; it must be 0: ", why_not));
}

/// The stride of a page table, and the extents that decide how much of it is read.
struct TableStride {
  std::string_view field;
  int64_t stride;
  int32_t count; // of sequences, prefixes or heads
  std::string_view keys_field;
  int32_t keys;
};

void check_table_stride(const sluice_problem &problem, const TableStride &table) {
  const bool block = problem.page_table_kind == SLUICE_PAGE_TABLE_BLOCK;
  if (!block && table.stride != 0) {
    invalid(std::string(table.field),
            text(table.field, " is ", table.stride, "; it must be 0 without SLUICE_PAGE_TABLE_BLOCK"));
  }
  if (!block || table.count <= 1) return;
  if (table.stride < 0) {
    invalid(std::string(table.field), text(table.field, " is ", table.stride, "; it must not be negative"));
  }
  // With a stride of 0 all sequences share one table.
  const int64_t pages = divide_up(int64_t{table.keys}, int64_t{problem.page_size});
  if (table.stride > 0 && pages > table.stride) {
    invalid(std::string(table.field),
            text(table.field, " is ", table.stride, "; it must be at least ", pages, ", the pages of ",
                 problem.page_size, " keys for a ", table.keys_field, " of ", table.keys,
                 ", or 0 for one table that all share"));
  }
}

/// Calls without keys need no table.
void check_table(const sluice_problem &problem, std::string_view field, const void *table, int32_t keys) {
  if (table != nullptr || keys != 0)
    check_pointer(field, table, problem.flags & SLUICE_PAGE_INDEX_64 ? sizeof(int64_t) : sizeof(int32_t));
}

/// Heads may have entries of their own in a sequence's table; those of CSR are where page_starts says, and
/// only the device knows how many.
void check_head_stride(const sluice_problem &problem, const sluice_args &args) {
  constexpr std::string_view field = "page_table_head_stride";
  if (problem.mode == SLUICE_MODE_PAGED && problem.kv_heads == 1) return;
  check_count(field, args.page_table_head_stride, problem.mode == SLUICE_MODE_PAGED,
              "the problem's mode is not SLUICE_MODE_PAGED");
  if (problem.page_table_kind == SLUICE_PAGE_TABLE_BLOCK)
    check_table_stride(problem,
                       {field, args.page_table_head_stride, problem.kv_heads, "kv_len", args.kv_len});
}

/// Checks the table in the header: which of the arrays that locate sequences each mode takes.
void check_sequences(const sluice_problem &problem, const sluice_args &args) {
  const bool ragged = problem.mode == SLUICE_MODE_RAGGED;
  const bool paged = problem.mode == SLUICE_MODE_PAGED;
  const bool csr = problem.page_table_kind == SLUICE_PAGE_TABLE_CSR;
  const auto required = [](std::string_view field, const void *pointer) {
    check_pointer(field, pointer, sizeof(int32_t));
  };
  const auto optional = [&](std::string_view field, const void *pointer) {
    if (pointer != nullptr) required(field, pointer);
  };
  if (ragged) {
    required("q_starts", args.q_starts);
    required("kv_starts", args.kv_starts);
  } else {
    if (paged) {
      optional("q_starts", args.q_starts);
    } else {
      check_absent("q_starts", args.q_starts, "the problem's mode is SLUICE_MODE_DENSE");
    }
    check_absent("kv_starts", args.kv_starts, "the problem's mode is not SLUICE_MODE_RAGGED");
  }
  optional("q_lengths", args.q_lengths);
  if (!paged) {
    constexpr std::string_view why = "the problem's mode is not SLUICE_MODE_PAGED";
    optional("kv_lengths", args.kv_lengths);
    check_absent("page_table", args.page_table, why);
    check_absent("page_starts", args.page_starts, why);
  } else {
    required("kv_lengths", args.kv_lengths);
    check_table(problem, "page_table", args.page_table, args.kv_len);
    if (csr) {
      required("page_starts", args.page_starts);
    } else {
      check_absent("page_starts", args.page_starts,
                   "the problem's page_table_kind is SLUICE_PAGE_TABLE_BLOCK");
    }
  }
  check_table_stride(problem,
                     {"page_table_stride", args.page_table_stride, args.batch, "kv_len", args.kv_len});
  check_head_stride(problem, args);
}

/// The same for prefixes, which are like sequences without starts in k and v.
void check_prefixes(const sluice_problem &problem, const sluice_args &args) {
  const bool paged = problem.mode == SLUICE_MODE_PAGED;
  check_pointer("prefix_q_starts", args.prefix_q_starts, sizeof(int32_t));
  if (args.prefix_count == 0) return; // nothing else is used
  if (paged || args.prefix_lengths != nullptr)
    check_pointer("prefix_lengths", args.prefix_lengths, sizeof(int32_t));
  if (!paged) {
    constexpr std::string_view why = "the problem's mode is not SLUICE_MODE_PAGED";
    check_absent("prefix_page_table", args.prefix_page_table, why);
    check_absent("prefix_page_starts", args.prefix_page_starts, why);
  } else {
    check_table(problem, "prefix_page_table", args.prefix_page_table, args.prefix_len);
    if (problem.page_table_kind == SLUICE_PAGE_TABLE_CSR) {
      check_pointer("prefix_page_starts", args.prefix_page_starts, sizeof(int32_t));
    } else {
      check_absent("prefix_page_starts", args.prefix_page_starts,
                   "the problem's page_table_kind is SLUICE_PAGE_TABLE_BLOCK");
    }
  }
  check_table_stride(problem, {"prefix_page_table_stride", args.prefix_page_table_stride, args.prefix_count,
                               "prefix_len", args.prefix_len});
  // Rows of one token each follow one another by stride[0].
  if (args.q_starts == nullptr && args.batch > 1 && args.q_len > 1 &&
      support::checked_multiply(args.q.stride[1], int64_t{args.q_len}) != args.q.stride[0]) {
    invalid("q.stride[0]",
            text("q.stride[0] is ", args.q.stride[0],
                 "; with SLUICE_SHARED_PREFIX and without q_starts it must be q_len * q.stride[1], which is ",
                 args.q_len, " * ", args.q.stride[1]));
  }
}

void check_no_prefixes(const sluice_args &args) {
  constexpr std::string_view why = "the problem's flags lack SLUICE_SHARED_PREFIX";
  const auto zero = [&](std::string_view field, int64_t value) {
    if (value != 0) invalid(std::string(field), text(field, " is ", value, "; it must be 0: ", why));
  };
  zero("prefix_count", args.prefix_count);
  zero("prefix_len", args.prefix_len);
  check_absent("prefix_q_starts", args.prefix_q_starts, why);
  check_absent("prefix_lengths", args.prefix_lengths, why);
  check_absent("prefix_page_table", args.prefix_page_table, why);
  zero("prefix_page_table_stride", args.prefix_page_table_stride);
  check_absent("prefix_page_starts", args.prefix_page_starts, why);
  check_absent("prefix_k", args.prefix_k, why);
  check_absent("prefix_v", args.prefix_v, why);
}

void check_counts(const sluice_problem &problem, const TensorRules &rules, const sluice_args &args) {
  check_count("page_count", args.page_count, problem.mode == SLUICE_MODE_PAGED,
              "the problem's mode is not SLUICE_MODE_PAGED");
  if (rules.tile_q != 0 && args.page_count > max_pages) {
    unsupported("page_count", text("page_count is ", args.page_count, "; nearest supported: ", max_pages));
  }
  check_count("q_tokens", args.q_tokens, args.q_starts != nullptr, "q_starts is NULL");
  check_count("kv_tokens", args.kv_tokens, args.kv_starts != nullptr, "kv_starts is NULL");
}

/// Checks a tensor of a call, of which it may use nothing.
void check_tensor(const Shape &shape, const TensorRules &rules, bool is_packed = false) {
  if (shape.extent[0] == 0 || shape.extent[1] == 0) return;
  check_pointer(shape, rules.pointer_alignment != 0 ? rules.pointer_alignment : shape.element_bytes);
  if (rules.unit_dim_stride && !is_packed) check_stride(shape, 3, 1);
  check_reach(shape, rules.tile_q != 0 ? device_address_end : UINT64_MAX);
  for (size_t i = 0; i < (is_packed ? 4 : 3); ++i)
    check_multiple(shape, i, rules.stride_multiple);
}

/// K or V, whose blocks count elements in the call.
void check_keys(uint32_t type, const Shape &shape, const TensorRules &rules, bool is_packed = false) {
  if (!runtime::is_in_blocks(type)) return check_tensor(shape, rules, is_packed);
  constexpr int64_t multiple = 32; // elements
  for (size_t i = 0; i < 3; ++i)
    check_multiple(shape, i, multiple);
  // ggml's blocks begin with an F16 scale; rows of 4-bit numbers are read by dwords.
  TensorRules of_blocks = rules;
  if (rules.pointer_alignment != 0 && type != SLUICE_U4) of_blocks.pointer_alignment = 2;
  of_blocks.stride_multiple = 1;
  check_tensor(shape, of_blocks);
}

/// The stride of a dimension is below what kernels can add to an address.
void check_close(const Shape &shape, size_t dimension, int64_t end) {
  if (shape.extent[dimension] > 1 && shape.tensor.stride[dimension] >= end)
    far_stride(shape, dimension, end - 1);
}

/// `rows_of_v`: pages, sequences or prefixes of V, and the tokens of each.
void check_values(const sluice_problem &problem, const TensorRules &rules, std::string_view name,
                  const sluice_tensor &v, const Rows &rows_of_v) {
  if (rows_of_v.none()) return;
  const auto [outer, inner] = rows_of_v;
  const bool by_columns = problem.v_pack != 0, is_one_pack = problem.v_pack == SLUICE_V_PACK_ALL;
  const sluice_tensor packs = column_packs(name, v, problem.v_pack, inner);
  // Tokens of a column that are neighbours; whole groups of 8 are read.
  const int64_t pack = !by_columns ? 1 : is_one_pack ? divide_up(inner, int64_t{8}) * 8 : problem.v_pack;
  const Shape shape = {name,
                       packs,
                       {outer, divide_up(inner, pack), problem.kv_heads, problem.head_dim_v},
                       dtype_bytes(problem.v_type),
                       pack};
  check_keys(problem.v_type, shape, rules, by_columns);
  if (rules.tile_q == 0) return;
  check_close(shape, 1, kv_row_stride_end);
  if (by_columns) check_close(shape, 3, column_stride_end);
}

void check_tensors(const sluice_problem &problem, const TensorRules &rules, const sluice_args &args) {
  const Rows q_extents = q_rows(args), kv_extents = kv_rows(problem, args);
  const auto [q_outer, q_inner] = q_extents;
  const auto [kv_outer, kv_inner] = kv_extents;
  const int64_t pack = problem.k_pack != 0 ? problem.k_pack : 1;
  const Shape q = {
      "q", args.q, {q_outer, q_inner, problem.q_heads, problem.head_dim_qk}, dtype_bytes(problem.q_type)};
  const Shape k = {"k",
                   args.k,
                   {kv_outer, kv_inner, problem.kv_heads, problem.head_dim_qk / pack},
                   dtype_bytes(problem.k_type),
                   pack};
  const Shape o = {
      "o", args.o, {q_outer, q_inner, problem.q_heads, problem.head_dim_v}, dtype_bytes(problem.o_type)};
  check_tensor(q, rules);
  check_keys(problem.k_type, k, rules, problem.k_pack != 0);
  if (problem.flags & SLUICE_V_IN_K) {
    check_absent("v", args.v, "the problem's flags have SLUICE_V_IN_K");
  } else {
    check_values(problem, rules, "v", args.v, kv_extents);
  }
  check_tensor(o, rules);
  check_disjoint(o);
  if (rules.tile_q != 0) {
    check_close(k, 1, kv_row_stride_end);
    if (problem.k_pack != 0) check_close(k, 3, pack_stride_end);
  }
}

/// The keys of prefixes that are not in pages.
void check_prefix_tensors(const sluice_problem &problem, const TensorRules &rules, const sluice_args &args) {
  constexpr std::string_view in_pages = "the prefixes are in the pages of k and v";
  if (problem.mode == SLUICE_MODE_PAGED) {
    check_absent("prefix_k", args.prefix_k, in_pages);
    check_absent("prefix_v", args.prefix_v, in_pages);
    return;
  }
  const Rows rows = {args.prefix_count, args.prefix_len};
  const Shape k = {"prefix_k",
                   args.prefix_k,
                   {rows.outer, rows.inner, problem.kv_heads, problem.head_dim_qk},
                   dtype_bytes(problem.k_type)};
  check_keys(problem.k_type, k, rules);
  if (rules.tile_q != 0) check_close(k, 1, kv_row_stride_end);
  if (problem.flags & SLUICE_V_IN_K) {
    check_absent("prefix_v", args.prefix_v, "the problem's flags have SLUICE_V_IN_K");
    return;
  }
  check_values(problem, rules, "prefix_v", args.prefix_v, rows);
}

void check_lse(const sluice_problem &problem, const sluice_args &args) {
  if (!(problem.flags & SLUICE_WRITE_LSE)) {
    check_absent("lse.data", args.lse.data, "the problem's flags lack SLUICE_WRITE_LSE");
    return;
  }
  const Rows rows = q_rows(args);
  const Shape shape = {"lse", args.lse, {rows.outer, rows.inner, problem.q_heads, 1}, sizeof(float)};
  check_tensor(shape, {sizeof(float), 1, false, 0});
  check_disjoint(shape);
}

void check_bias(const sluice_problem &problem, const sluice_args &args, uint64_t address_end) {
  if (args.kv_len == 0) return;
  const Shape shape = {"bias",
                       args.bias,
                       {args.batch, problem.q_heads, args.q_len, args.kv_len},
                       dtype_bytes(problem.bias_type)};
  check_pointer(shape, shape.element_bytes);
  if (args.kv_len > 1 && args.bias.stride[3] != 0 && args.bias.stride[3] != 1)
    bad_stride(shape, 3, "it must be 0 or 1");
  check_reach(shape, address_end);
}

void check_mask(const sluice_problem &problem, const sluice_args &args, uint64_t address_end) {
  const int32_t keys = problem.flags & SLUICE_MASK_NEW_ROWS ? args.q_len : args.kv_len;
  if (keys == 0) return;
  const Shape shape = {"mask", args.mask, {args.batch, problem.q_heads, args.q_len, divide_up(keys, 8)}, 1};
  check_pointer(shape, 1);
  if (shape.extent[3] > 1 && args.mask.stride[3] != 1)
    bad_stride(shape, 3, "it must be 1: the bits of a row are contiguous");
  check_reach(shape, address_end);
}

void check_given(std::string_view field, const void *pointer, bool is_asked, std::string_view why_not) {
  if (is_asked) {
    check_pointer(field, pointer, sizeof(float)); // or int32_t
  } else {
    check_absent(field, pointer, why_not);
  }
}

void check_batch_stride(std::string_view field, int64_t stride, int32_t batch, const float *array,
                        std::string_view name) {
  if (batch <= 1 && array != nullptr) return;
  if (stride < 0) invalid(std::string(field), text(field, " is ", stride, "; it must not be negative"));
  if (stride != 0 && array == nullptr)
    invalid(std::string(field), text(field, " is ", stride, ", but ", name, " is NULL"));
}

void check_scores(const sluice_problem &problem, const TensorRules &rules, const sluice_args &args) {
  const uint64_t address_end = rules.tile_q != 0 ? device_address_end : UINT64_MAX;
  if (problem.bias_type != 0) {
    check_bias(problem, args, address_end);
  } else {
    check_absent("bias", args.bias, "the problem's bias_type is 0");
  }
  if (problem.flags & SLUICE_BOOL_MASK) {
    check_mask(problem, args, address_end);
  } else {
    check_absent("mask", args.mask, "the problem's flags lack SLUICE_BOOL_MASK");
  }
  check_given("alibi_slopes", args.alibi_slopes, problem.flags & SLUICE_ALIBI,
              "the problem's flags lack SLUICE_ALIBI");
  check_given("sink_logits", args.sink_logits, problem.flags & SLUICE_SINK_LOGITS,
              "the problem's flags lack SLUICE_SINK_LOGITS");
  check_given("bias_scale", args.bias_scale, problem.flags & SLUICE_BIAS_SCALE,
              "the problem's flags lack SLUICE_BIAS_SCALE");
  check_batch_stride("alibi_batch_stride", args.alibi_batch_stride, args.batch, args.alibi_slopes,
                     "alibi_slopes");
  check_batch_stride("bias_scale_batch_stride", args.bias_scale_batch_stride, args.batch, args.bias_scale,
                     "bias_scale");
}

/// Scales of K or V for each key, or numbers to subtract, found like the rows of k and v. A page has one
/// scale for all its rows.
Shape key_scales_shape(const sluice_problem &problem, const sluice_args &args, std::string_view name,
                       const sluice_tensor &scales, uint32_t kind) {
  const Rows rows = kv_rows(problem, args);
  const bool has_groups = kind == SLUICE_SCALE_PER_GROUP;
  const int32_t dim = name.starts_with('k') ? problem.head_dim_qk : problem.head_dim_v;
  return {name,
          scales,
          {rows.outer, kind == SLUICE_SCALE_PER_PAGE ? 1 : rows.inner, problem.kv_heads,
           has_groups ? dim / problem.scale_group : 1},
          has_groups ? uint32_t(sizeof(uint16_t)) : uint32_t(sizeof(float))};
}

void check_key_scales(const sluice_problem &problem, const sluice_args &args, uint64_t address_end,
                      std::string_view name, const sluice_tensor &scales, uint32_t kind,
                      std::string_view why_not) {
  if (kind <= SLUICE_SCALE_PER_HEAD) return check_absent(name, scales, why_not);
  if (kv_rows(problem, args).none()) return;
  const Shape shape = key_scales_shape(problem, args, name, scales, kind);
  check_pointer(shape, shape.element_bytes);
  check_stride(shape, 3, 1);
  check_reach(shape, address_end);
}

/// Numbers to subtract in each group, with the strides of the scales.
void check_zeros(const sluice_problem &problem, const sluice_args &args, uint64_t address_end,
                 std::string_view name, const sluice_tensor &zeros, const sluice_tensor &scales,
                 uint32_t kind, std::string_view why_not) {
  if (!(problem.flags & SLUICE_ZERO_POINTS))
    return check_absent(name, zeros, "the problem's flags lack SLUICE_ZERO_POINTS");
  if (kind != SLUICE_SCALE_PER_GROUP) return check_absent(name, zeros, why_not);
  check_key_scales(problem, args, address_end, name, zeros, kind, why_not);
  check_same_strides(key_scales_shape(problem, args, name, zeros, kind), scales);
}

void check_scales(const sluice_problem &problem, const TensorRules &rules, const sluice_args &args) {
  const auto has_few = [](uint32_t kind) {
    return kind == SLUICE_SCALE_PER_TENSOR || kind == SLUICE_SCALE_PER_HEAD;
  };
  constexpr std::string_view q_has_none = "the problem's q_scale_kind is SLUICE_SCALE_NONE";
  constexpr std::string_view k_has_none = "the problem's k_scale_kind is not PER_TENSOR or PER_HEAD";
  constexpr std::string_view v_has_none = "the problem's v_scale_kind is not PER_TENSOR or PER_HEAD";
  constexpr std::string_view o_has_none = "the problem's o_scale_kind is SLUICE_SCALE_NONE";
  check_given("q_scale", args.q_scale, has_few(problem.q_scale_kind), q_has_none);
  check_given("k_scale", args.k_scale, has_few(problem.k_scale_kind), k_has_none);
  check_given("v_scale", args.v_scale, has_few(problem.v_scale_kind), v_has_none);
  check_given("o_scale", args.o_scale, has_few(problem.o_scale_kind), o_has_none);
  const uint64_t address_end = rules.tile_q != 0 ? device_address_end : UINT64_MAX;
  check_key_scales(problem, args, address_end, "k_scales", args.k_scales, problem.k_scale_kind,
                   "the problem's k_scale_kind is not PER_TOKEN, PER_PAGE or PER_GROUP");
  check_key_scales(problem, args, address_end, "v_scales", args.v_scales, problem.v_scale_kind,
                   "the problem's v_scale_kind is not PER_TOKEN, PER_PAGE or PER_GROUP");
  check_zeros(problem, args, address_end, "k_zeros", args.k_zeros, args.k_scales, problem.k_scale_kind,
              "the problem's k_scale_kind is not PER_GROUP");
  check_zeros(problem, args, address_end, "v_zeros", args.v_zeros, args.v_scales, problem.v_scale_kind,
              "the problem's v_scale_kind is not PER_GROUP");
}

/// What a mask needs to know of each sequence.
void check_sequence_masks(const sluice_problem &problem, const TensorRules &rules, const sluice_args &args) {
  const bool has_diagonals = problem.mask_alignment == SLUICE_GIVEN_DIAGONAL;
  check_given("diagonals", args.diagonals, has_diagonals,
              "the problem's mask_alignment is not SLUICE_GIVEN_DIAGONAL");
  if (rules.tile_q != 0 && has_diagonals && args.q_len > most_rows_with_diagonal) {
    unsupported("q_len", text("q_len is ", args.q_len,
                              " with SLUICE_GIVEN_DIAGONAL; nearest supported: ", most_rows_with_diagonal));
  }
  check_given("causal", args.causal, problem.flags & SLUICE_CAUSAL_BY_SEQUENCE,
              "the problem's flags lack SLUICE_CAUSAL_BY_SEQUENCE");
  const bool has_spans = problem.flags & SLUICE_SPANS;
  if (!has_spans || args.span_count != 0)
    check_given("spans", args.spans, has_spans, "the problem's flags lack SLUICE_SPANS");
  if (has_spans && (args.span_count < 0 || args.span_count > most_spans))
    invalid("span_count",
            text("span_count is ", args.span_count, "; with SLUICE_SPANS it must be from 0 to ", most_spans));
  if (!has_spans && args.span_count != 0)
    invalid("span_count",
            text("span_count is ", args.span_count, ", but the problem's flags lack SLUICE_SPANS"));
}

} // namespace

const sluice_args &with_lengths(const sluice_problem &problem, const sluice_args &args, sluice_args &copy) {
  const bool takes_prefix_bound = problem.flags & SLUICE_SHARED_PREFIX && args.prefix_len == 0;
  if (args.flags & SLUICE_EXACT_LENGTHS) return args;
  if (args.q_len != 0 && args.kv_len != 0 && !takes_prefix_bound) return args;
  copy = args;
  if (copy.q_len == 0) copy.q_len = problem.max_q_len;
  if (copy.kv_len == 0) copy.kv_len = problem.max_kv_len;
  if (takes_prefix_bound) copy.prefix_len = problem.max_prefix_len;
  return copy;
}

void check_args(const sluice_problem &problem, const TensorRules &rules, const sluice_args &args) {
  constexpr uint32_t known = SLUICE_EXACT_SCALE | SLUICE_EXACT_LENGTHS;
  if (args.flags & ~known) {
    throw Failure(Status::newer_struct, "flags",
                  text("flags has unknown bits ", support::hexadecimal(args.flags & ~known),
                       ": the library is older than the caller's header"));
  }
  check_extents(problem, rules, args);
  check_scale(args.scale);
  if (runtime::has_no_rows(args)) return; // nothing else is used
  check_sequences(problem, args);
  check_counts(problem, rules, args);
  check_tensors(problem, rules, args);
  check_lse(problem, args);
  check_scores(problem, rules, args);
  check_scales(problem, rules, args);
  check_sequence_masks(problem, rules, args);
  if (problem.flags & SLUICE_SHARED_PREFIX) {
    check_prefix_extents(problem, rules, args);
    check_prefixes(problem, args);
    check_prefix_tensors(problem, rules, args);
  } else {
    check_no_prefixes(args);
  }
}

} // namespace sluice::abi

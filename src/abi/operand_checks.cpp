//===- operand_checks.cpp - the tensors of a call -------------------------------------------------------===//
#include "abi/args_checks.h"
#include "calls/args.h"
#include "calls/problem.h"

#include "runtime/dtype.h"
#include "support/checked.h"

#include <string_view>

namespace sluice::abi {
namespace {

using runtime::dtype_bytes;
using runtime::Rows;
using support::divide_up;

// One buffer descriptor serves a tile of K or V: its 64 rows of 16-bit elements span less than 4 GiB.
constexpr int64_t kv_row_stride_end = int64_t{1} << 25;
// Kernels reach the packs of a row of K with 31-bit offsets from its start.
constexpr int64_t pack_stride_end = int64_t{1} << 22;
// The same for the columns of V, up to 512, with 32-bit offsets.
constexpr int64_t column_stride_end = int64_t{1} << 23;

/// Checks a tensor of a call, of which it may use nothing.
void check_tensor(const Shape &shape, const TensorRules &rules, bool is_packed = false) {
  if (shape.extent[0] == 0 || shape.extent[1] == 0) return;
  check_pointer(shape, rules.pointer_alignment != 0 ? rules.pointer_alignment : shape.element_bytes);
  if (rules.unit_dim_stride && !is_packed) check_stride(shape, 3, 1);
  check_reach(shape, rules.address_end());
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
  TensorRules block_rules = rules;
  if (rules.pointer_alignment != 0 && type != SLUICE_U4) block_rules.pointer_alignment = 2;
  block_rules.stride_multiple = 1;
  check_tensor(shape, block_rules);
}

/// The stride of a dimension is below what kernels can add to an address.
void check_close(const Shape &shape, size_t dimension, int64_t end) {
  if (shape.extent[dimension] > 1 && shape.tensor.stride[dimension] >= end)
    far_stride(shape, dimension, end - 1);
}

/// `rows_of_v`: pages, sequences or prefixes of V, and the tokens of each.
void check_values(const calls::Problem &problem, const TensorRules &rules, std::string_view name,
                  const sluice_tensor &v, const Rows &rows_of_v) {
  if (rows_of_v.none()) return;
  const auto [outer, inner] = rows_of_v;
  const bool by_columns = problem.v_pack != 0, is_one_pack = problem.v_pack == SLUICE_PACK_ALL;
  const sluice_tensor packs = column_packs(name, v, problem.v_pack, inner);
  // Tokens of a column that are neighbours; whole groups of 8 are read.
  const int64_t pack = !by_columns ? 1 : is_one_pack ? divide_up(inner, int64_t{8}) * 8 : problem.v_pack;
  const Shape shape = {name,
                       packs,
                       {outer, divide_up(inner, pack), problem.kv_heads, problem.head_dim_v},
                       dtype_bytes(problem.v_type),
                       pack};
  check_keys(problem.v_type, shape, rules, by_columns);
  if (!rules.on_device()) return;
  check_close(shape, 1, kv_row_stride_end);
  if (by_columns) check_close(shape, 3, column_stride_end);
}

} // namespace

void check_tensors(const calls::Problem &problem, const TensorRules &rules, const calls::Args &args,
                   const Rows &rows, const Rows &keys) {
  const auto [q_outer, q_inner] = rows;
  const auto [kv_outer, kv_inner] = keys;
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
  if (problem.flags & calls::v_in_k) {
    check_absent("v", args.v, "the problem's flags have SLUICE_KV_V_IN_K");
  } else {
    check_values(problem, rules, "v", args.v, keys);
  }
  check_tensor(o, rules);
  check_disjoint(o);
  if (rules.on_device()) {
    check_close(k, 1, kv_row_stride_end);
    if (problem.k_pack != 0) check_close(k, 3, pack_stride_end);
  }
}

void check_lse(const calls::Problem &problem, const calls::Args &args, const Rows &rows) {
  if (!(problem.flags & calls::write_lse)) {
    check_absent("lse.data", args.lse.data, "the problem writes no LSE");
    return;
  }
  const Shape shape = {"lse", args.lse, {rows.outer, rows.inner, problem.q_heads, 1}, sizeof(float)};
  check_given(shape);
  check_tensor(shape, {sizeof(float), 1, false, 0});
  check_disjoint(shape);
}

void check_prefix_tensors(const calls::Problem &problem, const TensorRules &rules, const calls::Args &args) {
  constexpr std::string_view in_pages = "the keys of groups are in the pages of k and v";
  if (problem.mode == calls::paged) {
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
  if (rules.on_device()) check_close(k, 1, kv_row_stride_end);
  if (problem.flags & calls::v_in_k) {
    check_absent("prefix_v", args.prefix_v, "the problem's flags have SLUICE_KV_V_IN_K");
    return;
  }
  check_values(problem, rules, "prefix_v", args.prefix_v, rows);
}

} // namespace sluice::abi

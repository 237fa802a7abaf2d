//===- random_edges.cpp - random calls of few rows, odd strides, far scales and new memory --------------===//
#include "calls/problem.h"
#include "features/random_call.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace sluice::test {
namespace {

/// Any number, for a stride that means nothing.
int64_t any_stride(Numbers &random) {
  constexpr int64_t numbers[] = {
      0, 1, 3, -1, -8, 12345, std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max()};
  return numbers[random.below(std::size(numbers))];
}

} // namespace

void RandomCall::draw_few() {
  edges.few_rows = true;
  if (random.below(2)) problem.q_heads = problem.kv_heads = 1;
  const auto batch = random.below(4) == 0 ? random.below(2) * 2 : 1;
  q_lengths.assign(batch, 0);
  kv_lengths.assign(batch, 0);
  const bool own_rows = q_starts_given || q_lengths_given;
  const bool own_keys = problem.mode != calls::dense || kv_lengths_given;
  for (size_t b = 0; b < batch; ++b) {
    q_lengths[b] = b == 0 || own_rows ? int32_t(random.below(3)) : q_lengths[0];
    kv_lengths[b] = b == 0 || own_keys ? int32_t(random.below(3)) : kv_lengths[0];
  }
}

void RandomCall::bound(int32_t batch, int32_t q_len, int32_t kv_len) {
  problem.max_batch = batch;
  problem.max_q_len = q_len;
  problem.max_kv_len = kv_len;
}

/// Gives every stride of an extent of 1 an arbitrary number.
void RandomCall::bend_strides() {
  const auto bend = [&](sluice_tensor &tensor, std::array<int64_t, 4> extents) {
    for (size_t i = 0; i < 4; ++i)
      if (extents[i] <= 1) tensor.stride[i] = any_stride(random);
  };
  // Unknown numbers of rows and pages are more than one.
  const auto counted = [](int64_t count) { return count != 0 ? count : 2; };
  const bool paged = problem.mode == calls::paged, ragged = problem.mode == calls::ragged;
  const int64_t q_heads = problem.q_heads, kv_heads = problem.kv_heads, batch = args.batch;
  const int64_t q_outer = q_starts_given ? 1 : batch,
                q_inner = q_starts_given ? counted(args.q_tokens) : args.q_len;
  bend(args.q, {q_outer, q_inner, q_heads, problem.head_dim_qk});
  bend(args.o, {q_outer, q_inner, q_heads, problem.head_dim_v});
  if (lse) bend(args.lse, {q_outer, q_inner, q_heads, 1});

  const int64_t outer = paged ? counted(args.page_count) : ragged ? 1 : batch;
  const int64_t inner = paged ? problem.page_size : ragged ? counted(args.kv_tokens) : args.kv_len;
  bend(args.k, {outer, inner, kv_heads, problem.head_dim_qk / std::max(problem.k_pack, 1)});
  const bool has_v = !(problem.flags & calls::v_in_k);
  const int64_t packs =
      problem.v_pack > 0 && problem.v_pack != SLUICE_PACK_ALL ? inner / problem.v_pack : inner;
  if (has_v) bend(args.v, {outer, packs, kv_heads, problem.head_dim_v});
  const auto bend_scales = [&](sluice_tensor &scales, uint32_t kind) {
    if (scales.data != nullptr) bend(scales, {outer, kind == SLUICE_SCALE_PER_PAGE ? 1 : inner, kv_heads, 1});
  };
  if (problem.k_scale_kind != SLUICE_SCALE_PER_GROUP) {
    bend_scales(args.k_scales, problem.k_scale_kind);
    bend_scales(args.v_scales, problem.v_scale_kind);
  }
  if (args.prefix_k.data != nullptr) bend(args.prefix_k, {args.prefix_count, args.prefix_len, kv_heads, 2});
  if (args.prefix_v.data != nullptr) bend(args.prefix_v, {args.prefix_count, args.prefix_len, kv_heads, 2});
  if (args.bias.data != nullptr) bend(args.bias, {batch, q_heads, args.q_len, args.kv_len});
  const int64_t mask_keys = problem.flags & calls::mask_bits_of_new ? args.q_len : args.kv_len;
  if (args.mask.data != nullptr) bend(args.mask, {batch, q_heads, args.q_len, (mask_keys + 7) / 8});
  if (problem.page_table_kind == SLUICE_PAGE_TABLE_BLOCK && batch <= 1)
    args.page_table_stride = any_stride(random);
}

/// Multiplies the scales of Q by a power of two and divides those of K by it; V's have another.
void RandomCall::draw_far_scales() {
  constexpr int exponents[] = {-127, -126, -100, -60, 60, 100};
  const auto multiply = [](auto &scales, double factor) {
    if (!scales) return false;
    for (size_t n = 0; n < scales->size(); ++n)
      (*scales)[n] = float((*scales)[n] * factor);
    return true;
  };
  const double k_factor = std::ldexp(1, exponents[random.below(std::size(exponents))]);
  if (q_scale && (k_scale || k_scales)) {
    multiply(q_scale, 1 / k_factor);
    multiply(k_scale, k_factor);
    multiply(k_scales, k_factor);
  }
  const double v_factor = std::ldexp(1, exponents[random.below(std::size(exponents))]);
  if (problem.flags & calls::v_in_k) { // V has the scales of K
    if (q_scale && k_scale) o_unit = k_factor;
    if (q_scale && k_scales) o_unit = k_factor;
    return;
  }
  // Sums of far more than one V would be infinite in F32. Scales per token have a least number.
  if (v_scale && multiply(v_scale, v_factor)) o_unit = v_factor;
  if (v_scales && multiply(v_scales, std::max(v_factor, 0x1p-40))) o_unit = std::max(v_factor, 0x1p-40);
  if (o_scale && v_scale && multiply(o_scale, v_factor > 0x1p-100 ? v_factor : 1))
    o_unit = v_factor > 0x1p-100 ? 1 : v_factor;
}

} // namespace sluice::test

//===- attention_launch_test.cpp - a launch of tensors without gaps -------------------------------------===//
#include "package/attention_launch.h"

#include <catch2/catch.hpp>

#include <cstdint>

using namespace sluice::package;

namespace {

/// Head dims of 96 and 64, so that no two numbers of a launch are the same.
KernelEntry kernel() {
  KernelEntry kernel;
  kernel.name = {"attention_forward", "f16", 96, 64, 128, 64, 4};
  kernel.threads = 256;
  return kernel;
}

/// 3 sequences of 200 rows and 300 keys, 10 query heads on 2 KV heads.
AttentionLaunch launch(AttentionShape::Mask mask) {
  return contiguous_launch(kernel(), {3, 200, 300, 10, 2, mask}, {11, 12, 13, 14, 15});
}

/// A division by such a number as kernels compute it: support/divisor.h.
uint32_t divided(uint32_t value, uint32_t magic, uint32_t shift) {
  return uint32_t(uint64_t{2 * value} * magic >> 32) >> shift;
}

} // namespace

TEST_CASE("plain arguments ask for nothing beyond plain attention", "[launch]") {
  const AttentionKernargs args = plain_kernargs(kernel().name);
  CHECK(args.window_left == kernarg_no_window);
  CHECK(args.window_right == kernarg_no_window);
  CHECK(args.score_flags == 0);
  CHECK(args.max_rows == INT32_MAX);
  CHECK(args.head_dim_qk == 96);
  CHECK(args.head_dim_v == 64);
  CHECK(args.min_split_tiles == 1);
  CHECK(args.lse_per_log2 == Approx(0.693147f));
  CHECK(args.k_pack_log2 == 31);
  CHECK(args.group == 1);
  CHECK(args.splits == 1);
  CHECK(args.page_rows == INT32_MAX);
  CHECK(divided(1000, args.group_magic, args.group_shift) == 1000);
  CHECK(divided(1000, args.splits_magic, args.splits_shift) == 1000);
  CHECK(divided(INT32_MAX - 1, args.page_magic, args.page_shift) == 0);
  CHECK(divided(INT32_MAX, args.page_magic, args.page_shift) == 1);
  CHECK(args.kv_heads == kernarg_no_grid);
  CHECK(args.grid_tiles == kernarg_no_grid);
  CHECK(args.grid_batch == kernarg_no_grid);
  CHECK(args.next_batch == kernarg_no_grid);
}

TEST_CASE("arguments that divide come with the numbers to do it", "[launch]") {
  AttentionKernargs args = plain_kernargs(kernel().name);
  set_group(args, 7);
  set_splits(args, 11);
  set_page_rows(args, 48);
  CHECK(args.group == 7);
  CHECK(args.splits == 11);
  CHECK(args.page_rows == 48);
  for (const uint32_t value : {0u, 6u, 7u, 10u, 11u, 47u, 48u, 1000u}) {
    CHECK(divided(value, args.group_magic, args.group_shift) == value / 7);
    CHECK(divided(value, args.splits_magic, args.splits_shift) == value / 11);
    CHECK(divided(value, args.page_magic, args.page_shift) == value / 48);
  }
}

TEST_CASE("tensors without gaps: rows of all heads, sequence by sequence, and LSE head by head", "[launch]") {
  const AttentionLaunch made = launch(AttentionShape::none);
  CHECK(made.kernel == format_kernel_name(kernel().name));
  // Five query heads share a KV head: 1000 rows in tiles of 128.
  CHECK(made.grid == std::array<uint32_t, 3>{2, 8, 3});
  CHECK(made.block == std::array<uint32_t, 3>{256, 1, 1});
  const AttentionKernargs &args = made.arguments;
  CHECK(args.q == 11);
  CHECK(args.k == 12);
  CHECK(args.v == 13);
  CHECK(args.o == 14);
  CHECK(args.lse == 15);
  CHECK(args.q_head_stride == 96);
  CHECK(args.k_head_stride == 96);
  CHECK(args.v_head_stride == 64);
  CHECK(args.o_head_stride == 64);
  CHECK(args.q_token_stride == 10 * 96);
  CHECK(args.k_token_stride == 2 * 96);
  CHECK(args.v_token_stride == 2 * 64);
  CHECK(args.o_token_stride == 10 * 64);
  CHECK(args.q_batch_stride == 200 * 10 * 96);
  CHECK(args.k_batch_stride == 300 * 2 * 96);
  CHECK(args.v_batch_stride == 300 * 2 * 64);
  CHECK(args.o_batch_stride == 200 * 10 * 64);
  CHECK(args.lse_token_stride == 1);
  CHECK(args.lse_head_stride == 200);
  CHECK(args.lse_batch_stride == 10 * 200);
  CHECK(args.scale_log2e == Approx(1.442695f / 9.797959f));
  CHECK(args.q_len == 200);
  CHECK(args.kv_len == 300);
  CHECK(args.group == 5);
  CHECK(made.kernarg().size() == sizeof args);
}

TEST_CASE("a mask is a window, from one corner or the other", "[launch]") {
  CHECK(launch(AttentionShape::none).arguments.window_right == kernarg_no_window);
  const AttentionKernargs bottom_right = launch(AttentionShape::bottom_right).arguments;
  CHECK(bottom_right.window_right == 0);
  CHECK(bottom_right.score_flags == 0);
  const AttentionKernargs top_left = launch(AttentionShape::top_left).arguments;
  CHECK(top_left.window_right == 0);
  CHECK(top_left.score_flags == score_top_left);
  CHECK(top_left.window_left == kernarg_no_window);
}

//===- cost_test.cpp - exactly known parts of the estimate ----------------------------------------------===//
//
// choice_test.cpp checks that the whole estimate is near the timing model's.
//
//===----------------------------------------------------------------------------------------------------===//
#include "calls/problem.h"
#include "runtime/cost.h"

#include <catch2/catch.hpp>

using namespace sluice;
using namespace sluice::runtime;

namespace {

calls::Problem problem_of(int32_t q_heads, int32_t dim = 128) {
  calls::Problem problem = {};
  problem.q_type = problem.k_type = problem.v_type = problem.o_type = SLUICE_F16;
  problem.q_heads = q_heads;
  problem.kv_heads = 1;
  problem.head_dim_qk = problem.head_dim_v = dim;
  return problem;
}

/// Keys that a tile of 8 rows sees, rounded up.
uint64_t seen(const calls::Problem &problem, int64_t rows, int64_t keys) {
  package::KernelName name;
  name.tile_q = 8;
  name.tile_kv = 1;
  return tiles_seen(name, {problem, 1, rows, keys});
}

/// The cost of a merge besides the time of its bytes; 0 without one.
double fixed_clk(int32_t dim, uint64_t splits, int64_t batch = 1) {
  package::KernelEntry kernel;
  kernel.name = {"attention_forward", "f16", uint32_t(dim), uint32_t(dim), 16, 16, 1};
  kernel.name.form = "decode";
  kernel.threads = 64;
  const calls::Problem problem = problem_of(8, dim);
  const Estimate found = estimate(kernel, {problem, batch, 1, int64_t(splits) * 16}, splits, 304);
  const double bytes = double(batch) * 8 * dim * 4 * double(splits);
  return splits == 1 ? found.merge_clk
                     : found.merge_clk - bytes / (chip::hbm_terabytes * 1e12 / (chip::clock_mhz * 1e6));
}

/// Without the figures of machine code.
package::KernelEntry four_decode_waves() {
  package::KernelEntry kernel;
  kernel.name = {"attention_forward", "f16", 128, 128, 64, 16, 4};
  kernel.name.form = "decode";
  kernel.threads = 256;
  return kernel;
}

} // namespace

TEST_CASE("a tile of a kernel without figures takes its MFMAs", "[cost]") {
  package::KernelEntry kernel = four_decode_waves();
  const calls::Problem problem = problem_of(1);
  const auto clk = [&](int64_t keys) { return estimate(kernel, {problem, 1, 1, keys}, 1, 304).clk(); };
  // 16 rows of a wave, 16 keys, 128 elements of K and of V; a multiplication and an addition each.
  CHECK(clk(1600) - clk(160) == Approx(90 * 2.0 * 16 * 16 * 256 / chip::matrix_flop_16_bit));
}

TEST_CASE("a kernel that does not fit is estimated as if one workgroup did", "[cost]") {
  package::KernelEntry kernel = four_decode_waves();
  const calls::Problem problem = problem_of(1);
  const auto clk = [&] { return estimate(kernel, {problem, 304, 1, 160}, 1, 304).clk(); };
  kernel.lds_bytes = 65536;
  const double one = clk();
  kernel.lds_bytes = 65537;
  CHECK(clk() == one);
}

TEST_CASE("results are F32 with two splits or more", "[cost]") {
  package::KernelEntry kernel;
  kernel.name = {"attention_forward", "f16", 128, 128, 256, 16, 8};
  kernel.threads = 512;
  calls::Problem rounded = problem_of(1), not_rounded = rounded;
  not_rounded.o_type = SLUICE_F32;
  const auto clk = [&](const calls::Problem &problem, uint64_t splits) {
    return estimate(kernel, {problem, 1000, 256, 48}, splits, 304).attention_clk;
  };
  CHECK(clk(rounded, 1) < clk(not_rounded, 1));
  CHECK(clk(rounded, 2) == clk(not_rounded, 2));
  CHECK(clk(rounded, 3) == clk(not_rounded, 3));
}

TEST_CASE("the number of keys that a tile sees, on average", "[cost]") {
  calls::Problem problem = problem_of(1);
  CHECK(seen(problem, 20, 1000) == 1000);
  // The middle of 20 rows, and half a tile after it.
  problem.flags = calls::causal;
  CHECK(seen(problem, 20, 1000) == 1000 - 20 + 14);
  CHECK(seen(problem, 4, 1000) == 1000 - 4 + 4);
  CHECK(seen(problem, 20, 5) == 1);
  problem.mask_alignment = SLUICE_TOP_LEFT;
  CHECK(seen(problem, 20, 1000) == 14);
  CHECK(seen(problem, 20, 10) == 10);
}

TEST_CASE("rows of several heads are fewer tokens", "[cost]") {
  calls::Problem problem = problem_of(4);
  problem.flags = calls::causal;
  CHECK(seen(problem, 20, 1000) == 1000 - 20 + 11);
  problem.q_heads = 16;                             // a token takes two tiles
  CHECK(seen(problem, 20, 1000) == 1000 - 20 + 11); // 10.5
}

TEST_CASE("a window with two ends bounds the visible keys", "[cost]") {
  calls::Problem problem = problem_of(1);
  problem.window_left = 100;
  problem.window_right = 30;
  problem.sink_tokens = 5;
  problem.flags = calls::window_left;
  CHECK(seen(problem, 20, 1000) == 1000);
  problem.flags = calls::window_right;
  CHECK(seen(problem, 20, 1000) == 1000);
  problem.flags = calls::window_left | calls::window_right;
  CHECK(seen(problem, 20, 1000) == 100 + 30 + 8 + 5);
  problem.flags = calls::window_left | calls::causal;
  CHECK(seen(problem, 20, 1000) == 100 + 8 + 5);
  CHECK(seen(problem, 20, 50) == 44);
}

TEST_CASE("a merge reads few splits and bytes at once, and loops over many", "[cost]") {
  CHECK(fixed_clk(64, 1) == 0);
  CHECK(fixed_clk(64, 2) == Approx(merge_at_once_clk));
  CHECK(fixed_clk(64, 64) == Approx(merge_at_once_clk));
  CHECK(fixed_clk(64, 65) == Approx(merge_clk));
  CHECK(fixed_clk(64, 128) == Approx(merge_clk));
  CHECK(fixed_clk(64, 129) == Approx(merge_clk + merge_round_clk));
  CHECK(fixed_clk(256, 32) == Approx(merge_at_once_clk));
  CHECK(fixed_clk(256, 33) == Approx(merge_clk + merge_round_clk));
  // 4 MiB of splits.
  CHECK(fixed_clk(64, 64, 32) == Approx(merge_at_once_clk));
  CHECK(fixed_clk(64, 64, 33) == Approx(merge_clk));
}

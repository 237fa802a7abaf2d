//===- by_cost_test.cpp - where the cheapest choice changes ---------------------------------------------===//
//
// Kernels here are as slow or as fast as a test needs; choice_test.cpp has kernels with real figures.
//
//===----------------------------------------------------------------------------------------------------===//
#include "calls/problem.h"
#include "choice_fixture.h"

#include "runtime/by_cost.h"
#include "runtime/splits.h"

#include <catch2/catch.hpp>

using namespace sluice::runtime;
namespace calls = sluice::calls;
using namespace sluice::test;

namespace {

/// A kernel whose loop takes this many times as long for the same work.
KernelEntry slower(KernelEntry kernel, double factor) {
  for (uint32_t *clk : {&kernel.loop_slot_clk, &kernel.loop_wave_clk})
    *clk = uint32_t(*clk * factor);
  return kernel;
}

double clk_of(const KernelEntry &kernel, const calls::Problem &problem, int64_t rows, uint64_t splits = 1) {
  return estimate(kernel, {problem, problem.max_batch, rows, problem.max_kv_len}, splits, 304).clk();
}

/// As slow as necessary to take `clk`.
KernelEntry slowed_to(double clk, const KernelEntry &kernel, const calls::Problem &problem) {
  double factor = 0.01;
  while (clk_of(slower(kernel, factor), problem, problem.max_q_len) < clk)
    factor *= 1.01;
  return slower(kernel, factor);
}

/// So slow that memory does not matter, and one per compute unit, so that each row tile costs the same.
KernelEntry slow_packed() {
  KernelEntry kernel = slower(sharing, 100);
  kernel.vgprs = 512;
  return kernel;
}

/// A device full of row tiles, and no workspace for splits.
calls::Problem without_splits(int32_t rows) {
  calls::Problem problem = problem_of(304, rows, 1024, 1, 1);
  problem.workspace_ceiling_bytes = 1;
  return problem;
}

} // namespace

TEST_CASE("no other number of splits is cheaper by more than a hundredth", "[cheapest]") {
  const Target device({sharing});
  std::vector<uint64_t> chosen;
  for (const int32_t batch : {1, 2, 5, 10, 18, 19, 20, 30})
    for (const int32_t keys : {16, 32, 48, 160, 1000, 8192, 131072}) {
      const calls::Problem problem = problem_of(batch, 1, keys);
      const Choice choice = device.choose(problem);
      INFO(batch << " x " << keys << " keys: " << choice.reason);
      for (uint64_t splits = 1; splits <= 600; ++splits)
        CHECK(choice.own.estimate->clk() <= 1.01 * clk_of(sharing, problem, 1, splits));
      chosen.push_back(choice.own.splits.count);
    }
  CHECK(std::ranges::count(chosen, 1) != 0);
  CHECK(std::ranges::count(chosen, 2) != 0); // or only one is tried
}

TEST_CASE("splits may have one tile", "[cheapest]") {
  const KernelEntry slow = slower(high, 50);
  const calls::Problem problem = problem_of(1, 1, 32 * 7);
  const Choice choice = Target({slow}).choose(problem);
  CHECK(choice.own.splits.count == 7);
  CHECK(choice.own.estimate->clk() == clk_of(slow, problem, 1, 7));
}

TEST_CASE("the runner-up is named with its splits", "[cheapest]") {
  for (const int32_t keys : {32, 64}) {
    const Target device({sharing, slower(high, 5)});
    const Choice choice = device.choose(problem_of(1, 1, keys));
    CHECK(choice.own.few->entry.name == sharing.name);
    const std::string splits = keys == 32 ? "" : " in 2 splits";
    CHECK_THAT(choice.reason,
               Catch::Contains("; next: attn_fwd_bf16_d128_q128_kv32_w8_decode" + splits + ", "));
  }
}

TEST_CASE("up to 1024 rows are few without a bound of rows, if that is cheaper", "[cheapest]") {
  calls::Problem problem = problem_of(1, 0, 4096);
  problem.workspace_ceiling_bytes = uint64_t{1} << 40;
  const KernelEntry slow = slower(prefill_8, 100);
  const Choice choice = Target({slow, sharing}).choose(problem);
  REQUIRE(choice.own.many != nullptr);
  CHECK(choice.own.few_rows == 1024);
  CHECK(choice.own.estimate->clk() == clk_of(slow, problem, 4096));
  // The splits of this many rows fit the workspace, and those of twice as many do not.
  calls::Problem few = problem;
  few.max_q_len = 2;
  const uint64_t splits = Target({sharing}).choose(few).own.splits.count;
  REQUIRE(splits > 1);
  problem.workspace_ceiling_bytes = splits_layout(problem, uint32_t(splits), 16).bytes;
  const Choice bounded = Target({slow, sharing}).choose(problem);
  CHECK(bounded.own.splits.count == splits);
  CHECK(bounded.own.few_rows == 16);
  CHECK(bounded.workspace_bytes == problem.workspace_ceiling_bytes);
  --problem.workspace_ceiling_bytes;
  CHECK(Target({slow, sharing}).choose(problem).workspace_bytes <= problem.workspace_ceiling_bytes);
}

TEST_CASE("few rows are no more than the bound of rows", "[cheapest]") {
  // A prefill tile of 96 rows: 97 to 128 rows need two, and the decode kernel is cheaper again.
  const KernelEntry slow = slow_packed();
  KernelEntry prefill = prefill_8;
  prefill.name.tile_q = 96;
  const calls::Problem problem = without_splits(96);
  prefill = slowed_to(1.05 * clk_of(slow, problem, 96), prefill, problem);
  REQUIRE(1.1 * clk_of(slow, problem, 64) < clk_of(prefill, problem, 64));
  REQUIRE(1.1 * clk_of(slow, problem, 96) > clk_of(prefill, problem, 96));
  REQUIRE(1.1 * clk_of(slow, problem, 128) < clk_of(prefill, problem, 128));
  const Target device({prefill, slow});
  CHECK(device.choose(problem).own.many->entry.name == prefill.name);
  CHECK(device.choose(problem).own.few_rows == 64);
}

TEST_CASE("a decode kernel whose tile does not hold the rows has to be cheaper by a tenth", "[cheapest]") {
  const KernelEntry slow = slow_packed();
  const calls::Problem problem = without_splits(96);
  for (const double ratio : {0.95, 1.05, 1.15}) {
    const KernelEntry prefill = slowed_to(ratio * clk_of(slow, problem, 96), prefill_4, problem);
    const Choice choice = Target({prefill, slow}).choose(problem);
    INFO(ratio << ": " << choice.reason);
    CHECK((choice.own.many == nullptr) == (ratio > 1.1));
  }
}

TEST_CASE("rows that fill a wave go to a decode kernel even if a prefill kernel is faster", "[cheapest]") {
  const Target device({slower(prefill_8, 0.001), slower(sharing, 100)});
  CHECK(device.choose(problem_of(8, 2, 4096)).own.few->entry.name == sharing.name);
  CHECK(device.choose(problem_of(8, 2, 4096)).own.many == nullptr);
  CHECK(device.choose(problem_of(8, 3, 4096)).own.many->entry.name == prefill_8.name);
  CHECK(device.choose(problem_of(8, 3, 4096)).own.few_rows == 2);
}

TEST_CASE("a prefill kernel in a plan with a decode kernel has no splits, nor does its estimate",
          "[cheapest]") {
  const KernelEntry slow = slower(sharing, 100);
  const calls::Problem problem = problem_of(3, 20, 131072, 8, 1);
  const Choice choice = Target({prefill_8, slow}).choose(problem);
  REQUIRE(choice.own.many != nullptr);
  CHECK(choice.own.estimate->clk() == clk_of(prefill_8, problem, 20));
  CHECK(clk_of(prefill_8, problem, 20, 2) < clk_of(prefill_8, problem, 20));
}

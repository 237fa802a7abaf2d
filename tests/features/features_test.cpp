//===- features_test.cpp - random calls on the device against the host ----------------------------------===//
#include "features/random_call.h"

#include <cstdlib>

using namespace sluice::test;

namespace {

/// How many calls a test makes; more are for a longer search.
uint64_t calls() {
  const char *count = std::getenv("SLUICE_TEST_CALLS");
  return count ? std::strtoull(count, nullptr, 10) : 90;
}

/// Errors of rounding P, which for FP8 is by up to 2^-4, and O to its own type; V is at most 1.5 here.
double o_tolerance(const RandomCall &call) {
  const sluice_problem &problem = call.problem;
  const double of_fp8 = problem.q_type == SLUICE_E4M3FNUZ ? 1.5 * 0x1p-4 : 0;
  const bool has_bf16 = problem.q_type == SLUICE_BF16 || problem.o_type == SLUICE_BF16;
  return of_fp8 + (has_bf16 ? 2e-2 : 4e-3);
}

void check(RandomCall &call, uint64_t seed) {
  INFO("seed " << seed << ": " << call.text());
  call.prepare();
  if (call.edges.never_written)
    call.run_from_new_memory();
  else
    call.run();
  call.refer();
  const RandomCall::Difference difference = call.compare();
  INFO(difference.where);
  CHECK(difference.o <= o_tolerance(call));
  CHECK(difference.lse <= 1e-4);
}

/// A single seed, to debug it.
uint64_t first_seed() {
  const char *seed = std::getenv("SLUICE_TEST_SEED");
  return seed ? std::strtoull(seed, nullptr, 10) : 0;
}
uint64_t end_seed() {
  return std::getenv("SLUICE_TEST_SEED") ? first_seed() + 1 : calls();
}

} // namespace

TEST_CASE("random calls match the reference", "[features]") {
  for (uint64_t seed = first_seed(); seed < end_seed(); ++seed) {
    RandomCall call(seed);
    check(call, seed);
  }
}

TEST_CASE("random calls of plans with bounds, which split keys, match the reference", "[features]") {
  for (uint64_t seed = first_seed(); seed < end_seed(); ++seed) {
    RandomCall call(1000 + seed);
    call.problem.max_batch = 3;
    call.problem.max_kv_len = 4000;
    call.problem.max_q_len = 150;
    call.problem.determinism = uint32_t(seed % 2);
    check(call, seed);
  }
}

TEST_CASE("random calls of no rows, no keys and one of each match the reference", "[features]") {
  for (uint64_t seed = first_seed(); seed < end_seed(); ++seed) {
    RandomCall call(2000 + seed);
    call.draw_few();
    call.edges.odd_strides = seed % 2 != 0;
    call.edges.never_written = seed % 4 < 2;
    if (seed % 3 == 0) call.bound(2, 2, 40);
    check(call, seed);
  }
}

TEST_CASE("strides of extents of 1 mean nothing", "[features]") {
  for (uint64_t seed = first_seed(); seed < end_seed(); ++seed) {
    RandomCall call(3000 + seed, {1, 20, 90});
    call.edges.odd_strides = true;
    check(call, seed);
  }
}

TEST_CASE("scales may be subnormal, tiny and huge", "[features]") {
  for (uint64_t seed = first_seed(); seed < end_seed(); ++seed) {
    RandomCall call(4000 + seed, {2, 40, 90});
    call.problem.q_scale_kind = call.problem.k_scale_kind = call.problem.v_scale_kind =
        1 + uint32_t(seed % 2);
    call.edges.far_scales = true;
    call.problem.o_type = SLUICE_F32; // else a difference of rounding may be one of infinities
    check(call, seed);
  }
}

TEST_CASE("what was never written is not read, or decides nothing", "[features]") {
  for (uint64_t seed = first_seed(); seed < end_seed(); ++seed) {
    RandomCall call(5000 + seed, {3, 40, 120});
    call.edges.never_written = true;
    check(call, seed);
  }
}

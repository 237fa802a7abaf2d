//===- features_test.cpp - random calls on the device against the host ----------------------------------===//
#include "calls/problem.h"
#include "features/random_call.h"

#include <cstdlib>

using namespace sluice::test;
namespace calls = sluice::calls;

namespace {

/// How many calls a test makes; more are for a longer search.
uint64_t calls() {
  const char *count = std::getenv("SLUICE_TEST_CALLS");
  return count ? std::strtoull(count, nullptr, 10) : 90;
}

/// Errors of rounding P, which for FP8 is by up to 2^-4, and O to its own type; V is at most 1.5 here.
double o_tolerance(const RandomCall &call) {
  const calls::Problem &problem = call.problem;
  const double fp8_error = problem.q_type == SLUICE_E4M3FNUZ ? 1.5 * 0x1p-4 : 0;
  const bool has_bf16 = problem.q_type == SLUICE_BF16 || problem.o_type == SLUICE_BF16;
  return fp8_error + (has_bf16 ? 2e-2 : 4e-3);
}

enum class Memory { initialised, fresh };

void check(RandomCall &call, uint64_t seed, Memory memory = Memory::initialised) {
  INFO("seed " << seed << ": " << call.text());
  call.prepare();
  if (memory == Memory::fresh)
    call.run_on_fresh_memory();
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

TEST_CASE("nothing that was never written outside the sequences matters", "[features][fresh]") {
  for (uint64_t seed = first_seed(); seed < end_seed(); ++seed) {
    RandomCall call(2000 + seed);
    // The rest of a padded row is part of it.
    if (call.problem.flags & calls::padded_rows) {
      call.problem.flags &= ~uint32_t(calls::padded_rows);
      call.problem.head_dim_qk = (call.problem.head_dim_qk + 7) / 8 * 8;
      call.problem.head_dim_v = (call.problem.head_dim_v + 7) / 8 * 8;
    }
    if (seed % 2 == 0) {
      call.problem.max_batch = 3;
      call.problem.max_kv_len = 4000;
      call.problem.max_q_len = 150;
    }
    check(call, seed, Memory::fresh);
  }
}

TEST_CASE("random calls of plans with bounds, which split keys, match the reference", "[features]") {
  for (uint64_t seed = first_seed(); seed < end_seed(); ++seed) {
    RandomCall call(1000 + seed);
    call.problem.max_batch = 3;
    call.problem.max_kv_len = 4000;
    call.problem.max_q_len = 150;
    if (seed % 2) call.problem.flags |= calls::batch_invariant;
    check(call, seed);
  }
}

TEST_CASE("random calls of no rows, no keys and one of each match the reference", "[features]") {
  for (uint64_t seed = first_seed(); seed < end_seed(); ++seed) {
    RandomCall call(6000 + seed);
    call.draw_few();
    call.edges.odd_strides = seed % 2 != 0;
    if (seed % 3 == 0) call.bound(2, 2, 40);
    // The rest of a padded row is part of it.
    const bool is_fresh = seed % 4 < 2 && !(call.problem.flags & calls::padded_rows);
    check(call, seed, is_fresh ? Memory::fresh : Memory::initialised);
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

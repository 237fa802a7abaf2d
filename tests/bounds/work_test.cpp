//===- work_test.cpp - matrix instructions that calls execute -------------------------------------------===//
//
// Prefill kernels use one shape of MFMA and decode kernels another, so counts by shape show which did the
// work.
//
//===----------------------------------------------------------------------------------------------------===//
#include "bounds/batch.h"
#include "bounds/figures.h"
#include "calls/problem.h"

#include <algorithm>
#include <string>

using namespace sluice::test;
namespace calls = sluice::calls;

namespace {

struct Work {
  uint64_t prefill, decode, all; // MFMAs
};

uint64_t executed(const char *mnemonic) {
  uint64_t count = 0;
  REQUIRE(sluice_emulator_mfma_count(mnemonic, &count) == SLUICE_EMULATOR_OK);
  return count;
}

/// The instructions that a complete run executes.
Work work_of(Batch &batch, const PlanHandle &plan) {
  REQUIRE(sluice_emulator_configure("reset_counters", "1") == SLUICE_EMULATOR_OK);
  batch.run(plan);
  sluice_emulator_counters_t counters;
  REQUIRE(sluice_emulator_counters(&counters, sizeof counters) == SLUICE_EMULATOR_OK);
  const bool f16 = batch.problem.q_type == SLUICE_F16;
  if (batch.problem.q_type == SLUICE_E4M3FNUZ)
    return {executed("v_mfma_f32_32x32x16_fp8_fp8"), executed("v_mfma_f32_16x16x32_fp8_fp8"),
            counters.mfma_instructions};
  return {executed(f16 ? "v_mfma_f32_32x32x8_f16" : "v_mfma_f32_32x32x8_bf16"),
          executed(f16 ? "v_mfma_f32_16x16x16_f16" : "v_mfma_f32_16x16x16_bf16"), counters.mfma_instructions};
}
Work work_of(Batch &batch) {
  return work_of(batch, plan_of(batch.problem));
}

/// The number of rows up to which a sequence goes to a decode kernel at any cost: 16 rows of tokens and the
/// query heads of a group.
int32_t decode_rows(int32_t group) {
  return std::max(16 / group, 1);
}

/// Keys in a tile of the plan's decode kernel: its only one, or the one that its reason names for sequences
/// of few rows.
int32_t decode_tile_kv(const Batch &batch) {
  const sluice_plan_info info = describe(plan_of(batch.problem));
  std::string kernel = info.kernel;
  if (!kernel.ends_with("_decode")) {
    const std::string reason = info.reason, few = " rows: ";
    const size_t name = reason.find(few);
    INFO(reason);
    REQUIRE(name != std::string::npos);
    kernel = reason.substr(name + few.size());
  }
  INFO(kernel);
  const size_t tile = kernel.find("_kv");
  REQUIRE(tile < kernel.find("_decode"));
  return std::stoi(kernel.substr(tile + 3));
}

/// The count that follows from the definition of the tiles for causal sequences: for each KV head and each 16
/// rows of tokens and heads, each 16 keys of the tiles that the last of these rows sees take one MFMA for
/// every 16 columns of K and of V; where all are FP8, each 32 do.
uint64_t expected_decode(const Batch &batch) {
  const bool is_fp8 = batch.problem.q_type == SLUICE_E4M3FNUZ;
  const int32_t tile_kv = decode_tile_kv(batch), mfma_keys = is_fp8 ? 32 : 16;
  const int32_t group = batch.problem.q_heads / batch.problem.kv_heads;
  uint64_t products = 0;
  for (const Sequence &sequence : batch.sequences) {
    if (sequence.rows > decode_rows(group)) continue;
    for (int32_t first = 0; first < sequence.rows * group; first += 16) {
      const int32_t last_token = std::min((first + 15) / group, sequence.rows - 1);
      const int32_t seen = std::max(sequence.keys - sequence.rows + last_token + 1, 0);
      products += uint64_t((seen + tile_kv - 1) / tile_kv) * uint64_t(tile_kv / mfma_keys);
    }
  }
  return products * uint64_t(batch.problem.kv_heads) *
         uint64_t(batch.problem.head_dim_qk + batch.problem.head_dim_v) / 16;
}

constexpr uint32_t modes[] = {calls::dense, calls::ragged, calls::paged};
constexpr int32_t groups[] = {1, 4, 8, 32};

calls::Problem bounded(calls::Problem problem) {
  problem.max_batch = 16;
  problem.max_q_len = 100;
  problem.max_kv_len = 700;
  return problem;
}

} // namespace

TEST_CASE("one token never runs in a tile of more than 16 rows", "[bounds]") {
  for (const uint32_t mode : modes)
    for (const int32_t group : groups)
      for (const bool has_bounds : {false, true}) {
        INFO("mode " << mode << ", group " << group << (has_bounds ? ", bounds" : ""));
        calls::Problem problem =
            problem_of({.mode = mode, .group = group, .head_dim = group == 4 ? 64 : 128});
        if (has_bounds) problem = bounded(problem);
        // The call allows for more rows, as a prefill in the same batch would need.
        Batch batch(problem, {{1, 300}, {1, 1, 2}, {1, 17, 3}, {0, 5, 4}, {1, 0, 5}, {1, 640, 6}}, 70);
        const Work work = work_of(batch);
        CHECK(work.prefill == 0);
        CHECK(work.decode == expected_decode(batch));
        CHECK(work.all == work.decode);
      }
}

TEST_CASE("each sequence of a mixed batch runs in its own kind of tile", "[bounds]") {
  for (const uint32_t mode : modes)
    for (const int32_t group : groups) {
      INFO("mode " << mode << ", group " << group);
      const int32_t few = decode_rows(group);
      calls::Problem problem = bounded(problem_of({.mode = mode, .group = group}));
      problem.flags |= calls::batch_invariant; // else the cheaper one is taken at these bounds
      const std::vector<Sequence> many = {{few + 1, 90, 7}, {70, 130, 8}};
      std::vector<Sequence> mixed = {{1, 300, 1}, {few, 100, 2}};
      mixed.insert(mixed.end(), many.begin(), many.end());
      mixed.push_back({few, 33, 3});
      Batch large(problem, many), together(problem, mixed);
      const Work large_work = work_of(large), all = work_of(together);
      CHECK(large_work.decode == 0);
      CHECK(large_work.prefill > 0);
      CHECK(all.prefill == large_work.prefill);
      CHECK(all.decode == expected_decode(together));
      CHECK(all.all == all.prefill + all.decode);
      together.compare_with_reference();
    }
}

TEST_CASE("every product is FP8 if Q, K and V are", "[bounds]") {
  for (const uint32_t mode : modes)
    for (const int32_t group : groups) {
      INFO("mode " << mode << ", group " << group);
      calls::Problem problem = problem_of(
          {.mode = mode, .group = group, .head_dim = group == 4 ? 64 : 128, .type = SLUICE_E4M3FNUZ});
      problem.o_type = group == 1 ? SLUICE_BF16 : SLUICE_F16;
      Batch batch(problem, {{1, 300, 1}, {70, 130, 2}, {5, 33, 3}, {1, 32, 4}, {0, 9, 5}, {2, 0, 6}});
      const Work work = work_of(batch);
      CHECK(work.decode == expected_decode(batch));
      CHECK(work.prefill > 0);
      CHECK(work.all == work.decode + work.prefill);
      batch.compare_with_reference();
    }
}

TEST_CASE("causal attention executes at most 1.3 times the ideal work at 1024 tokens", "[bounds]") {
  for (const uint32_t type : {SLUICE_F16, SLUICE_BF16})
    for (const int32_t dim : {64, 128}) {
      INFO("type " << type << ", head dim " << dim);
      Batch batch(problem_of({.head_dim = dim, .type = type}), {{1024, 1024}});
      const Work work = work_of(batch);
      CHECK(work.decode == 0);
      CHECK(work.all == work.prefill);
      // Two operations in each of 32 * 32 * 8; two products of every visible pair over the head dim.
      const double operations = double(work.prefill) * 2 * 32 * 32 * 8,
                   ideal = 1024.0 * 1025 / 2 * dim * 2 * 2;
      CHECK(operations <= 1.3 * ideal);
      CHECK(operations >= ideal);
      check_page(table_row({type == SLUICE_F16 ? "F16" : "BF16", std::to_string(dim),
                            std::to_string(work.prefill), decimal(operations / ideal, 3)}));
    }
}

//===- splits_test.cpp - splits of the keys, their workspace, and where there are too many --------------===//
#include "calls/problem.h"
#include "runtime/splits.h"

#include "support/failure.h"

#include <catch2/catch.hpp>

#include <string>

using namespace sluice;
using namespace sluice::runtime;

namespace {

/// 8 heads of dim 64, 3 sequences, 8192 keys.
calls::Problem problem() {
  calls::Problem problem = {};
  problem.q_heads = 8;
  problem.kv_heads = 2;
  problem.head_dim_qk = problem.head_dim_v = 64;
  problem.max_batch = 3;
  problem.max_kv_len = 8192;
  problem.max_q_len = 2;
  return problem;
}

/// O and LSE of a row of all heads.
constexpr uint64_t row_bytes = 8 * (64 + 1) * 4;

package::KernelName kernel_of(uint32_t tile_kv) {
  package::KernelName kernel;
  kernel.tile_kv = tile_kv;
  return kernel;
}

/// The splits at fixed places of a kernel for up to `few_rows` rows, and their workspace.
struct Fixed {
  Splits splits;
  uint64_t workspace_bytes = 0;
  std::string refusal;

  explicit Fixed(const calls::Problem &problem, int32_t few_rows = 4) {
    try {
      splits = fixed_splits(problem, kernel_of(16), few_rows);
      workspace_bytes = splits_workspace(problem, splits.count, few_rows);
    } catch (const support::Failure &failure) {
      CHECK(failure.status() == support::Status::unsupported);
      refusal = failure.field() + ": " + failure.message();
    }
  }
};

const std::string invariant = "with SLUICE_ATTENTION_BATCH_INVARIANT the nearest supported is ";

} // namespace

TEST_CASE("splits are contiguous, and their LSEs follow them", "[split]") {
  const SplitsLayout layout = splits_layout(problem(), 5, 3 * 2);
  CHECK(layout.lse_row_stride == 8);
  CHECK(layout.lse_split_stride == 3 * 2 * 8);
  CHECK(layout.row_stride == 8 * 64);
  CHECK(layout.split_stride == 3 * 2 * 8 * 64);
  CHECK(layout.lse_offset_bytes == 5 * 3 * 2 * 8 * 64 * 4);
  CHECK(layout.bytes == 5 * 3 * 2 * row_bytes);
}

TEST_CASE("a ceiling limits splits to what fits, from 1 to 65536", "[split]") {
  calls::Problem wanted = problem();
  const uint64_t split_bytes = 3 * 2 * row_bytes;
  CHECK(most_splits(wanted, 2) == (uint64_t{256} << 20) / split_bytes);
  wanted.workspace_ceiling_bytes = 7 * split_bytes;
  CHECK(most_splits(wanted, 2) == 7);
  wanted.workspace_ceiling_bytes -= 1;
  CHECK(most_splits(wanted, 2) == 6);
  wanted.workspace_ceiling_bytes = 1;
  CHECK(most_splits(wanted, 2) == 1);
  wanted.workspace_ceiling_bytes = 65536 * split_bytes;
  CHECK(most_splits(wanted, 2) == 65536);
  wanted.workspace_ceiling_bytes += split_bytes;
  CHECK(most_splits(wanted, 2) == 65536);
}

TEST_CASE("rows of a merge are counted in 31 bits", "[split]") {
  calls::Problem wanted = problem();
  wanted.workspace_ceiling_bytes = uint64_t{1} << 60;
  // 2^31 - 1 is a prime: of one head and one sequence.
  wanted.q_heads = wanted.kv_heads = wanted.max_batch = 1;
  CHECK(most_splits(wanted, INT32_MAX) == 65536);
  CHECK(most_splits(wanted, int64_t{INT32_MAX} + 1) == 1);
  wanted.max_batch = INT32_MAX;
  CHECK(most_splits(wanted, 1) == 65536);
  CHECK(most_splits(wanted, 2) == 1);
  wanted.q_heads = 2;
  CHECK(most_splits(wanted, 1) == 1);
  wanted.max_batch = 1;
  CHECK(most_splits(wanted, INT32_MAX / 2) == 65536);
  CHECK(most_splits(wanted, INT32_MAX / 2 + 1) == 1);
}

TEST_CASE("keys are split every 2048, with any bounds", "[split]") {
  calls::Problem wanted = problem();
  const Fixed four(wanted);
  CHECK(four.refusal == "");
  CHECK(four.splits.count == 4);
  CHECK(four.splits.tiles == 2048 / 16);
  CHECK(four.splits.are_at_fixed_places());
  CHECK_FALSE(Splits().are_at_fixed_places());
  CHECK(four.workspace_bytes == 4 * 3 * 2 * row_bytes);
  wanted.max_kv_len = 8193;
  CHECK(Fixed(wanted).splits.count == 5);
  // Up to the rows that the kernel takes; without a bound all of these.
  wanted.max_kv_len = 8192;
  wanted.max_q_len = 9;
  CHECK(Fixed(wanted).workspace_bytes == 4 * 3 * 4 * row_bytes);
  wanted.max_q_len = 0;
  CHECK(Fixed(wanted).workspace_bytes == 4 * 3 * 4 * row_bytes);
  wanted.max_kv_len = 2048;
  CHECK(Fixed(wanted).workspace_bytes == 3 * 4 * row_bytes);
}

TEST_CASE("fixed places of any number of rows require their bound", "[split]") {
  calls::Problem wanted = problem();
  wanted.max_q_len = 0;
  CHECK(Fixed(wanted, INT32_MAX).refusal ==
        "max_q_len: max_q_len is 0 (unbounded); SLUICE_ATTENTION_BATCH_INVARIANT splits keys at fixed places "
        "and, with these types and head dims, needs this bound for the size of the workspace; nearest "
        "supported: 1 or more");
}

TEST_CASE("bounds that need too much at fixed places are refused with the nearest", "[split]") {
  calls::Problem wanted = problem();
  wanted.q_heads = wanted.kv_heads = wanted.max_batch = 1;
  wanted.max_q_len = INT32_MAX - 1;
  CHECK(Fixed(wanted, INT32_MAX).refusal == "");
  wanted.q_heads = 2;
  CHECK(Fixed(wanted, INT32_MAX).refusal ==
        "max_q_len: max_q_len is 2147483646 with 2 heads; " + invariant + "1073741823");
  wanted.max_q_len = INT32_MAX / 2;
  CHECK(Fixed(wanted, INT32_MAX).refusal == "");
  wanted = problem();
  wanted.max_q_len = 1;
  wanted.max_batch = INT32_MAX / 8;
  CHECK(Fixed(wanted).refusal == "");
  wanted.max_batch += 1;
  CHECK(Fixed(wanted).refusal ==
        "max_batch: max_batch is 268435456 with 1 rows of 8 heads; " + invariant + "268435455");
  wanted = problem();
  wanted.max_kv_len = 65536 * 2048;
  CHECK(Fixed(wanted).refusal == "");
  wanted.max_kv_len += 1;
  CHECK(Fixed(wanted).refusal == "max_kv_len: max_kv_len is 134217729; " + invariant + "134217728");
  wanted = problem();
  wanted.workspace_ceiling_bytes = 4 * 3 * 2 * row_bytes;
  CHECK(Fixed(wanted).refusal == "");
  wanted.workspace_ceiling_bytes -= 1;
  CHECK(Fixed(wanted).refusal ==
        "workspace_ceiling_bytes: workspace_ceiling_bytes is 49919; " + invariant + "49920");
}

TEST_CASE("a cascade has a part of all rows for each split of both levels", "[split]") {
  calls::Problem wanted = problem();
  wanted.flags = calls::prefixes;
  wanted.max_prefixes = 1;
  wanted.max_prefix_len = 5 * 2048;
  wanted.max_q_tokens = 100;
  wanted.workspace_ceiling_bytes = 7 * 100 * row_bytes;
  CHECK(most_splits(wanted, 2) == 6); // one is left for the prefixes
  CHECK(most_prefix_splits(wanted, 4) == 3);
  wanted.workspace_ceiling_bytes = 1;
  CHECK(most_splits(wanted, 2) == 1);
  CHECK(most_prefix_splits(wanted, 4) == 1);

  // All rows of q, however many a sequence has.
  wanted.workspace_ceiling_bytes = 5 * 100 * row_bytes;
  for (const int32_t few_rows : {0, 4, INT32_MAX})
    CHECK(splits_workspace(wanted, 5, few_rows) == wanted.workspace_ceiling_bytes);
  wanted.workspace_ceiling_bytes -= 1;
  CHECK_THROWS_WITH(splits_workspace(wanted, 5, 4),
                    Catch::Contains("workspace_ceiling_bytes is 1039999; with SLUICE_ATTENTION_PREFIXES the "
                                    "nearest supported is 1040000"));
  CHECK(most_cascade_rows(wanted) == INT32_MAX / 8);
}

TEST_CASE("prefixes at fixed places have the same parts for all bounds of the own keys", "[split]") {
  calls::Problem wanted = problem();
  wanted.flags = calls::prefixes;
  wanted.max_prefix_len = 5 * 2048 + 1;
  const Splits splits = fixed_prefix_splits(wanted, kernel_of(64));
  CHECK(splits.count == 6);
  CHECK(splits.tiles == 2048 / 64);
  CHECK(first_fixed_prefix_split(1) == 16);
  CHECK(first_fixed_prefix_split(16) == 16);
  CHECK(first_fixed_prefix_split(17) == 32);
}

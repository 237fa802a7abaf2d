//===- by_rule_test.cpp - which kernels serve a problem, and which one a rule chooses -------------------===//
#include "calls/problem.h"
#include "choice_fixture.h"

#include "support/failure.h"

#include <catch2/catch.hpp>

using namespace sluice::test;
namespace calls = sluice::calls;

namespace {

/// Without a bound of keys, so that rules choose and not an estimate.
Choice by_rule(const Target &device, int32_t batch, int32_t rows, int32_t q_heads = 64,
               int32_t kv_heads = 8) {
  return device.choose(problem_of(batch, rows, 0, q_heads, kv_heads));
}

Choice batch_invariant(const Target &device, calls::Problem problem) {
  problem.flags |= calls::batch_invariant;
  return device.choose(problem);
}

std::string refusal(const Target &device, const calls::Problem &problem) {
  try {
    return device.choose(problem).reason;
  } catch (const sluice::support::Failure &failure) {
    CHECK(failure.status() == sluice::support::Status::unsupported);
    return failure.message();
  }
}

KernelEntry with_form(KernelEntry kernel, const char *form) {
  kernel.name.form = form;
  kernel.features = all_features();
  return kernel;
}

calls::Problem paged_problem(uint32_t flags = 0) {
  calls::Problem problem = problem_of(0, 0, 0);
  problem.mode = calls::paged;
  problem.page_table_kind = SLUICE_PAGE_TABLE_BLOCK;
  problem.page_size = 16;
  problem.flags = flags;
  return problem;
}

const KernelEntry prefill_2 = entry(64, 64, 2, "", 320, 65536, 4096, 4096, 7568);
const KernelEntry prefill_6 = entry(192, 64, 6, "", 248, 65536, 4096, 4096, 6996);

} // namespace

TEST_CASE("kernels for pages serve only pages", "[choice]") {
  const KernelEntry paged = with_form(prefill_8, "paged"), plain = with_form(prefill_4, "");
  const Target both({paged, plain}), one({paged});
  CHECK(both.choose(problem_of(0, 0, 0)).own.many->entry.name == plain.name);
  CHECK(both.choose(paged_problem()).own.many->entry.name == paged.name);
  CHECK(one.choose(paged_problem()).own.many->entry.name == paged.name);
  CHECK(refusal(one, problem_of(0, 0, 0)) == "page_size is 0; nearest supported: 1 or more");
}

TEST_CASE("an O of FP8 has whole chunks of 16 columns", "[choice]") {
  const Target device({prefill_8});
  calls::Problem problem = problem_of(0, 0, 0);
  problem.head_dim_v = 40;
  CHECK(device.choose(problem).own.many != nullptr);
  problem.o_type = SLUICE_E4M3FNUZ;
  CHECK(refusal(device, problem) == "head_dim_v is 40; nearest supported: 48");
  problem.flags |= calls::padded_rows;
  CHECK(refusal(device, problem) == "head_dim_v is 40; nearest supported: 41");
}

TEST_CASE("kernels for V in K serve nothing else, and only they know V in packs", "[choice]") {
  const KernelEntry mla = with_form(sharing, "mla"), decode = with_form(four_waves, "decode");
  const Target both({mla, decode}), first({mla}), second({decode});
  const calls::Problem plain = paged_problem();
  CHECK(both.choose(plain).own.few->entry.name == decode.name);
  CHECK(refusal(first, plain) == "flags lacks SLUICE_KV_V_IN_K; nearest supported: with it");
  calls::Problem v_in_k = paged_problem(calls::v_in_k);
  CHECK(first.choose(v_in_k).own.few->entry.name == mla.name);
  CHECK(both.choose(v_in_k).own.few->entry.name == mla.name); // which reads rows once
  v_in_k.k_pack = 8;
  CHECK(first.choose(v_in_k).own.few->entry.name == mla.name);
  CHECK(both.choose(v_in_k).own.few->entry.name == mla.name);
  CHECK(refusal(second, v_in_k) == "k_pack is 8 with SLUICE_KV_V_IN_K; nearest supported: 0");
  calls::Problem k_pack = plain;
  k_pack.k_pack = 8;
  CHECK(second.choose(k_pack).own.few->entry.name == decode.name);
}

TEST_CASE("kernels for V by columns serve nothing else, and any number of rows", "[choice]") {
  KernelEntry columns = with_form(sharing, "columns"), rows = with_form(sharing, "decode");
  std::erase(rows.features, "v_pack");
  const KernelEntry prefill = [] {
    KernelEntry kernel = with_form(prefill_8, "paged");
    std::erase(kernel.features, "v_pack");
    return kernel;
  }();
  const Target all({columns, rows, prefill}), only({columns}), none({rows, prefill});
  calls::Problem problem = paged_problem();
  CHECK(all.choose(problem).own.few->entry.name == rows.name);
  CHECK(refusal(only, problem) == "v_pack is 0; nearest supported: 8");
  CHECK(refusal(only, problem_of(0, 0, 0)) == "v_pack is 0; nearest supported: 1073741824");
  problem.v_pack = 8;
  for (const int32_t q_len : {0, 1, 4000}) {
    problem.max_q_len = q_len;
    const Choice choice = all.choose(problem);
    CHECK(choice.own.few->entry.name == columns.name);
    CHECK(choice.own.many == nullptr);
    CHECK(choice.own.few_rows == INT32_MAX);
  }
  CHECK(refusal(none, problem) == "v_pack is 8; nearest supported: 0");
}

TEST_CASE("cache operations are neither a choice nor a hint", "[choice]") {
  calls::Problem problem = problem_of(0, 0, 0);
  problem.q_type = SLUICE_F32;
  CHECK(refusal(Target({prefill_8}), problem) == "q_type is f32; nearest supported: bf16");
  CHECK(refusal(Target({}), problem) == "the context's kernel pack has no attention kernels");
}

TEST_CASE("the next larger head dim is named, or the largest", "[choice]") {
  std::vector<KernelEntry> kernels(2, prefill_8);
  kernels[0].name.head_dim_qk = kernels[0].name.head_dim_v = 56;
  kernels[1].name.head_dim_qk = kernels[1].name.head_dim_v = 64;
  calls::Problem problem = problem_of(0, 0, 0);
  problem.head_dim_qk = problem.head_dim_v = 60;
  CHECK(refusal(Target(kernels), problem) ==
        "head_dim_qk is 60 without SLUICE_ATTENTION_PADDED_ROWS; nearest supported: 64");
  problem.head_dim_qk = problem.head_dim_v = INT32_MAX;
  CHECK(refusal(Target(kernels), problem) == "head_dim_qk is 2147483647; nearest supported: 64");
}

TEST_CASE("the rule is the highest prefill tile, and the first by name among equals", "[choice]") {
  const Target device({prefill_2, prefill_4, prefill_8});
  CHECK(by_rule(device, 0, 0).own.many->entry.name == prefill_8.name);
  KernelEntry twin = prefill_8;
  twin.name.tile_kv = 32;
  CHECK(by_rule(Target({prefill_8, twin}), 0, 0).own.many->entry.name == twin.name);
}

TEST_CASE("rows that fit a lower prefill tile take it", "[choice]") {
  const Target device({prefill_2, prefill_4, prefill_8});
  for (const auto &[rows, tile] : {std::pair{129, 256u}, {128, 128u}, {65, 128u}, {64, 64u}, {1, 64u}})
    CHECK(by_rule(device, 0, rows, 8, 8).own.many->entry.name.tile_q == tile);
  CHECK(by_rule(device, 0, 64, 8, 8).reason == "bounds.q_len 64 fits a query tile of 64");
  CHECK(by_rule(device, 0, 64, 16, 8).own.many->entry.name.tile_q == 128); // of two heads
}

TEST_CASE("with batch invariance a lower prefill tile must have the same keys", "[choice]") {
  KernelEntry other = prefill_4;
  other.name.tile_kv = 32;
  const calls::Problem few = problem_of(0, 100, 0, 8, 8);
  CHECK(batch_invariant(Target({prefill_8, other}), few).own.many->entry.name == prefill_8.name);
  CHECK(batch_invariant(Target({prefill_8, prefill_4}), few).own.many->entry.name == prefill_4.name);
  CHECK(Target({prefill_8, other}).choose(few).own.many->entry.name == other.name);
}

TEST_CASE("too few workgroups for the compute units take lower prefill tiles, if those make more",
          "[choice]") {
  const Target device({prefill_4, prefill_8});
  // Workgroups of 256 rows and of 512: one each, and two.
  CHECK(by_rule(device, 304, 256, 1, 1).own.many->entry.name == prefill_8.name);
  CHECK(by_rule(device, 303, 256, 1, 1).own.many->entry.name == prefill_4.name);
  CHECK(by_rule(device, 303, 256, 1, 1).reason ==
        "query tiles of 256 would make 303 workgroups for 304 compute units; tiles of 128 make 606");
  CHECK(by_rule(device, 152, 512, 1, 1).own.many->entry.name == prefill_8.name);
  CHECK(by_rule(device, 151, 512, 1, 1).own.many->entry.name == prefill_4.name);
  CHECK(batch_invariant(device, problem_of(1, 256, 0, 1, 1)).own.many->entry.name == prefill_8.name);
  CHECK(by_rule(device, 0, 256, 1, 1).own.many->entry.name == prefill_8.name);
  // 200 rows are two workgroups of either.
  CHECK(by_rule(Target({prefill_4, prefill_6}), 1, 200, 1, 1).own.many->entry.name == prefill_6.name);
  CHECK(by_rule(Target({prefill_4, prefill_6}), 1, 192, 1, 1).own.many->entry.name == prefill_4.name);
}

TEST_CASE("the lowest decode tile that holds the rows is the rule", "[choice]") {
  const Target decode({sharing, four_waves, high});
  for (const auto &[rows, tile] :
       {std::pair{1, 16u}, {2, 16u}, {3, 64u}, {8, 64u}, {9, 128u}, {100, 128u}, {0, 128u}}) {
    const Choice choice = by_rule(decode, 8, rows);
    INFO(rows << " rows");
    CHECK(choice.own.few->entry.name.tile_q == tile);
    CHECK(choice.own.many == nullptr);
    CHECK(choice.own.few_rows == INT32_MAX);
  }
  CHECK(by_rule(decode, 8, 1).reason == "query tiles of 16 hold the 8 query heads of a group");
  CHECK(by_rule(decode, 8, 1, 8, 8).reason == "query tiles of 16 hold the 1 query head of a group");
  // Bits must not depend on the maximum number of rows.
  CHECK(batch_invariant(decode, problem_of(8, 1, 4096)).own.few->entry.name.tile_q == 128);
  KernelEntry twin = sharing;
  twin.name.tile_kv = 32;
  CHECK(by_rule(Target({sharing, twin}), 8, 1).own.few->entry.name == sharing.name);
}

TEST_CASE("beside prefill kernels few rows are those that fill a wave with the heads of a group",
          "[choice]") {
  const Target device(all_kernels);
  for (const auto &[q_heads, rows] : {std::pair{1, 16}, {2, 8}, {3, 5}, {16, 1}, {17, 1}, {64, 1}}) {
    CHECK(by_rule(device, 8, 0, q_heads, 1).own.few_rows == rows);
    CHECK(by_rule(device, 8, rows, q_heads, 1).own.many == nullptr);
    CHECK(by_rule(device, 8, rows + 1, q_heads, 1).own.many != nullptr);
  }
  const Choice both = by_rule(device, 8, 0);
  CHECK(both.own.many->entry.name == prefill_8.name);
  CHECK_THAT(both.reason,
             Catch::EndsWith("; sequences of up to 2 rows: attn_fwd_bf16_d128_q16_kv16_w4_decode"));
  for (const Choice &one : {by_rule(device, 8, 1), by_rule(Target({prefill_8}), 8, 0)})
    CHECK_THAT(one.reason, !Catch::Contains("sequences of up to"));
}

TEST_CASE("without a bound of rows an estimate needs kernels of both kinds", "[choice]") {
  const calls::Problem problem = problem_of(16, 0, 4096);
  CHECK(Target(all_kernels).choose(problem).own.estimate.has_value());
  CHECK_FALSE(Target({prefill_4, prefill_8}).choose(problem).own.estimate.has_value());
  CHECK_FALSE(Target({sharing, high}).choose(problem).own.estimate.has_value());
  for (int32_t calls::Problem::*bound : {&calls::Problem::max_batch, &calls::Problem::max_kv_len}) {
    calls::Problem open = problem_of(16, 1, 4096);
    CHECK(Target(all_kernels).choose(open).own.estimate.has_value());
    open.*bound = 0;
    CHECK_FALSE(Target(all_kernels).choose(open).own.estimate.has_value());
  }
}

TEST_CASE("without a kernel that merges splits there is one split", "[choice]") {
  const Target device(all_kernels, false);
  for (const int32_t rows : {1, 512}) {
    const calls::Problem problem = problem_of(1, rows, 131072, 8, 1);
    for (const Choice &choice : {device.choose(problem), batch_invariant(device, problem)}) {
      CHECK(choice.own.splits.count == 1);
      CHECK(choice.merging == nullptr);
      CHECK(choice.workspace_bytes == 0);
    }
  }
}

TEST_CASE("fixed places are those of decode kernels, and a sink logit needs the merge of one split",
          "[choice]") {
  calls::Problem problem = problem_of(1, 1, 2048);
  CHECK(batch_invariant(Target({prefill_8}), problem).own.splits.count == 1);
  CHECK(batch_invariant(Target({sharing}), problem).merging == nullptr);
  CHECK(batch_invariant(Target({sharing}), problem).workspace_bytes == 0);
  problem.flags = calls::sinks;
  CHECK_THAT(batch_invariant(Target({sharing}), problem).reason, Catch::EndsWith("; keys in 1 split"));
  CHECK(batch_invariant(Target({sharing}), problem).workspace_bytes == 64 * (128 + 1) * 4);
  problem.max_kv_len = 2049;
  CHECK_THAT(batch_invariant(Target({sharing}), problem).reason, Catch::EndsWith("; keys in 2 splits"));
  // Elsewhere the kernel of one split adds the sink itself.
  problem.max_kv_len = 16;
  CHECK(Target({sharing}).choose(problem).merging == nullptr);
}

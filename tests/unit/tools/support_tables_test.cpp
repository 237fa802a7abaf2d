//===- support_tables_test.cpp - the tables of supported features follow the pack -----------------------===//

#include "support/test_pack.h"
#include "tools/sluice/support_questions.h"
#include "tools/sluice/support_tables.h"

#include <catch2/catch.hpp>

using namespace sluice;
using namespace sluice::tools;
using Catch::Contains;

namespace {

/// A context of kernels that cannot run; the pack must outlive it.
ContextHandle context_of(const std::vector<std::byte> &pack) {
  static const std::string device = "gfx942:304"; // which the description points into
  sluice_context_desc desc = describe_device(device);
  desc.pack = pack.data();
  desc.pack_bytes = pack.size();
  sluice_error error = make_error();
  sluice_context *created = nullptr;
  check(sluice_context_create(&desc, &created, &error), error);
  return ContextHandle(created);
}

package::KernelEntry packed_kernel(const std::string &dtype, uint32_t head_dim, const std::string &kv_dtype) {
  package::KernelEntry entry = test::kernel_entry(dtype, head_dim, 1);
  entry.name.kv_dtype = kv_dtype;
  entry.name.form = "decode";
  entry.features = test::all_features();
  return entry;
}

std::vector<std::byte> finished(const std::vector<package::KernelEntry> &kernels) {
  package::PackWriter writer("test", "22.1.8");
  for (const package::KernelEntry &kernel : kernels)
    test::add_fake_kernel(writer, kernel);
  return writer.finish();
}

} // namespace

TEST_CASE("kernels bring their types and head sizes, and features which they list") {
  const std::vector<std::byte> pack =
      finished({test::kernel_entry("bf16", 40, 4), test::kernel_entry("f16", 64, 4)});
  const ContextHandle context = context_of(pack);
  const std::string summary = support_summary(context.get());
  CHECK_THAT(summary, Contains("| F16 | as Q | as Q, F32 | 64 | up to 64 |") &&
                          Contains("| BF16 | as Q | as Q, F32 | 40 | up to 40 |"));
  CHECK_THAT(summary, Contains("| all | LSE; grouped heads; causal, bottom-right;"));
  CHECK_THAT(summary, Contains("| none | LSE to base 2; ragged;"));
  const std::string tables = feature_tables(context.get());
  CHECK_THAT(tables, Contains("| causal, top-left | `alignment` | yes | `attn_fwd_f16_d64_q128_kv64_w4` | "
                              "`causal`: 2 of 2 |"));
  CHECK_THAT(
      tables,
      Contains(
          "| ALiBi | `SLUICE_SCORES_ALIBI` | no | scores.flags has SLUICE_SCORES_ALIBI; nearest supported: "
          "without it | `alibi`: 0 of 2 |"));
  CHECK_THAT(tables, Contains("F16, F16 to F32:\n\n| head size | kernel |\n| --- | --- |\n"
                              "| 8 to 56 | filled up to 64 |\n| 64 | exact |\n"));
}

TEST_CASE("decode kernels bring head sizes that are filled up, and caches of another type") {
  const std::vector<std::byte> pack = finished(
      {packed_kernel("f16", 32, ""), packed_kernel("f16", 48, ""), packed_kernel("bf16", 64, "e4m3fnuz")});
  const ContextHandle context = context_of(pack);
  const std::string tables = feature_tables(context.get());
  CHECK_THAT(tables, Contains("| F16 | as Q | as Q, F32 | 32, 48 | up to 48, up to 48 (V in K) |"));
  CHECK_THAT(tables, Contains("| BF16 | E4M3FNUZ | as Q, F32 | 64 | up to 64, up to 64 (V in K) |"));
  CHECK_THAT(
      tables,
      Contains("| 8 to 24 | filled up to 32 |\n| 32 | exact |\n| 40 | filled up to 48 |\n| 48 | exact |"));
  CHECK_THAT(
      tables,
      Contains("| scales of K per token | `k.scale_kind` | yes | `attn_fwd_f16_d32_q32_kv64_w1_decode` | "
               "`key_scales`: 3 of 3 |"));
}

TEST_CASE("caches in blocks have multiples of 32, and the scales that 4-bit numbers need") {
  const std::vector<std::byte> pack = finished(
      {packed_kernel("f16", 80, "u4"), packed_kernel("f16", 128, "q8_0"), packed_kernel("f16", 64, "")});
  const ContextHandle context = context_of(pack);
  const std::string tables = feature_tables(context.get());
  CHECK_THAT(tables, Contains("| F16 | Q8_0 | as Q, F32 | 128 | up to 128, up to 128 (V in K) |") &&
                         Contains("| F16 | U4 | as Q, F32 |  | up to 64, up to 64 (V in K) |"));
  CHECK_THAT(tables,
             Contains("F16 with Q8_0, F16 with Q8_0 to F32:\n\n| head size | kernel |\n| --- | --- |\n"
                      "| 32 to 96 | filled up to 128 |\n| 128 | exact |\n"));
  // Every type is asked for U4; nothing has packs of blocks.
  CHECK_THAT(tables, Contains("| scales of K and V per group of 32 | `SLUICE_SCALE_PER_GROUP` | ") &&
                         Contains("| `attn_fwd_f16_u4_d80_q32_kv64_w1_decode` |  | `*-u4_*` |"));
  CHECK_THAT(tables, !Contains("| x-packed K | `k.pack` | yes |"));
}

TEST_CASE("V in K has neither scales nor columns of its own") {
  const std::vector<std::byte> pack = finished({packed_kernel("f16", 64, "e4m3fnuz")});
  const ContextHandle context = context_of(pack);
  calls::Problem problem = plain_problem({SLUICE_F16, SLUICE_E4M3FNUZ, SLUICE_F16}, {64, 64, true});
  CHECK(ask(context.get(), problem).supported);
  problem.v_scale_kind = SLUICE_SCALE_PER_TENSOR;
  CHECK(ask(context.get(), problem).refusal == "V in K has the scales of K, and no columns");
  problem.k_scale_kind = SLUICE_SCALE_PER_TENSOR;
  CHECK(ask(context.get(), problem).supported);
  problem.v_pack = SLUICE_PACK_ALL;
  CHECK(!ask(context.get(), problem).supported);
}

TEST_CASE("the table of cache operations names functions") {
  const std::vector<std::byte> pack = finished(
      {test::kernel_entry("f16", 64, 4), test::cache_op_entry("kv_append", "f16", "f16"),
       test::cache_op_entry("append_step", "f16", "f16"), test::cache_op_entry("kv_copy", "f16", "e4m3fnuz"),
       test::cache_op_entry("merge_states", "f32", "f16")});
  CHECK_THAT(
      support_summary(context_of(pack).get()),
      Contains("| `sluice_attention_merge` | f32 to f16 |\n| `sluice_cache_append` | f16 to f16 |\n"
               "| `sluice_cache_append` with norms, Q, tails or other caches | f16 to f16 |\n"
               "| `sluice_cache_copy`, `sluice_cache_gather` | every type to itself, f16 to e4m3fnuz |\n"));
}

TEST_CASE("kernels whose O has another type than Q have a separate row") {
  package::KernelEntry kernel = packed_kernel("e4m3fnuz", 64, "");
  kernel.name.o_dtype = "bf16";
  const std::vector<std::byte> pack = finished({packed_kernel("bf16", 64, ""), kernel});
  const ContextHandle context = context_of(pack);
  const std::string tables = feature_tables(context.get());
  CHECK_THAT(tables, Contains("| E4M3FNUZ | as Q | BF16, F32 | 64 | up to 64, up to 64 (V in K) |"));
  CHECK_THAT(tables, Contains("BF16, BF16 to F32, E4M3FNUZ to BF16, E4M3FNUZ to F32:\n\n| head size |"));
}

TEST_CASE("types with the same head sizes share a row") {
  const std::vector<std::byte> pack =
      finished({packed_kernel("f16", 64, ""), packed_kernel("bf16", 64, ""), packed_kernel("f16", 64, "i8"),
                packed_kernel("bf16", 64, "i8"), packed_kernel("f16", 128, "e5m2fnuz")});
  const std::string summary = support_summary(context_of(pack).get());
  CHECK_THAT(summary, Contains("| F16, BF16 | as Q, I8 | as Q, F32 | 64 | up to 64, up to 64 (V in K) |\n"
                               "| F16 | E5M2FNUZ | as Q, F32 | 128 | up to 128, up to 128 (V in K) |\n\n"));
}

TEST_CASE("a feature of only some types is counted") {
  package::KernelEntry more = test::kernel_entry("bf16", 64, 4);
  more.features.push_back("alibi");
  const std::vector<std::byte> pack = finished({test::kernel_entry("f16", 64, 4), more});
  CHECK_THAT(support_summary(context_of(pack).get()), Contains("| 2 of 4 combinations | ALiBi |"));
}

TEST_CASE("a feature that no question asks for is an error") {
  package::KernelEntry more = test::kernel_entry("f16", 64, 4);
  more.features.push_back("surprise");
  const std::vector<std::byte> pack = finished({more});
  const ContextHandle context = context_of(pack);
  CHECK_THROWS_WITH(feature_tables(context.get()), Contains("has the feature surprise, which no row"));
}

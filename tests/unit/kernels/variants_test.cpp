//===- variants_test.cpp - variants by their names ------------------------------------------------------===//
#include "attention/Schedule.h"
#include "generate/ScheduleTable.h"
#include "generate/VariantTable.h"
#include "target/ScheduleChoices.h"

#include <catch2/catch.hpp>

using namespace sluice;

static Variant variant(llvm::StringRef name) {
  auto parsed = parseVariant(name);
  REQUIRE(bool(parsed));
  CHECK(package::format_kernel_name(parsed->name) == name.str());
  return *parsed;
}

static std::string refusal(llvm::StringRef name) {
  auto parsed = parseVariant(name);
  return parsed ? "" : llvm::toString(parsed.takeError());
}

TEST_CASE("a name describes its kernel", "[variants]") {
  const std::pair<const char *, AttentionVariant> known[] = {
      {"attn_fwd_f16_d128_q256_kv64_w8", {"f16", "", "", 128, 128, 256, 64, 8, 32, false, false, false}},
      {"attn_fwd_bf16_d64_q128_kv64_w4_paged", {"bf16", "", "", 64, 64, 128, 64, 4, 32, true, false, false}},
      {"attn_fwd_f16_e4m3fnuz_d192v128_q64_kv16_w4_decode",
       {"f16", "e4m3fnuz", "", 192, 128, 64, 16, 4, 16, true, false, false}},
      {"attn_fwd_bf16_d576v512_q16_kv16_w1_mla",
       {"bf16", "", "", 576, 512, 16, 16, 1, 16, true, true, false}},
      {"attn_fwd_e4m3fnuz_to_bf16_d192v128_q64_kv32_w4_decode",
       {"e4m3fnuz", "", "bf16", 192, 128, 64, 32, 4, 16, true, false, false}},
      {"attn_fwd_e4m3fnuz_to_f16_d576v512_q16_kv32_w1_mla",
       {"e4m3fnuz", "", "f16", 576, 512, 16, 32, 1, 16, true, true, false}},
      {"attn_fwd_bf16_e4m3fnuz_d64_q16_kv32_w4_columns",
       {"bf16", "e4m3fnuz", "", 64, 64, 16, 32, 4, 16, true, false, true}},
      {"attn_fwd_f16_e5m2_d128_q256_kv64_w8",
       {"f16", "e5m2", "", 128, 128, 256, 64, 8, 32, false, false, false}},
      // The rows of a tile are those in the name, not those that its waves compute.
      {"attn_fwd_f16_d128_q16_kv32_w4_decode", {"f16", "", "", 128, 128, 16, 32, 4, 16, true, false, false}},
  };
  for (const auto &[name, expected] : known) {
    INFO(name);
    CHECK(std::get<AttentionVariant>(variant(name).kind) == expected);
  }
  const auto append = std::get<CacheOpVariant>(variant("kv_append_bf16_e4m3fnuz").kind);
  CHECK((append.operation == "kv_append" && append.from == "bf16" && append.to == "e4m3fnuz"));
}

TEST_CASE("an invalid name is refused from its first wrong character", "[variants]") {
  const std::pair<const char *, const char *> wrong[] = {
      {"", ""},
      {"attn_bwd_f16_d64_q128_kv64_w4", "attn_bwd_f16_d64_q128_kv64_w4"},
      {"attn_fwd_f17_d64_q128_kv64_w4", "f17_d64_q128_kv64_w4"},
      {"attn_fwd_f16_d0_q128_kv64_w4", "0_q128_kv64_w4"},
      {"attn_fwd_f16_d64_q128_kv4294967296_w4", "4294967296_w4"},
      {"attn_fwd_f16_d64_q128_kv64", ""},
      {"attn_fwd_f16_d64_q128_kv64_w4_pages", "_pages"},
      {"kv_append_f16", ""},
      {"kv_append_f16_f16_f16", "_f16"},
  };
  for (const auto &[name, unread] : wrong)
    CHECK(refusal(name) == std::string("'") + name + "' is not the name of a kernel: no name goes on with '" +
                               unread + "' here");
}

TEST_CASE("cache operations have kernels for some types", "[variants]") {
  CHECK(refusal("append_step_f16_bf16") ==
        "append_step has no kernel from f16 to bf16; it has f16 to f16, bf16 to bf16, f16 to "
        "e4m3fnuz, bf16 to e4m3fnuz, f16 to e5m2fnuz, bf16 to e5m2fnuz, f16 to i8, bf16 to i8, f16 to q8_0, "
        "bf16 "
        "to q8_0, f16 to q4_0, bf16 to q4_0, f16 to u4, bf16 to u4, f16 to e4m3fn, bf16 to e4m3fn, "
        "f16 to e5m2, bf16 to e5m2");
  CHECK(refusal("kv_append_f32_f32") == "kv_append has no kernel from f32 to f32; it has f16 to f16, bf16 to "
                                        "bf16, f16 to e4m3fnuz, bf16 to e4m3fnuz");
  CHECK(
      refusal("kv_copy_bf16_bf16") ==
      "kv_copy has no kernel from bf16 to bf16; it has f16 to f16, e4m3fnuz to "
      "e4m3fnuz, f16 to e4m3fnuz, bf16 to e4m3fnuz, e4m3fnuz to f16, e4m3fnuz "
      "to bf16, q8_0 to q8_0, e5m2fnuz to f16, e5m2fnuz to bf16, i8 to f16, i8 to bf16, q8_0 to f16, q8_0 to "
      "bf16, q4_0 to f16, q4_0 to bf16, u4 to f16, u4 to bf16, "
      "f16 to e4m3fn, bf16 to e4m3fn, e4m3fn to f16, e4m3fn to bf16, e5m2 to f16, e5m2 to bf16");
  CHECK(refusal("merge_states_f16_f32") ==
        "merge_states has no kernel from f16 to f32; it has f32 to f32, f32 to f16, f32 to bf16, f16 to f16, "
        "bf16 to bf16, f32 to e4m3fnuz");
}

TEST_CASE("a list has a name on each line", "[variants]") {
  auto variants = parseVariantList("kv_append_f16_f16\n\nattn_fwd_f16_d64_q128_kv64_w4\n");
  REQUIRE(bool(variants));
  REQUIRE(variants->size() == 2);
  CHECK((*variants)[0].name.operation == "kv_append");
  CHECK((*variants)[1].name.head_dim_qk == 64);
  auto wrong = parseVariantList("kv_append_f16_f16\n\nkv_append\n");
  REQUIRE(!wrong);
  CHECK(llvm::toString(wrong.takeError()) ==
        "line 3: 'kv_append' is not the name of a kernel: no name goes on with '' here");
}

TEST_CASE("a kernel has a line with its schedule", "[variants]") {
  const std::string name = "attn_fwd_f16_d64_q128_kv64_w4";
  auto table =
      parseScheduleTable("# a comment\n\n" + name + " window=12 loop=plain waits_apart=0 # another\n");
  REQUIRE(bool(table));
  REQUIRE(table->size() == 1);
  const ScheduleChoices choices = ScheduleChoices::in(table->at(name));
  CHECK(choices.text() == "window=12 waits_apart=0 reads_before=30");
  const auto refusal = [](const std::string &text) {
    auto wrong = parseScheduleTable(text);
    REQUIRE(!wrong);
    return llvm::toString(wrong.takeError());
  };
  CHECK(refusal("\nattn_fwd_f16 window=8\n") == "line 2: 'attn_fwd_f16' names no kernel");
  CHECK(refusal(name) == "line 1: no part of a schedule is given");
  for (const std::string part : {"8", "window=0", "window=x", "window", "loop=other", "full=2",
                                 "waves_per_simd=0", "waves_per_simd=9", "parked_reads=-1", "registers=1"})
    CHECK(refusal(name + " waits_apart=20 " + part)
              .starts_with("line 1: '" + part + "' is no part of its schedule"));
  CHECK(
      refusal("kv_append_f16_f16 loop=plain").starts_with("line 1: 'loop=plain' is no part of its schedule"));
  CHECK(refusal(name + " window=8\n" + name + " window=9\n") == "line 2: '" + name + "' is here twice");
}

TEST_CASE("a schedule is what its text says", "[variants]") {
  Schedule schedule;
  const std::string text =
      "waves_per_simd=3 loop=ahead few_registers=1 keeps_addresses=0 full=1 holds_output=0 "
      "copies_through_registers=1 values_by_columns=1 parked_reads=5";
  CHECK(setParts(text, [&](llvm::StringRef name, llvm::StringRef value) {
          return schedule.set(name, value);
        }) == "");
  CHECK(schedule.text() == text);
  CHECK(schedule.wavesPerSimd == 3);
  CHECK(schedule.loop == KeyLoop::Ahead);
  CHECK(schedule.parkedReads == 5);
  CHECK(schedule.set("waves_per_simd", "any"));
  CHECK(!schedule.wavesPerSimd);
}

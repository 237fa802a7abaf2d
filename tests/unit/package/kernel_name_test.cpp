//===- kernel_name_test.cpp - the grammar of kernel names -----------------------------------------------===//
#include "package/kernel_name.h"

#include <catch2/catch.hpp>

#include <set>
#include <string>
#include <utility>

using namespace sluice::package;

TEST_CASE("a name encodes its fields", "[kernel_name]") {
  const auto name = parse_kernel_name("attn_fwd_f16_d128_q256_kv64_w8");
  REQUIRE(name);
  CHECK(name->operation == "attention_forward");
  CHECK(name->dtype == "f16");
  CHECK(name->head_dim_qk == 128);
  CHECK(name->head_dim_v == 128);
  CHECK(name->tile_q == 256);
  CHECK(name->tile_kv == 64);
  CHECK(name->waves == 8);
}

TEST_CASE("names of cache operations are an operation and two types", "[kernel_name]") {
  const auto name = parse_kernel_name("kv_append_bf16_e4m3fnuz");
  REQUIRE(name);
  CHECK(name->operation == "kv_append");
  CHECK(name->dtype == "bf16");
  CHECK(name->to_dtype == "e4m3fnuz");
  CHECK(!name->is_attention());
  CHECK(name->waves == 0);
  CHECK(parse_kernel_name("attn_fwd_f16_d128_q256_kv64_w8")->is_attention());
  for (const char *operation : {"kv_append", "kv_copy", "append_step", "merge_states"})
    for (const char *from : {"f16", "bf16", "f32", "e4m3fnuz"})
      for (const char *to : {"f16", "bf16", "f32", "e4m3fnuz", "i8", "q8_0", "q4_0", "u4"}) {
        const std::string text = std::string(operation) + "_" + from + "_" + to;
        const auto parsed = parse_kernel_name(text);
        REQUIRE(parsed);
        CHECK(format_kernel_name(*parsed) == text);
      }
  for (const char *bad :
       {"kv_append", "kv_append_f16", "kv_append_f16_", "kv_append_f16_f16_", "kv_append_f16f16",
        "merge_states_f16_f64", "merge_f16_f16", "kv_append_f16_d128_q256_kv64_w8"}) {
    INFO(bad);
    CHECK(!parse_kernel_name(bad));
  }
}

TEST_CASE("prefill kernels are those of attention with 32 rows of a wave", "[kernel_name]") {
  for (const auto &[name, prefill] : {std::pair{"attn_fwd_f16_d128_q256_kv64_w8", true},
                                      {"attn_fwd_f16_d128_q256_kv64_w8_paged", true},
                                      {"attn_fwd_f16_d128_q16_kv64_w4_decode", false},
                                      {"attn_fwd_f16_d576v512_q16_kv64_w4_mla", false},
                                      {"kv_append_f16_f16", false},
                                      {"merge_states_f32_f16", false}})
    CHECK(parse_kernel_name(name)->is_prefill() == prefill);
}

TEST_CASE("waves of a decode kernel without separate rows divide the keys", "[kernel_name]") {
  for (const auto &[name, waves] : {std::pair{"attn_fwd_f16_d128_q16_kv64_w4_decode", 4u},
                                    {"attn_fwd_f16_d128_q32_kv64_w4_decode", 2u},
                                    {"attn_fwd_f16_d128_q64_kv64_w4_decode", 1u},
                                    {"attn_fwd_f16_d128_q128_kv64_w4_decode", 1u}, // two times 16 rows a wave
                                    {"attn_fwd_f16_d576v512_q16_kv64_w4_mla", 1u},
                                    {"attn_fwd_f16_d128_q256_kv64_w8", 1u}})
    CHECK(parse_kernel_name(name)->waves_dividing_keys() == waves);
}

TEST_CASE("types that differ have separate places", "[kernel_name]") {
  const auto cache = parse_kernel_name("attn_fwd_bf16_e4m3fnuz_d128_q16_kv16_w1_decode");
  REQUIRE(cache);
  CHECK((cache->dtype == "bf16" && cache->kv_dtype == "e4m3fnuz" && cache->o_dtype.empty()));
  const auto all = parse_kernel_name("attn_fwd_e4m3fnuz_to_bf16_d128_q16_kv32_w1_decode");
  REQUIRE(all);
  CHECK((all->dtype == "e4m3fnuz" && all->kv_dtype.empty() && all->o_dtype == "bf16"));
  CHECK(all->is_attention());
  CHECK(format_kernel_name(*all) == "attn_fwd_e4m3fnuz_to_bf16_d128_q16_kv32_w1_decode");
  for (const char *bad : {"e4m3fnuz", "e4m3fnuz_f16", "e4m3fnuz_to", "e4m3fnuz_to_", "e4m3fnuz_to_e4m3fnuz",
                          "f16_to_bf16", "e4m3fnuz_to_f16_e4m3fnuz", "e4m3fnuz_e4m3fnuz_to_f16"}) {
    INFO(bad);
    CHECK(!parse_kernel_name("attn_fwd_" + std::string(bad) + "_d128_q16_kv32_w1_decode"));
  }
}

TEST_CASE("a second head dim appears only if it differs", "[kernel_name]") {
  const auto name = parse_kernel_name("attn_fwd_bf16_d192v128_q128_kv32_w4");
  REQUIRE(name);
  CHECK(name->dtype == "bf16");
  CHECK(name->head_dim_qk == 192);
  CHECK(name->head_dim_v == 128);
  CHECK(!parse_kernel_name("attn_fwd_bf16_d128v128_q128_kv32_w4"));
}

TEST_CASE("formatting and parsing are inverses, and names are distinct", "[kernel_name]") {
  std::set<std::string> names;
  for (const char *dtype : {"f16", "bf16"}) {
    for (const uint32_t dim_qk : {1u, 64u, 128u, 4294967295u}) {
      for (const uint32_t dim_v : {64, 128}) {
        for (const uint32_t tile : {64, 256}) {
          const KernelName name = {"attention_forward", dtype, dim_qk, dim_v, tile, tile / 2, tile / 32};
          const std::string text = format_kernel_name(name);
          CHECK(parse_kernel_name(text) == name);
          CHECK(names.insert(text).second);
        }
      }
    }
  }
}

TEST_CASE("names outside the grammar are refused", "[kernel_name]") {
  const std::string good = "attn_fwd_f16_d128_q256_kv64_w8";
  REQUIRE(parse_kernel_name(good));
  for (size_t length = 0; length < good.size(); ++length) {
    INFO(good.substr(0, length));
    CHECK(!parse_kernel_name(good.substr(0, length)));
  }
  for (const char *bad : {
           "attn_fwd_f16_d128_q256_kv64_w8_",       // followed by other text
           "attn_fwd_f16_d128_q256_kv64_w8 ",       //
           " attn_fwd_f16_d128_q256_kv64_w8",       // preceded by other text
           "attn_bwd_f16_d128_q256_kv64_w8",        // unknown operation
           "attn_fwd_f32_d128_q256_kv64_w8",        // unknown type
           "attn_fwd_f16_d0128_q256_kv64_w8",       // a leading zero
           "attn_fwd_f16_d0_q256_kv64_w8",          // zero
           "attn_fwd_f16_d-1_q256_kv64_w8",         // a sign
           "attn_fwd_f16_d4294967296_q256_kv64_w8", // beyond 32 bits
           "attn_fwd_f16_q256_d128_kv64_w8",        // another order
           "attn_fwd_F16_d128_q256_kv64_w8",        // upper case
           "attn_fwd_f16_d128v_q256_kv64_w8",       // the second head dim is missing
       }) {
    INFO(bad);
    CHECK(!parse_kernel_name(bad));
  }
}

TEST_CASE("every name that parses is the one its fields make", "[kernel_name]") {
  // All single edits of valid names: a character dropped, doubled, replaced, or two exchanged.
  const std::string alphabet = "_0189abdfhklnqtvw -+.\n" + std::string(1, '\0');
  size_t accepted = 0, refused = 0;
  const auto check = [&](const std::string &text) {
    const auto name = parse_kernel_name(text);
    if (!name) {
      ++refused;
      return;
    }
    ++accepted;
    if (format_kernel_name(*name) != text) FAIL("'" << text << "' parses as " << format_kernel_name(*name));
  };
  for (const std::string good :
       {"attn_fwd_f16_d128_q256_kv64_w8", "attn_fwd_bf16_d192v128_q128_kv32_w4", "kv_append_bf16_e4m3fnuz",
        "attn_fwd_e4m3fnuz_to_f16_d64_q16_kv32_w1_decode"}) {
    REQUIRE(parse_kernel_name(good));
    for (size_t at = 0; at < good.size(); ++at) {
      check(good.substr(0, at) + good.substr(at + 1));
      check(good.substr(0, at) + good[at] + good.substr(at));
      for (const char c : alphabet) {
        std::string edited = good;
        edited[at] = c;
        check(edited);
        check(good.substr(0, at) + c + good.substr(at));
      }
      for (size_t other = at + 1; other < good.size(); ++other) {
        std::string edited = good;
        std::swap(edited[at], edited[other]);
        check(edited);
      }
    }
  }
  // Numbers may change, everything else is wrong.
  CHECK(accepted > 100);
  CHECK(refused > 5 * accepted);
}

TEST_CASE("a name has one operation, one type in each place, and numbers that fit", "[kernel_name]") {
  for (const char *text : {"_f16_f16", "_bf16_e4m3fnuz", "attn_fwdkv_append_f16_f16", "kv_append_bf16f16_f16",
                           "kv_append_f16_bf16f16", "attn_fwd_bf16f16_d128_q256_kv64_w8",
                           "attn_fwd_f16_d4294967296_q256_kv64_w8", "attn_fwd_f16_d128_q256_kv64_w4294967296",
                           "attn_fwd_f16_d_q256_kv64_w8", "attn_fwd_f16_d128_q256_kv64_w8_paged_packed",
                           "attn_fwd_f16_d:_q256_kv64_w8", "attn_fwd_f16_d128_q256_kv64_w"})
    CHECK_FALSE(parse_kernel_name(text).has_value());
  CHECK(parse_kernel_name("attn_fwd_f16_d128_q256_kv64_w4294967295").has_value());
}

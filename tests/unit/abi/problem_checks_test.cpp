//===- problem_checks_test.cpp - problems at the limit of each rule, and beyond -------------------------===//
//
// tests/abi/problem_test.cpp has problems that break a rule entirely.
//
//===----------------------------------------------------------------------------------------------------===//
#include "abi/checks.h"
#include "calls/problem.h"
#include "unit/abi/refused.h"

#include <catch2/catch.hpp>

#include <limits>

using namespace sluice;
using test::refused;

namespace {

/// F16, 8 query heads on 2 KV heads of dim 128.
calls::Problem good() {
  calls::Problem problem = {};
  problem.q_type = problem.k_type = problem.v_type = problem.o_type = SLUICE_F16;
  problem.q_heads = 8;
  problem.kv_heads = 2;
  problem.head_dim_qk = problem.head_dim_v = 128;
  return problem;
}

calls::Problem paged() {
  calls::Problem problem = good();
  problem.mode = calls::paged;
  problem.page_size = 1;
  problem.page_table_kind = SLUICE_PAGE_TABLE_BLOCK;
  return problem;
}

std::string refusal(const calls::Problem &problem) {
  return refused([&] { abi::check_problem(problem); });
}

std::string is_missing(const std::string &field) {
  return field + ": " + field + " is missing; it must be a sluice_dtype";
}

std::string is_small(const std::string &field, const std::string &value) {
  return field + ": " + field + " is " + value + "; it must be at least 1";
}

std::string is_unknown(const std::string &field, const std::string &value, const std::string &last) {
  return "newer_struct " + field + ": " + field + " is " + value +
         "; the last value that this version knows is " + last;
}

} // namespace

TEST_CASE("every known flag may be set, and no other", "[problem]") {
  calls::Problem problem = good();
  problem.flags = calls::causal | calls::write_lse | calls::window_left | calls::alibi | calls::sinks |
                  calls::mask_bits | calls::v_in_k;
  CHECK(refusal(problem) == "");
  problem = paged();
  problem.flags = calls::window_right | calls::page_index_64;
  CHECK(refusal(problem) == "");
  problem.flags |= 1 << 20;
  CHECK(refusal(problem) ==
        "newer_struct flags: flags has unknown bits 0x100000: the library is older than the caller's header");
}

TEST_CASE("types are the eleven known ones, and for O those of 16 bits and more and one of 8", "[problem]") {
  for (uint32_t calls::Problem::*type :
       {&calls::Problem::q_type, &calls::Problem::k_type, &calls::Problem::v_type}) {
    calls::Problem problem = good();
    const bool is_q = type == &calls::Problem::q_type;
    problem.*type = is_q ? SLUICE_E5M2 : SLUICE_Q4_0;
    CHECK(refusal(problem) == "");
    problem.*type = SLUICE_I8;
    CHECK(refusal(problem) ==
          (is_q ? "unsupported q_type: q_type is i8, which only K and V can have; nearest supported: f16"
                : ""));
    problem.*type = SLUICE_Q4_0 + 1;
    CHECK_THAT(refusal(problem),
               Catch::EndsWith("is 12; the last value that this version knows is SLUICE_Q4_0 (11)"));
  }
  calls::Problem problem = good();
  problem.o_type = SLUICE_F32;
  CHECK(refusal(problem) == "");
  problem.o_type = SLUICE_E4M3FNUZ;
  CHECK(refusal(problem) == "");
  problem.o_type = SLUICE_E4M3FN;
  CHECK(refusal(problem) == "unsupported o_type: o_type is e4m3fn; nearest supported: f16");
  problem.q_type = SLUICE_BF16;
  CHECK(refusal(problem) == "unsupported o_type: o_type is e4m3fn; nearest supported: bf16");
  // The first missing one is named.
  problem = {};
  CHECK(refusal(problem) == is_missing("q_type"));
  problem.q_type = SLUICE_F16;
  CHECK(refusal(problem) == is_missing("k_type"));
  problem.k_type = SLUICE_F16;
  CHECK(refusal(problem) == is_missing("v_type"));
  problem.v_type = SLUICE_F16;
  CHECK(refusal(problem) == is_missing("o_type"));
  problem.o_type = SLUICE_F16;
  CHECK(refusal(problem) == is_small("q_heads", "0"));
  problem.q_heads = 8;
  CHECK(refusal(problem) == is_small("kv_heads", "0"));
  problem.kv_heads = 8;
  CHECK(refusal(problem) == is_small("head_dim_qk", "0"));
  problem.head_dim_qk = 1;
  CHECK(refusal(problem) == is_small("head_dim_v", "0"));
  problem.head_dim_v = 1;
  CHECK(refusal(problem) == "");
  problem.head_dim_v = -1;
  CHECK(refusal(problem) == is_small("head_dim_v", "-1"));
}

TEST_CASE("query heads are a multiple of KV heads", "[problem]") {
  calls::Problem problem = good();
  problem.q_heads = 7;
  CHECK(refusal(problem) == "q_heads: q_heads is 7; it must be a multiple of kv_heads, which is 2");
  problem.kv_heads = 7;
  CHECK(refusal(problem) == "");
}

TEST_CASE("bounds are at least 1, or 0", "[problem]") {
  calls::Problem problem = good();
  problem.max_batch = problem.max_q_len = problem.max_kv_len = 1;
  problem.max_q_tokens = 1;
  CHECK(refusal(problem) == "");
  const auto refused_as = [](const std::string &field) {
    return field + ": " + field + " is -1; it must be at least 1, or 0 for no bound";
  };
  problem.max_q_tokens = -1;
  CHECK(refusal(problem) == refused_as("max_q_tokens"));
  problem.max_kv_len = -1;
  CHECK(refusal(problem) == refused_as("max_kv_len"));
  problem.max_q_len = -1;
  CHECK(refusal(problem) == refused_as("max_q_len"));
  problem.max_batch = -1;
  CHECK(refusal(problem) == refused_as("max_batch"));
}

TEST_CASE("windows have widths of 0 and more, and only if their flags are set", "[problem]") {
  calls::Problem problem = good();
  problem.mask_alignment = SLUICE_TOP_LEFT;
  CHECK(refusal(problem) == "");
  problem.mask_alignment = SLUICE_GIVEN_DIAGONAL;
  CHECK(refusal(problem) == "");
  problem.mask_alignment = 3;
  CHECK(refusal(problem) == is_unknown("mask_alignment", "3", "SLUICE_GIVEN_DIAGONAL (2)"));
  problem = good();
  problem.flags = calls::window_left | calls::window_right;
  CHECK(refusal(problem) == "");
  problem.sink_tokens = 1;
  problem.window_left = 1;
  problem.window_right = 1;
  CHECK(refusal(problem) == "");
  problem.window_right = -1;
  CHECK(refusal(problem) == "window_right: window_right is -1; it must be at least 0");
  problem.window_left = -1;
  CHECK(refusal(problem) == "window_left: window_left is -1; it must be at least 0");
  problem.flags = 0;
  CHECK(refusal(problem) == "window_left: window_left is -1, but flags lacks SLUICE_MASK_WINDOW_LEFT");
  problem.window_left = 0;
  CHECK(refusal(problem) == "window_right: window_right is -1, but flags lacks SLUICE_MASK_WINDOW_RIGHT");
  problem.window_right = 0;
  CHECK(refusal(problem) == "sink_tokens: sink_tokens is 1, but flags lacks SLUICE_MASK_WINDOW_LEFT");
  problem.sink_tokens = -1;
  CHECK(refusal(problem) == "sink_tokens: sink_tokens is -1; it must be at least 0");
  problem.flags = calls::causal | calls::window_right;
  CHECK(refusal(problem) ==
        "flags: flags has SLUICE_MASK_CAUSAL and SLUICE_MASK_WINDOW_RIGHT; it must have at most "
        "one of them: SLUICE_MASK_CAUSAL means a window_right of 0");
}

TEST_CASE("rows of blocks are whole blocks, and rows of 4-bit numbers whole groups", "[problem]") {
  const auto has_multiples = [](calls::Problem problem, int32_t multiple, const std::string &type) {
    for (int32_t calls::Problem::*dim : {&calls::Problem::head_dim_qk, &calls::Problem::head_dim_v}) {
      const std::string field = dim == &calls::Problem::head_dim_qk ? "head_dim_qk" : "head_dim_v";
      problem.head_dim_qk = problem.head_dim_v = 128;
      problem.*dim = multiple;
      CHECK(refusal(problem) == "");
      problem.*dim = multiple / 2;
      CHECK(refusal(problem) == field + ": " + field + " is " + std::to_string(multiple / 2) +
                                    "; it must be a multiple of " + std::to_string(multiple) + " for " +
                                    type);
    }
  };
  calls::Problem problem = good();
  problem.k_type = problem.v_type = SLUICE_Q8_0;
  has_multiples(problem, 32, "q8_0");
  problem.k_type = problem.v_type = SLUICE_Q4_0;
  has_multiples(problem, 32, "q4_0");
  problem.k_type = problem.v_type = SLUICE_U4;
  problem.k_scale_kind = problem.v_scale_kind = SLUICE_SCALE_PER_GROUP;
  problem.scale_group = 32;
  has_multiples(problem, 32, "u4");
  problem.scale_group = 64;
  has_multiples(problem, 64, "u4");
  // Only V has groups of 64.
  problem.k_type = SLUICE_Q8_0;
  problem.k_scale_kind = SLUICE_SCALE_NONE;
  problem.head_dim_qk = 96;
  CHECK(refusal(problem) == "");
  problem = paged();
  problem.k_type = SLUICE_Q4_0;
  problem.k_pack = 8;
  CHECK(refusal(problem) == "k_pack: k_pack is 8; it must be 0 for q4_0");
}

TEST_CASE("4-bit numbers have scales per group, and nothing else has", "[problem]") {
  // K, V, or both.
  for (const uint32_t sides : {1u, 2u, 3u}) {
    calls::Problem problem = good();
    if (sides & 1) problem.k_type = SLUICE_U4, problem.k_scale_kind = SLUICE_SCALE_PER_GROUP;
    if (sides & 2) problem.v_type = SLUICE_U4, problem.v_scale_kind = SLUICE_SCALE_PER_GROUP;
    for (const int32_t group : {32, 64}) {
      problem.scale_group = group;
      CHECK(refusal(problem) == "");
    }
    problem.flags = calls::zero_points;
    CHECK(refusal(problem) == "");
    for (const int32_t group : {0, 16, 33, 128, -32}) {
      problem.scale_group = group;
      CHECK(refusal(problem) ==
            "scale_group: scale_group is " + std::to_string(group) + "; it must be 32 or 64");
    }
    problem.scale_group = 32;
    const std::string field = sides & 1 ? "k_scale_kind" : "v_scale_kind";
    uint32_t &kind = sides & 1 ? problem.k_scale_kind : problem.v_scale_kind;
    kind = SLUICE_SCALE_PER_TOKEN;
    CHECK(refusal(problem) == field + ": " + field + " is 3; it must be SLUICE_SCALE_PER_GROUP (5) for u4");
    kind = SLUICE_SCALE_PER_GROUP;
    uint32_t &type = sides & 1 ? problem.k_type : problem.v_type;
    for (const uint32_t other : {SLUICE_F16, SLUICE_I8, SLUICE_Q8_0, SLUICE_Q4_0}) {
      type = other;
      CHECK(refusal(problem) ==
            field + ": " + field + " is 5; it must not be SLUICE_SCALE_PER_GROUP (5) unless the type is u4");
    }
  }
  calls::Problem problem = good();
  problem.scale_group = 64;
  CHECK(refusal(problem) == "scale_group: scale_group is 64; it must be 0 without scales per group");
  problem.scale_group = 0;
  problem.flags = calls::zero_points;
  CHECK(refusal(problem) ==
        "flags: flags has zero points, but neither K nor V has scales of SLUICE_SCALE_PER_GROUP");
  problem.flags = 0;
  problem.q_scale_kind = SLUICE_SCALE_PER_GROUP;
  CHECK(refusal(problem) ==
        "unsupported q_scale_kind: q_scale_kind is 5; nearest supported: SLUICE_SCALE_PER_HEAD (2)");
  problem.q_scale_kind = SLUICE_SCALE_NONE;
  problem.o_type = SLUICE_E4M3FNUZ;
  problem.o_scale_kind = SLUICE_SCALE_PER_GROUP;
  CHECK(refusal(problem) ==
        "unsupported o_scale_kind: o_scale_kind is 5; nearest supported: SLUICE_SCALE_PER_HEAD (2)");
}

TEST_CASE("a soft cap is finite and not negative, a bias has a type that bias can have", "[problem]") {
  calls::Problem problem = good();
  problem.soft_cap = std::numeric_limits<float>::denorm_min();
  CHECK(refusal(problem) == "");
  problem.soft_cap = -std::numeric_limits<float>::denorm_min();
  CHECK_THAT(refusal(problem),
             Catch::StartsWith("soft_cap: ") && Catch::EndsWith("it must be finite and at least 0"));
  problem.soft_cap = std::numeric_limits<float>::infinity();
  CHECK(refusal(problem) == "soft_cap: soft_cap is inf; it must be finite and at least 0");
  problem = good();
  problem.bias_type = SLUICE_F32;
  CHECK(refusal(problem) == "");
  problem.bias_type = SLUICE_E4M3FNUZ;
  CHECK(refusal(problem) ==
        "bias_type: bias_type is e4m3fnuz; it must be f32, f16 or bf16, or 0 for no bias");
  problem.bias_type = SLUICE_E5M2;
  CHECK(refusal(problem) == "bias_type: bias_type is e5m2; it must be f32, f16 or bf16, or 0 for no bias");
  problem.bias_type = SLUICE_Q4_0 + 1;
  CHECK(refusal(problem) == is_unknown("bias_type", "12", "SLUICE_Q4_0 (11)"));
}

TEST_CASE("scales are of a tensor, of its heads, or of the keys of K and V", "[problem]") {
  const std::tuple<uint32_t calls::Problem::*, std::string, bool> kinds[] = {
      {&calls::Problem::q_scale_kind, "q_scale_kind", false},
      {&calls::Problem::o_scale_kind, "o_scale_kind", false},
      {&calls::Problem::k_scale_kind, "k_scale_kind", true},
      {&calls::Problem::v_scale_kind, "v_scale_kind", true}};
  for (const auto &[kind, field, allows_keys] : kinds) {
    calls::Problem problem = paged();
    problem.o_type = SLUICE_E4M3FNUZ;
    problem.*kind = SLUICE_SCALE_PER_HEAD;
    CHECK(refusal(problem) == "");
    for (const uint32_t per_key : {SLUICE_SCALE_PER_TOKEN, SLUICE_SCALE_PER_PAGE}) {
      problem.*kind = per_key;
      const std::string refused = "unsupported " + field + ": " + field + " is " + std::to_string(per_key) +
                                  "; nearest supported: SLUICE_SCALE_PER_HEAD (2)";
      CHECK(refusal(problem) == (allows_keys ? "" : refused));
    }
    problem.*kind = 6;
    CHECK(refusal(problem) == is_unknown(field, "6", "SLUICE_SCALE_PER_GROUP (5)"));
  }
}

TEST_CASE("packs of V are whole units of whole pages", "[problem]") {
  const auto with_v_pack = [](calls::Problem problem, int32_t pack) {
    problem.v_pack = pack;
    return problem;
  };
  const auto refused_as = [](int32_t pack, const std::string &rule) {
    return "v_pack: v_pack is " + std::to_string(pack) + "; it must be " + rule;
  };
  CHECK(refusal(with_v_pack(good(), SLUICE_PACK_ALL)) == "");
  for (const int32_t pack : {8, -1, INT32_MAX}) {
    CHECK(refusal(with_v_pack(good(), pack)) ==
          refused_as(pack, "SLUICE_PACK_ALL (2^30) outside of pages, or 0 for rows"));
  }
  calls::Problem problem = paged();
  problem.page_size = 48;
  for (const int32_t pack : {0, 8, 16, int32_t{SLUICE_PACK_ALL}})
    CHECK(refusal(with_v_pack(problem, pack)) == "");
  for (const int32_t pack : {-8, 1, 4, 24, 32, 48, 64}) {
    CHECK(refusal(with_v_pack(problem, pack)) ==
          refused_as(pack, "a power of two from 8 on that divides page_size, which is 48, "
                           "SLUICE_PACK_ALL (2^30), or 0 for rows"));
  }
  problem.page_size = 8;
  CHECK(refusal(with_v_pack(problem, 8)) == "");
  CHECK(refusal(with_v_pack(problem, SLUICE_PACK_ALL)) == "");
  for (const int32_t size : {1, 4, 12, 15}) {
    problem.page_size = size;
    CHECK(refusal(with_v_pack(problem, 0)) == "");
    CHECK(refusal(with_v_pack(problem, SLUICE_PACK_ALL)) ==
          "page_size: page_size is " + std::to_string(size) + "; with v_pack it must be a multiple of 8");
  }
  problem = with_v_pack(good(), SLUICE_PACK_ALL);
  const auto refused_all = [&](const std::string &rule) { return refused_as(SLUICE_PACK_ALL, rule); };
  problem.mode = calls::ragged;
  CHECK(refusal(problem) == refused_all("0 with SLUICE_ATTENTION_RAGGED"));
  problem.v_type = problem.k_type = SLUICE_Q8_0;
  CHECK(refusal(problem) == refused_all("0 for q8_0"));
  problem.flags = calls::v_in_k;
  CHECK(refusal(problem) == refused_all("0 with SLUICE_KV_V_IN_K"));
}

TEST_CASE("only problems with pages describe pages", "[problem]") {
  calls::Problem problem = paged();
  CHECK(refusal(problem) == "");
  problem.page_table_kind = SLUICE_PAGE_TABLE_CSR;
  CHECK(refusal(problem) == "");
  problem.page_table_kind = 3;
  CHECK(refusal(problem) == is_unknown("page_table_kind", "3", "SLUICE_PAGE_TABLE_CSR (2)"));
  problem.page_table_kind = 0;
  CHECK(refusal(problem) == "page_table_kind: page_table_kind is missing; with a page_size it must be "
                            "SLUICE_PAGE_TABLE_BLOCK (1) or SLUICE_PAGE_TABLE_CSR (2)");
  problem.page_size = 0;
  CHECK(refusal(problem) == is_small("page_size", "0"));
  problem = paged();
  for (const int32_t pack : {1, 2, 128}) {
    problem.k_pack = pack;
    CHECK(refusal(problem) == "");
  }
  for (const int32_t pack : {-1, 3, 256}) {
    problem.k_pack = pack;
    CHECK(refusal(problem) == "k_pack: k_pack is " + std::to_string(pack) +
                                  "; it must divide head_dim_qk, which is 128, or be 0 for no packs");
  }

  const auto only_paged = [](const std::string &field, const std::string &value) {
    return field + ": " + field + " is " + value + ", but page_size is 0";
  };
  for (const uint32_t mode : {calls::dense, calls::ragged}) {
    problem = good();
    problem.mode = mode;
    problem.flags = calls::page_index_64;
    CHECK(refusal(problem) == "flags: flags has SLUICE_KV_PAGE_INDEX_64, but page_size is 0");
    problem.flags = calls::missing_pages;
    CHECK(refusal(problem) == "flags: flags has SLUICE_MASK_MISSING_PAGES, but page_size is 0");
    problem.k_pack = -1;
    CHECK(refusal(problem) == only_paged("k_pack", "-1"));
    problem.page_table_kind = SLUICE_PAGE_TABLE_BLOCK;
    CHECK(refusal(problem) == only_paged("page_table_kind", "1"));
    problem.page_size = -1;
    CHECK(refusal(problem) == "page_size: page_size is -1; it must be 0 without pages");
  }
}

TEST_CASE("V in K has K's type and no more elements", "[problem]") {
  calls::Problem problem = good();
  problem.flags = calls::v_in_k;
  CHECK(refusal(problem) == "");
  problem.head_dim_v = 129;
  CHECK(refusal(problem) == "head_dim_v: head_dim_v is 129; with SLUICE_KV_V_IN_K it must be at most "
                            "head_dim_qk, which is 128");
  problem.flags = 0;
  CHECK(refusal(problem) == "");
}

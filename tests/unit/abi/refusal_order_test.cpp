//===- refusal_order_test.cpp - which of several mistakes a refusal names -------------------------------===//
//
// Callers may rely on it, so it does not change. Each step repairs what the one before it was refused for.
//
//===----------------------------------------------------------------------------------------------------===//
#include "abi/checks.h"
#include "calls/args.h"
#include "calls/problem.h"
#include "unit/abi/refused.h"

#include <catch2/catch.hpp>

#include <functional>
#include <string>
#include <vector>

using namespace sluice;
using test::refused;

namespace {

struct Step {
  std::string refusal; // that begins so
  std::function<void()> repair;
};

void check_steps(const std::function<void()> &check, const std::vector<Step> &steps) {
  for (const Step &step : steps) {
    CHECK_THAT(refused(check), Catch::StartsWith(step.refusal));
    step.repair();
  }
  CHECK(refused(check) == "");
}

calls::Problem good() {
  calls::Problem problem = {};
  problem.q_type = problem.k_type = problem.v_type = problem.o_type = SLUICE_F16;
  problem.q_heads = 8;
  problem.kv_heads = 2;
  problem.head_dim_qk = problem.head_dim_v = 128;
  return problem;
}

} // namespace

TEST_CASE("a problem with many mistakes is refused for them in turn", "[order]") {
  calls::Problem p = good();
  p.mask_alignment = 9;
  p.flags = calls::causal | calls::window_right | calls::causal_by_sequence | calls::mask_bits_of_new |
            calls::bias_scale | calls::missing_pages;
  p.window_left = p.window_right = p.sink_tokens = -1;
  p.soft_cap = -1;
  p.bias_type = 99;
  p.q_scale_kind = 99;
  check_steps(
      [&] { abi::check_problem(p); },
      {{"newer_struct mask_alignment: ", [&] { p.mask_alignment = 0; }},
       {"flags: flags has SLUICE_MASK_CAUSAL and SLUICE_MASK_WINDOW_RIGHT",
        [&] { p.flags &= ~uint32_t{calls::window_right}; }},
       {"flags: flags has SLUICE_MASK_CAUSAL and SLUICE_MASK_CAUSAL_BY_SEQUENCE",
        [&] { p.flags &= ~uint32_t{calls::causal}; }},
       {"flags: flags has SLUICE_MASK_BITS_OF_NEW", [&] { p.flags |= calls::mask_bits; }},
       {"window_left: window_left is -1, but", [&] { p.window_left = 0; }},
       {"window_right: window_right is -1, but", [&] { p.window_right = 0; }},
       {"sink_tokens: sink_tokens is -1; it must", [&] { p.sink_tokens = 1; }},
       {"sink_tokens: sink_tokens is 1, but", [&] { p.sink_tokens = 0; }},
       {"soft_cap: ", [&] { p.soft_cap = 0; }},
       {"newer_struct bias_type: ", [&] { p.bias_type = SLUICE_I8; }},
       {"bias_type: bias_type is i8", [&] { p.bias_type = 0; }},
       {"flags: flags has SLUICE_SCORES_BIAS_SCALE", [&] { p.bias_type = SLUICE_F32; }},
       {"newer_struct q_scale_kind: ", [&] { p.q_scale_kind = 0; }},
       {"flags: flags has SLUICE_MASK_MISSING_PAGES", [&] { p.flags &= ~uint32_t{calls::missing_pages}; }}});
}

TEST_CASE("what shared prefixes exclude is refused in turn", "[order]") {
  calls::Problem p = good();
  p.mode = calls::paged;
  p.page_size = 16;
  p.page_table_kind = SLUICE_PAGE_TABLE_BLOCK;
  p.max_prefixes = p.max_prefix_len = 1;
  p.max_q_tokens = 1;
  p.flags = calls::prefixes | calls::causal_by_sequence | calls::window_left | calls::window_right |
            calls::alibi | calls::missing_pages | calls::mask_bits_of_new | calls::mask_bits |
            calls::bias_scale;
  p.mask_alignment = SLUICE_TOP_LEFT;
  p.bias_type = SLUICE_F16;
  const auto without = [&](uint32_t flag) { return [&p, flag] { p.flags &= ~flag; }; };
  const std::string flags_have = "unsupported flags: flags has ";
  check_steps([&] { abi::check_problem(p); },
              {{"unsupported mask_alignment: ", [&] { p.mask_alignment = 0; }},
               {flags_have + "SLUICE_MASK_WINDOW_LEFT", without(calls::window_left)},
               {flags_have + "SLUICE_MASK_WINDOW_RIGHT", without(calls::window_right)},
               {flags_have + "SLUICE_SCORES_ALIBI", without(calls::alibi)},
               {flags_have + "SLUICE_MASK_MISSING_PAGES", without(calls::missing_pages)},
               {flags_have + "SLUICE_MASK_BITS_OF_NEW", without(calls::mask_bits_of_new)},
               {flags_have + "SLUICE_MASK_BITS", without(calls::mask_bits)},
               {flags_have + "SLUICE_SCORES_BIAS_SCALE", without(calls::bias_scale)},
               {"unsupported bias_type: ", [&] { p.bias_type = 0; }}});
}

TEST_CASE("a call with many mistakes is refused for them in turn", "[order]") {
  const calls::Problem problem = good();
  const abi::TensorRules rules = {16, 8, true, 128};
  alignas(16) static float data[1] = {};
  const auto tensor = [](int64_t heads) -> sluice_tensor {
    return {data, {heads * 128, heads * 128, 128, 1}};
  };
  calls::Args a = {};
  a.batch = 2;
  a.q_len = a.kv_len = 1;
  a.q = a.o = tensor(8);
  a.k = a.v = tensor(2);
  int32_t number = 0;
  a.bias.data = a.mask.data = a.k_scales.data = data;
  a.alibi_slopes = a.sink_logits = a.bias_scale = a.q_scale = data;
  a.alibi_batch_stride = a.bias_scale_batch_stride = -1;
  a.diagonals = a.causal = a.spans = &number;
  a.span_count = 1;
  const auto is_given = [](const std::string &field) { return field + ": " + field + " is given, but"; };
  const auto is_negative = [](const std::string &field) { return field + ": " + field + " is -1"; };
  check_steps([&] { abi::check_args(problem, rules, a); },
              {{is_given("bias.data"), [&] { a.bias.data = nullptr; }},
               {is_given("mask.data"), [&] { a.mask.data = nullptr; }},
               {is_given("alibi_slopes"), [&] { a.alibi_slopes = nullptr; }},
               {is_given("sink_logits"), [&] { a.sink_logits = nullptr; }},
               {is_given("bias_scale"), [&] { a.bias_scale = nullptr; }},
               {is_negative("alibi_batch_stride"), [&] { a.alibi_batch_stride = 1; }},
               {"alibi_batch_stride: alibi_batch_stride is 1, but", [&] { a.alibi_batch_stride = 0; }},
               {is_negative("bias_scale_batch_stride"), [&] { a.bias_scale_batch_stride = 0; }},
               {is_given("q_scale"), [&] { a.q_scale = nullptr; }},
               {is_given("k_scales.data"), [&] { a.k_scales.data = nullptr; }},
               {is_given("diagonals"), [&] { a.diagonals = nullptr; }},
               {is_given("causal"), [&] { a.causal = nullptr; }},
               {is_given("spans"), [&] { a.spans = nullptr; }},
               {"span_count: span_count is 1, but", [&] { a.span_count = 0; }}});
}

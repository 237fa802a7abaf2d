//===- values_test.cpp - parts of single features: kernel arguments, what is hidden, limits -------------===//
#include "calls/args.h"
#include "calls/problem.h"
#include "features/all.h"
#include "unit/abi/refused.h"

#include <catch2/catch.hpp>

#include <array>
#include <cstring>

using namespace sluice;
using features::Place;
using test::refused;

namespace {

template <typename Type> const Type *somewhere(uintptr_t number) {
  return reinterpret_cast<const Type *>(number << 12); // NOLINT(performance-no-int-to-ptr)
}

/// On the device, with tiles of 16 rows.
constexpr tensors::TensorRules device_rules = {16, 8, true, 16};

} // namespace

TEST_CASE("arrays of a call become kernel arguments", "[features]") {
  calls::Args call = {};
  call.batch = 2;
  call.kv_len = 1;
  call.diagonals = somewhere<int32_t>(1);
  call.causal = somewhere<int32_t>(2);
  call.bias_scale = somewhere<float>(3);
  call.alibi_slopes = somewhere<float>(4);
  call.spans = somewhere<int32_t>(5);
  call.span_count = 7;
  call.bias.data = const_cast<char *>(somewhere<char>(6));
  call.mask.data = const_cast<char *>(somewhere<char>(7));
  call.bias_scale_batch_stride = 8;
  call.alibi_batch_stride = 9;
  package::AttentionKernargs out = {};
  features::for_each<&features::Feature::fill_call>([&](auto fill) { fill(out, {}, call); });
  CHECK(out.diagonals == 1 << 12);
  CHECK(out.causal == 2 << 12);
  CHECK(out.bias_scale == 3 << 12);
  CHECK(out.alibi_slopes == 4 << 12);
  CHECK(out.spans == 5 << 12);
  CHECK(out.span_stride == 14);
  CHECK(out.bias == 6 << 12);
  CHECK(out.mask == 7 << 12);
  CHECK(out.bias_scale_batch_stride == 8);
  CHECK(out.alibi_batch_stride == 9);
}

TEST_CASE("each question asks for something", "[features]") {
  for (const features::Question &question : features::joined<&features::Feature::questions>()) {
    if (question.ask == nullptr) continue;
    calls::Problem asked = {}, plain = {};
    question.ask(asked);
    CAPTURE(question.name);
    CHECK(std::memcmp(&asked, &plain, sizeof asked) != 0);
  }
  const auto asked = [](std::string_view name) {
    for (const features::Question &question : features::joined<&features::Feature::questions>()) {
      if (question.name != name) continue;
      calls::Problem problem = {};
      question.ask(problem);
      return problem;
    }
    return calls::Problem{};
  };
  CHECK(asked("causal, top-left").mask_alignment == SLUICE_TOP_LEFT);
  CHECK(asked("bias of F32").bias_type == SLUICE_F32);
  CHECK(asked("sink logits").flags == calls::sinks);
}

TEST_CASE("causal sequences hide what comes after the diagonal", "[features]") {
  calls::Problem problem = {};
  problem.flags = calls::causal_by_sequence;
  constexpr std::array<int32_t, 2> causal = {0, 1};
  calls::Args args = {};
  args.causal = causal.data();
  const auto hides = [&](int64_t sequence, int64_t key) {
    const Place at = {
        .sequence = sequence, .q_head = 0, .row = 0, .key = key, .rows = 1, .keys = 9, .diagonal = 4};
    return features::causal_by_sequence.hides_by_distance(problem, args, at);
  };
  CHECK(!hides(0, 5));
  CHECK(!hides(1, 4));
  CHECK(hides(1, 5));
  CHECK(!hides(1, 3));
  problem.flags = 0;
  CHECK(!hides(1, 5));
}

TEST_CASE("bits of new rows count from the first new key", "[features]") {
  calls::Problem problem = {};
  problem.flags = calls::mask_bits | calls::mask_bits_of_new;
  std::array<uint8_t, 4> bits = {0, 0, 0xfe, 0x02}; // two rows of two bytes
  calls::Args args = {};
  args.mask = {bits.data(), {0, 0, 2, 1}};
  const auto hides = [&](int64_t row, int64_t key) {
    const Place at = {
        .sequence = 0, .q_head = 0, .row = row, .key = key, .rows = 10, .keys = 30, .diagonal = 0};
    return features::mask_bits.hides(problem, args, at);
  };
  CHECK(!hides(1, 19)); // before the new rows
  CHECK(hides(1, 20));
  CHECK(!hides(1, 21));
  CHECK(hides(1, 28));
  CHECK(!hides(1, 29));
  CHECK(hides(0, 21));
}

TEST_CASE("diagonals have limits", "[features]") {
  constexpr int32_t most = 1 << 30;
  calls::Problem problem = {};
  problem.mask_alignment = SLUICE_GIVEN_DIAGONAL;
  std::array<int32_t, 2> diagonals = {most, -most};
  calls::Args args = {};
  args.batch = 2;
  args.diagonals = diagonals.data();
  const auto check_rows = [&](int32_t rows, const tensors::TensorRules &rules) {
    args.q_len = rows;
    return refused([&] { features::check_diagonals(problem, rules, args); });
  };
  CHECK(check_rows(most, device_rules).empty());
  CHECK(check_rows(most + 1, device_rules).starts_with("unsupported q_len: q_len is 1073741825"));
  CHECK(check_rows(most + 1, {0, 1, false, 0}).empty());
  problem.mask_alignment = SLUICE_TOP_LEFT;
  args.diagonals = nullptr;
  CHECK(check_rows(most + 1, device_rules).empty());

  args.diagonals = diagonals.data();
  const auto check_contents = [&] { return refused([&] { features::check_range_of_diagonals(args); }); };
  CHECK(check_contents().empty());
  diagonals[1] = -most - 1;
  CHECK(check_contents().starts_with("diagonals[1]"));
  diagonals[1] = most + 1;
  CHECK(check_contents().starts_with("diagonals[1]"));
  args.batch = 1;
  CHECK(check_contents().empty());
}

TEST_CASE("the keys of a span see each other", "[features]") {
  // Two sequences with three spans each, one of which is empty.
  std::array<int32_t, 12> spans = {2, 5, 0, 0, 7, 9, 1, 2, 4, 4, 6, 8};
  calls::Args args = {};
  args.batch = 2;
  args.spans = spans.data();
  args.span_count = 3;
  const auto reveals = [&](int64_t sequence, int64_t diagonal, int64_t key) {
    const Place at = {
        .sequence = sequence, .q_head = 0, .row = 0, .key = key, .rows = 1, .keys = 20, .diagonal = diagonal};
    return features::spans.reveals({}, args, at);
  };
  CHECK(!reveals(0, 2, 1));
  CHECK(reveals(0, 2, 2));
  CHECK(reveals(0, 4, 2));
  CHECK(reveals(0, 2, 4));
  CHECK(!reveals(0, 2, 5));
  CHECK(!reveals(0, 5, 4));
  CHECK(!reveals(0, 5, 5)); // in no span
  CHECK(reveals(0, 7, 8));
  CHECK(!reveals(0, 2, 8));
  CHECK(reveals(1, 6, 7));
  CHECK(!reveals(1, 7, 8));
  CHECK(!reveals(1, 2, 2));

  const auto order = [&] { return refused([&] { features::check_order_of_spans(args); }); };
  CHECK(order().empty());
  spans[8] = spans[9] = 0; // an empty one may be anywhere
  CHECK(order().empty());
  spans[10] = 2;
  CHECK(order().empty());
  spans[10] = 1;
  CHECK(order().starts_with("spans[10]: spans[10] is 1"));
  spans[10] = 6;
  spans[4] = 4;
  CHECK(order().starts_with("spans[4]"));
  args.batch = 0;
  CHECK(order().empty());
}

TEST_CASE("a bias is multiplied by the factor of the sequence and head", "[features]") {
  calls::Problem problem = {};
  problem.bias_type = SLUICE_F32;
  problem.flags = calls::bias_scale;
  std::array<float, 1> bias = {2};
  constexpr std::array<float, 6> factors = {1, 2, 3, 4, 5, 6};
  calls::Args args = {};
  args.bias.data = bias.data();
  args.bias_scale = factors.data();
  args.bias_scale_batch_stride = 3;
  const Place at = {.sequence = 1, .q_head = 2, .row = 0, .key = 0, .rows = 1, .keys = 1, .diagonal = 0};
  CHECK(features::bias.changed_score(problem, args, at, 10) == 10 + 6 * 2);
}

TEST_CASE("the least soft cap is served", "[features]") {
  calls::Problem problem = {};
  problem.soft_cap = 1e-30f;
  CHECK(refused([&] { features::check_soft_cap_limits(problem); }).empty());
  problem.soft_cap = 9e-31f;
  CHECK(refused([&] { features::check_soft_cap_limits(problem); }).starts_with("unsupported soft_cap"));
}

//===- scores_test.cpp - modifications of a score, and terms of the denominator -------------------------===//
//
// With two keys O = v0 / (1 + e^(s1 - s0)) for v = {1, 0}, and the scores follow from LSE: s0 = LSE + ln O.
//
//===----------------------------------------------------------------------------------------------------===//
#include "call.h"
#include "calls/problem.h"

#include "support/half.h"

#include <catch2/catch.hpp>

using namespace sluice;
using namespace sluice::test;

namespace {

/// One row, two keys with products 3 and 1 of Q and K.
struct TwoKeys : Call {
  TwoKeys() : Call(1, 1, 2, 1, 1, 1, 2) {
    q = {1};
    k = {3, 1};
    v = {1, 0, 0, 1};
  }

  /// Their scores, recovered from the result.
  std::vector<double> scores() {
    run();
    return {lse[0] + std::log(double(o[0])), lse[0] + std::log(double(o[1]))};
  }
};

void check_scores(const std::vector<double> &scores, double first, double second) {
  CHECK(scores[0] == Approx(first).margin(1e-5));
  CHECK(scores[1] == Approx(second).margin(1e-5));
}

} // namespace

TEST_CASE("a soft cap bends scores", "[reference][scores]") {
  TwoKeys call;
  call.problem.soft_cap = 2;
  // 2 tanh 1.5 and 2 tanh 0.5
  check_scores(call.scores(), 1.8102966, 0.9242343);
  call.args.scale = 1000;
  check_scores(call.scores(), 2, 2);
}

TEST_CASE("scales come before the soft cap, bias and ALiBi after it", "[reference][scores]") {
  TwoKeys call;
  const float q_scale = 4, k_scale = 0.125f, slope = 0.5f;
  float bias[] = {10, 20};
  call.args.scale = 2;
  call.problem.q_scale_kind = call.problem.k_scale_kind = SLUICE_SCALE_PER_TENSOR;
  call.args.q_scale = &q_scale;
  call.args.k_scale = &k_scale;
  check_scores(call.scores(), 3, 1); // 2 * 4 / 8
  call.problem.soft_cap = 2;
  check_scores(call.scores(), 1.8102966, 0.9242343);
  call.problem.bias_type = SLUICE_F32;
  call.args.bias = {bias, {0, 0, 0, 1}};
  check_scores(call.scores(), 11.8102966, 20.9242343);
  call.problem.flags |= calls::alibi;
  call.args.alibi_slopes = &slope;
  check_scores(call.scores(), 11.3102966, 20.9242343); // key 0 is one before the diagonal
}

TEST_CASE("ALiBi counts the distance from the diagonal, both ways", "[reference][scores]") {
  Call call(1, 2, 3, 2, 1, 1, 1);
  call.problem.flags |= calls::alibi;
  const float slopes[] = {1, 0.25f}; // [query head]
  call.args.alibi_slopes = slopes;
  call.v = {1, 0, 0};
  // O = e^-s0 / (e^-s0 + e^-s1 + e^-s2) with the distances of each row.
  const auto first = [](double slope, int d0, int d1, int d2) {
    return std::exp(-slope * d0) / (std::exp(-slope * d0) + std::exp(-slope * d1) + std::exp(-slope * d2));
  };
  SECTION("bottom right: the diagonal is key i + 1") {
    call.run();
    CHECK(call.o[0] == Approx(first(1, 1, 0, 1))); // [row][head]
    CHECK(call.o[1] == Approx(first(0.25, 1, 0, 1)));
    CHECK(call.o[2] == Approx(first(1, 2, 1, 0)));
    CHECK(call.o[3] == Approx(first(0.25, 2, 1, 0)));
  }
  SECTION("top left") {
    call.problem.mask_alignment = SLUICE_TOP_LEFT;
    call.run();
    CHECK(call.o[0] == Approx(first(1, 0, 1, 2)));
    CHECK(call.o[3] == Approx(first(0.25, 1, 0, 1)));
  }
}

TEST_CASE("a bias has each type and any dimension may be one for all", "[reference][scores]") {
  Call call(2, 2, 2, 2, 1, 1, 1);
  call.v = {1, 0, 1, 0};
  const auto logistic = [](double x) { return 1 / (1 + std::exp(-x)); };
  // [batch][head][row] has bias n for key 0 and 0 for key 1.
  std::vector<float> bias(16, 0);
  for (int n = 0; n < 8; ++n)
    bias[size_t(2 * n)] = float(n);
  call.args.bias = {bias.data(), {8, 4, 2, 1}};
  call.problem.bias_type = SLUICE_F32;
  const auto check = [&](int batch, int head, int row) {
    for (int b = 0; b < 2; ++b)
      for (int h = 0; h < 2; ++h)
        for (int i = 0; i < 2; ++i) {
          const int n = 4 * b * batch + 2 * h * head + i * row;
          CHECK(call.o[size_t(4 * b + 2 * i + h)] == Approx(logistic(n)));
        }
  };
  call.run();
  check(1, 1, 1);
  SECTION("one for all sequences") {
    call.args.bias.stride[0] = 0;
    call.run();
    check(0, 1, 1);
  }
  SECTION("one for all heads") {
    call.args.bias.stride[1] = 0;
    call.run();
    check(1, 0, 1);
  }
  SECTION("one for all rows") {
    call.args.bias.stride[2] = 0;
    call.run();
    check(1, 1, 0);
  }
  SECTION("one for all keys changes only LSE") {
    call.args.bias.stride[3] = 0;
    call.run();
    CHECK(call.o[7] == Approx(0.5));
    CHECK(call.lse[7] == Approx(7 + std::log(2.0)));
  }
  SECTION("16-bit types") {
    std::vector<uint16_t> narrow(16);
    for (const uint32_t type : {SLUICE_F16, SLUICE_BF16}) {
      for (size_t i = 0; i < 16; ++i) {
        narrow[i] = type == SLUICE_F16 ? support::f16_from_float(bias[i]) : support::bf16_from_float(bias[i]);
      }
      call.problem.bias_type = type;
      call.args.bias.data = narrow.data();
      call.run();
      check(1, 1, 1);
    }
  }
}

TEST_CASE("keys with a bias of -infinity have no weight", "[reference][scores]") {
  TwoKeys call;
  float bias[] = {-infinity, 0};
  call.problem.bias_type = SLUICE_F32;
  call.args.bias = {bias, {0, 0, 0, 1}};
  call.run();
  CHECK(call.o == std::vector<float>{0, 1});
  CHECK(call.lse[0] == 1);
  SECTION("a row that sees no other is zero") {
    bias[1] = -infinity;
    call.run();
    CHECK(call.o == std::vector<float>{0, 0});
    CHECK(call.lse[0] == -infinity);
  }
  SECTION("the key is hidden: NaN in its key and value does not reach the row") {
    call.k[0] = not_a_number;
    call.v[0] = not_a_number;
    call.run();
    CHECK(call.o == std::vector<float>{0, 1});
    CHECK(call.lse[0] == 1);
  }
  SECTION("so does one that is -infinity times log2(e)") {
    bias[0] = -3e38f;
    bias[1] = -2e38f;
    call.run();
    CHECK(call.o == std::vector<float>{0, 1});
    CHECK(call.lse[0] == -2e38f);
  }
}

TEST_CASE("a sink takes weight and gives no value", "[reference][scores]") {
  Call call(1, 2, 2, 2, 1, 1, 1);
  call.problem.flags |= calls::sinks;
  const float sinks[] = {0, 1000}; // [query head]
  call.args.sink_logits = sinks;
  call.v = {3, 6};
  call.run();
  CHECK(call.o[0] == Approx(3)); // (3 + 6) / (1 + 1 + 1)
  CHECK(call.lse[0] == Approx(std::log(3.0)));
  CHECK(call.o[1] == 0); // nothing else is left of head 1
  CHECK(call.lse[2] == 1000);
  SECTION("as the only key it is the LSE") {
    call.causal(SLUICE_TOP_LEFT);
    call.args.kv_len = 1;
    const int32_t no_keys = 0;
    call.args.kv_lengths = &no_keys;
    call.run();
    CHECK(call.o == std::vector<float>{0, 0, 0, 0});
    CHECK(call.lse == std::vector<float>{0, 0, 1000, 1000});
  }
  SECTION("at -infinity it has no effect") {
    const float none[] = {-infinity, -infinity};
    call.args.sink_logits = none;
    call.run();
    CHECK(call.o[0] == Approx(4.5));
    CHECK(call.lse[0] == Approx(std::log(2.0)));
  }
  SECTION("it is to base e with every base of LSE") {
    call.problem.flags |= calls::lse_log2;
    call.run();
    CHECK(call.o[0] == Approx(3));
    CHECK(call.lse[0] == Approx(std::log2(3.0)));
    CHECK(call.lse[2] == Approx(1000 / std::log(2.0)));
  }
}

TEST_CASE("LSE to base 2 is log2 of the denominator", "[reference][scores]") {
  Call call(1, 2, 8, 1, 1, 1, 1);
  call.problem.flags |= calls::lse_log2;
  call.run();
  CHECK(call.lse == std::vector<float>{3, 3});
  call.causal(SLUICE_BOTTOM_RIGHT);
  const int32_t one_key = 1;
  call.args.kv_lengths = &one_key;
  call.run();
  CHECK(call.lse == std::vector<float>{-infinity, 0});
}

TEST_CASE("scales are those of the tensor or of the head", "[reference][scores]") {
  // Query heads 0 and 1 read KV head 0, 2 and 3 KV head 1.
  Call call(1, 1, 2, 4, 2, 1, 1);
  call.q = {1, 1, 1, 1};
  call.k = {1, 1, 0, 0}; // [key][head]
  call.v = {1, 1, 0, 0};
  const float q_scale[] = {1, 2, 3, 4}, k_scale[] = {0.5f, 0.25f}, v_scale[] = {10, 100};
  call.args.q_scale = q_scale;
  call.args.k_scale = k_scale;
  call.args.v_scale = v_scale;
  const auto logistic = [](double x) { return 1 / (1 + std::exp(-x)); };
  SECTION("per head") {
    call.problem.q_scale_kind = call.problem.k_scale_kind = call.problem.v_scale_kind = SLUICE_SCALE_PER_HEAD;
    call.run();
    CHECK(call.o[0] == Approx(10 * logistic(0.5)));
    CHECK(call.o[1] == Approx(10 * logistic(1)));
    CHECK(call.o[2] == Approx(100 * logistic(0.75)));
    CHECK(call.o[3] == Approx(100 * logistic(1)));
  }
  SECTION("per tensor") {
    call.problem.q_scale_kind = call.problem.k_scale_kind = call.problem.v_scale_kind =
        SLUICE_SCALE_PER_TENSOR;
    call.run();
    for (const float value : call.o)
      CHECK(value == Approx(10 * logistic(0.5)));
  }
  SECTION("each tensor has its own kind") {
    call.problem.q_scale_kind = SLUICE_SCALE_PER_HEAD;
    call.problem.v_scale_kind = SLUICE_SCALE_PER_TENSOR;
    call.run();
    CHECK(call.o[3] == Approx(10 * logistic(4)));
  }
}

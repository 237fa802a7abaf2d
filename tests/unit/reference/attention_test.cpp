//===- attention_test.cpp - the host reference against closed forms -------------------------------------===//
#include "call.h"
#include "support/half.h"

#include <catch2/catch.hpp>

using namespace sluice;
using namespace sluice::test;

TEST_CASE("equal scores give the mean of the visible values and the log of their number", "[reference]") {
  Call call(1, 4, 6, 1, 1, 2, 1);
  for (int j = 0; j < 6; ++j)
    call.v[j] = float(1 << j);
  SECTION("no mask") {
    call.run();
    for (int i = 0; i < 4; ++i) {
      CHECK(call.o[i] == Approx(63.0 / 6));
      CHECK(call.lse[i] == Approx(std::log(6.0)));
    }
  }
  SECTION("bottom right: the last row sees all keys") {
    call.causal(SLUICE_BOTTOM_RIGHT);
    call.run();
    for (int i = 0; i < 4; ++i) {
      CHECK(call.o[i] == Approx(((1 << (i + 3)) - 1) / (i + 3.0)));
      CHECK(call.lse[i] == Approx(std::log(i + 3.0)));
    }
  }
  SECTION("top left: the first row sees one key") {
    call.causal(SLUICE_TOP_LEFT);
    call.run();
    for (int i = 0; i < 4; ++i) {
      CHECK(call.o[i] == Approx(((1 << (i + 1)) - 1) / (i + 1.0)));
      CHECK(call.lse[i] == Approx(std::log(i + 1.0)).margin(1e-12));
    }
  }
}

TEST_CASE("rows without a visible key are zero with LSE -infinity", "[reference]") {
  Call call(1, 5, 2, 1, 1, 1, 1);
  call.v = {3, 5};
  call.causal(SLUICE_BOTTOM_RIGHT);
  call.run();
  CHECK(call.o == std::vector<float>{0, 0, 0, 3, 4});
  for (int i = 0; i < 3; ++i)
    CHECK(call.lse[i] == -infinity);
  CHECK(call.lse[3] == 0);
  CHECK(call.lse[4] == Approx(std::log(2.0)));
}

TEST_CASE("two keys give the logistic function, at any scale and offset of the scores", "[reference]") {
  for (const double difference : {0.0, 0.5, -3.0, 20.0}) {
    for (const double offset : {0.0, 1000.0, -1000.0}) {
      Call call(1, 1, 2, 1, 1, 2, 1);
      call.q = {1, 1};
      call.k = {float(difference) / 2, 0, 0, 0};
      call.k[1] = call.k[3] = float(offset) / 2;
      call.v = {1, 0};
      call.args.scale = 2;
      call.run();
      CHECK(call.o[0] == Approx(1 / (1 + std::exp(-difference))));
      CHECK(call.lse[0] == Approx(offset + std::log1p(std::exp(difference))));
    }
  }
}

TEST_CASE("the usual scale is 1 / sqrt(head_dim_qk)", "[reference]") {
  Call call(1, 1, 2, 1, 1, 16, 3);
  call.args.scale = calls::usual_scale(call.problem);
  for (int d = 0; d < 16; ++d)
    call.q[d] = call.k[d] = 1;
  call.v[0] = 1;
  call.run();
  CHECK(call.o[0] == Approx(1 / (1 + std::exp(-4.0))));
}

TEST_CASE("query heads read the KV head of their group, batches their own", "[reference]") {
  Call call(2, 1, 1, 6, 3, 1, 1);
  for (int i = 0; i < 6; ++i)
    call.v[i] = float(i + 1); // [batch, kv head]
  call.run();
  CHECK(call.o == std::vector<float>{1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6});
}

TEST_CASE("a series of values has the sum it should have", "[reference]") {
  // Scores j * ln(1/2), values (-1)^j: a geometric series.
  constexpr int keys = 40;
  Call call(1, 1, keys, 1, 1, 1, 1);
  call.q[0] = float(-1);
  call.args.scale = float(std::log(2.0));
  for (int j = 0; j < keys; ++j) {
    call.k[j] = float(j);
    call.v[j] = j % 2 == 0 ? 1 : -1;
  }
  call.run();
  CHECK(call.o[0] == Approx((1 / 1.5) / 2).epsilon(1e-6));
  CHECK(call.lse[0] == Approx(std::log(2.0)).epsilon(1e-6));
}

TEST_CASE("strides may permute, skip, repeat and run in any dimension", "[reference]") {
  // q and o as [head, dim, token], k and v broadcast over batch; gaps stay untouched.
  constexpr int batch = 2, q_len = 3, kv_len = 4, heads = 2, dims = 2;
  Call plain(batch, q_len, kv_len, heads, heads, dims, dims);
  Call other(batch, q_len, kv_len, heads, heads, dims, dims);
  for (size_t i = 0; i < plain.q.size(); ++i)
    plain.q[i] = float(std::sin(double(i)));
  for (size_t i = 0; i < plain.k.size() / batch; ++i) {
    plain.k[i] = plain.k[i + plain.k.size() / batch] = float(std::cos(double(i)));
    plain.v[i] = plain.v[i + plain.v.size() / batch] = float(i);
  }
  plain.run();

  other.k = plain.k;
  other.v = plain.v;
  other.args.k.stride[0] = other.args.v.stride[0] = 0;
  std::vector<float> q(200, not_a_number), o(200, untouched);
  const int64_t strides[4] = {100, 3, 50, 20}; // batch, token, head, dim
  other.args.q = {q.data(), {100, 3, 50, 20}};
  other.args.o = {o.data(), {100, 3, 50, 20}};
  size_t written = 0;
  const auto each = [&](auto visit) {
    size_t index = 0;
    for (int b = 0; b < batch; ++b)
      for (int t = 0; t < q_len; ++t)
        for (int h = 0; h < heads; ++h)
          for (int d = 0; d < dims; ++d)
            visit(index++, size_t(b * strides[0] + t * strides[1] + h * strides[2] + d * strides[3]));
  };
  each([&](size_t from, size_t to) { q[to] = plain.q[from]; });
  other.run();
  each([&](size_t from, size_t to) { CHECK(o[to] == plain.o[from]); });
  for (const float value : o)
    written += value != untouched;
  CHECK(written == plain.o.size());
  CHECK(other.lse == plain.lse);
}

TEST_CASE("NaN reaches exactly the rows that see it", "[reference]") {
  Call call(1, 3, 3, 1, 1, 1, 1);
  call.causal(SLUICE_BOTTOM_RIGHT);
  SECTION("in V, LSE stays") {
    call.v = {1, 2, not_a_number};
    call.run();
    CHECK(!std::isnan(call.lse[2]));
  }
  SECTION("in K") {
    call.q = {1, 1, 1};
    call.k = {0, 0, not_a_number};
    call.run();
    CHECK(std::isnan(call.lse[2]));
  }
  SECTION("in Q") {
    call.q = {1, 1, not_a_number};
    call.run();
    CHECK(std::isnan(call.lse[2]));
  }
  CHECK(!std::isnan(call.o[0]));
  CHECK(!std::isnan(call.o[1]));
  CHECK(std::isnan(call.o[2]));
}

TEST_CASE("types are widened exactly and the result is rounded once", "[reference]") {
  Call call(1, 1, 3, 1, 1, 1, 1);
  const auto result = [&](uint32_t type) {
    uint16_t bits = 0xffff;
    call.problem.o_type = type;
    call.args.o.data = &bits;
    call.run();
    return bits;
  };
  call.v = {1, 1, 2}; // mean 4/3
  CHECK(result(SLUICE_F16) == support::f16_from_double(4.0 / 3));
  CHECK(result(SLUICE_BF16) == support::bf16_from_double(4.0 / 3));

  const uint16_t f16_values[] = {0x3c00, 0x4000, 0xc500}; // 1, 2, -5
  call.problem.v_type = SLUICE_F16;
  call.args.v.data = const_cast<uint16_t *>(f16_values);
  CHECK(result(SLUICE_F16) == support::f16_from_double(-2.0 / 3));
  const uint16_t bf16_values[] = {0x3f80, 0x4000, 0xc0a0};
  call.problem.v_type = SLUICE_BF16;
  call.args.v.data = const_cast<uint16_t *>(bf16_values);
  CHECK(result(SLUICE_BF16) == support::bf16_from_double(-2.0 / 3));
}

TEST_CASE("without WRITE_LSE no LSE is written", "[reference]") {
  Call call(1, 2, 2, 1, 1, 1, 1);
  call.problem.flags = 0;
  call.run();
  CHECK(call.lse == std::vector<float>{untouched, untouched});
}

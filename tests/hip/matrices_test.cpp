//===- matrices_test.cpp - matrix products and softmax, against the host --------------------------------===//
#include <algorithm>
#include <cmath>

#include "hip/hip_fixture.h"
#include "support/half.h"

namespace sluice::test {

namespace {

SLUICE_BUILDS(MATRICES);

struct Shape {
  int m, n, k;
};

/// Elements are small whole numbers: every sum is exact in every type.
template <class T, class C>
void check_product(const char *kernel, Shape shape, std::array<uint32_t, 3> block, int tile,
                   T (*narrow)(float)) {
  const auto [m, n, k] = shape;
  Memory memory;
  const auto a = device<T>(memory, size_t(m * k)), b = device<T>(memory, size_t(k * n));
  const auto c = device<C>(memory, size_t(m * n));
  std::mt19937 random(1);
  std::vector<int> x(a.size()), y(b.size());
  for (auto *values : {&x, &y})
    std::generate(values->begin(), values->end(), [&] { return int(random() % 17) - 8; });
  std::transform(x.begin(), x.end(), a.begin(), [&](int value) { return narrow(float(value)); });
  std::transform(y.begin(), y.end(), b.begin(), [&](int value) { return narrow(float(value)); });
  std::vector<C> expected;
  for (int i = 0; i < m; ++i)
    for (int j = 0; j < n; ++j) {
      int sum = 0;
      for (int l = 0; l < k; ++l)
        sum += x[size_t(i * k + l)] * y[size_t(l * n + j)];
      expected.push_back(C(sum));
    }
  const std::array<uint32_t, 3> grid{uint32_t((n + tile - 1) / tile), uint32_t((m + tile - 1) / tile), 1};
  run_everywhere(
      builds, {kernel, grid, block}, memory, Arguments(c.data(), a.data(), b.data(), m, n, k),
      [&] { std::fill(c.begin(), c.end(), C(NAN)); }, [&] { CHECK(same(c, expected)); });
}

} // namespace

TEST_CASE("products by tiles in LDS", "[hip][matrices]") {
  check_product<float, float>("tiled_float", {20, 37, 25}, {16, 16, 1}, 16, [](float x) { return x; });
  check_product<double, double>("tiled_double", {17, 16, 20}, {16, 16, 1}, 16,
                                [](float x) { return double(x); });
}

TEST_CASE("products on the matrix core", "[hip][matrices]") {
  check_product<uint16_t, float>("mfma_f16", {32, 64, 24}, {64, 1, 1}, 32,
                                 [](float x) { return support::f16_from_float(x); });
  check_product<uint16_t, float>("mfma_bf16", {32, 16, 48}, {64, 1, 1}, 16,
                                 [](float x) { return support::bf16_from_float(x); });
  check_product<float, float>("mfma_f32", {16, 32, 20}, {64, 1, 1}, 16, [](float x) { return x; });
}

TEST_CASE("softmax of rows", "[hip][matrices]") {
  constexpr uint32_t rows = 2;
  constexpr int columns = 600;
  Memory memory;
  const auto in = device<float>(memory, rows * columns), out = device<float>(memory, rows * columns);
  std::mt19937 random(2);
  for (float &x : in)
    x = std::normal_distribution<float>(0, 4)(random);
  run_everywhere(
      builds, {"softmax", {rows, 1, 1}, {256, 1, 1}}, memory, Arguments(out.data(), in.data(), columns),
      [&] { std::fill(out.begin(), out.end(), NAN); },
      [&] {
        for (uint32_t row = 0; row < rows; ++row) {
          const auto x = in.subspan(row * columns, columns), y = out.subspan(row * columns, columns);
          const double largest = *std::max_element(x.begin(), x.end());
          double sum = 0;
          for (float value : x)
            sum += std::exp(value - largest);
          for (size_t i = 0; i < x.size(); ++i) {
            const double expected = std::exp(x[i] - largest) / sum;
            if (!(std::fabs(y[i] - expected) <= 4e-6 * expected)) CHECK(y[i] == expected);
          }
        }
      });
}

} // namespace sluice::test

//===- programs_test.cpp - compiled programs against the host -------------------------------------------===//
//
// programs.cl at -O3, with all checks, under every order of completion, on one thread and on two.
//
//===----------------------------------------------------------------------------------------------------===//
#include <catch2/catch.hpp>

#include <cmath>
#include <numeric>
#include <random>

#include "isa/kernel_fixture.h"
#include "support/half.h"

namespace sluice::test {

namespace {

const emulator::Program &programs() {
  static const std::vector<std::byte> elf = read_file(SLUICE_CODE_OBJECT_PROGRAMS);
  static const emulator::Program program(elf);
  return program;
}

template <class T> std::span<T> device(Memory &memory, size_t count) {
  T *data = static_cast<T *>(memory.allocate(count * sizeof(T)));
  REQUIRE(data != nullptr);
  return {data, count};
}

/// Calls `launch_and_check` with each way to run.
void in_every_mode(const std::function<void(const Options &)> &launch_and_check) {
  for (CompletionOrder order : {CompletionOrder::late, CompletionOrder::early, CompletionOrder::random})
    for (uint32_t threads : {1u, 2u}) {
      Options options;
      options.completion = order;
      options.threads = threads;
      launch_and_check(options);
    }
  Options fast;
  fast.checks = Checks::none();
  fast.completion = CompletionOrder::early;
  launch_and_check(fast);
}

template <class Arguments>
void run(const char *kernel, std::array<uint32_t, 3> grid, uint32_t threads, const Arguments &arguments,
         const Memory &memory, const Options &options) {
  const LaunchResult result = emulator::launch(programs(), kernel, grid, {threads, 1, 1}, 0,
                                               std::as_bytes(std::span(&arguments, 1)), memory, options);
  INFO(kernel << "\n" << all_text(result));
  REQUIRE(result.ok());
}

} // namespace

TEST_CASE("softmax over rows", "[isa][programs]") {
  constexpr uint32_t rows = 3, columns = 1000;
  Memory memory;
  const std::span<float> in = device<float>(memory, rows * columns),
                         out = device<float>(memory, rows * columns);
  std::mt19937 random(1);
  for (float &x : in)
    x = std::normal_distribution<float>(0, 4)(random);
  in_every_mode([&](const Options &options) {
    std::fill(out.begin(), out.end(), NAN);
    struct {
      float *out;
      const float *in;
      int columns;
    } arguments{out.data(), in.data(), columns};
    run("softmax", {rows, 1, 1}, 256, arguments, memory, options);
    for (uint32_t row = 0; row < rows; ++row) {
      const float *x = &in[row * columns];
      const double largest = *std::max_element(x, x + columns);
      double sum = 0;
      for (uint32_t i = 0; i < columns; ++i)
        sum += std::exp(x[i] - largest);
      for (uint32_t i = 0; i < columns; ++i) {
        const double expected = std::exp(x[i] - largest) / sum;
        CHECK(std::fabs(out[row * columns + i] - expected) <= 2e-6 * expected + 1e-30);
      }
    }
  });
}

TEST_CASE("a histogram with atomics in LDS and in memory", "[isa][programs]") {
  constexpr uint32_t count = 5000;
  Memory memory;
  const std::span<uint8_t> in = device<uint8_t>(memory, count);
  const std::span<uint32_t> bins = device<uint32_t>(memory, 256);
  std::mt19937 random(2);
  std::array<uint32_t, 256> expected{};
  for (uint8_t &x : in)
    ++expected[x = uint8_t(random() % 3 == 0 ? 7 : random())];
  in_every_mode([&](const Options &options) {
    std::fill(bins.begin(), bins.end(), 0);
    struct {
      uint32_t *bins;
      const uint8_t *in;
      int n;
    } arguments{bins.data(), in.data(), count};
    run("histogram", {4, 1, 1}, 256, arguments, memory, options);
    CHECK(std::equal(bins.begin(), bins.end(), expected.begin()));
  });
}

TEST_CASE("lanes that loop for different lengths", "[isa][programs]") {
  Memory memory;
  const std::span<uint32_t> start = device<uint32_t>(memory, 128), steps = device<uint32_t>(memory, 128);
  for (uint32_t i = 0; i < 128; ++i)
    start[i] = i == 77 ? 0 : i * 1237 + 27; // 0 is endless: the break ends it
  in_every_mode([&](const Options &options) {
    struct {
      uint32_t *steps;
      const uint32_t *start;
    } arguments{steps.data(), start.data()};
    run("collatz", {2, 1, 1}, 64, arguments, memory, options);
    for (uint32_t i = 0; i < 128; ++i) {
      uint64_t x = start[i];
      uint32_t count = 0;
      while (x != 1 && count != 10000) {
        x = x % 2 == 1 ? 3 * x + 1 : x / 2;
        ++count;
      }
      CHECK(steps[i] == count);
    }
  });
}

TEST_CASE("integer division", "[isa][programs]") {
  Memory memory;
  const std::span<int64_t> in = device<int64_t>(memory, 256), out = device<int64_t>(memory, 128 * 6);
  std::mt19937_64 random(3);
  for (uint32_t i = 0; i < 128; ++i) {
    in[2 * i] = int64_t(random()) >> random() % 60;
    in[2 * i + 1] = (int64_t(random()) >> random() % 60) | 1;
  }
  in_every_mode([&](const Options &options) {
    struct {
      int64_t *out;
      const int64_t *in;
    } arguments{out.data(), in.data()};
    run("divide", {2, 1, 1}, 64, arguments, memory, options);
    for (uint32_t i = 0; i < 128; ++i) {
      const int64_t a = in[2 * i], b = in[2 * i + 1];
      CHECK(out[6 * i] == a / b);
      CHECK(out[6 * i + 1] == a % b);
      CHECK(out[6 * i + 2] == int64_t(uint64_t(a) / uint64_t(b)));
      CHECK(out[6 * i + 3] == int32_t(a) / (int32_t(b) | 1));
      CHECK(out[6 * i + 4] == int64_t(uint32_t(a) % (uint32_t(b) | 1)));
    }
  });
}

TEST_CASE("arrays in scratch", "[isa][programs]") {
  Memory memory;
  const std::span<uint32_t> in = device<uint32_t>(memory, 64 * 16), out = device<uint32_t>(memory, 64);
  std::mt19937 random(4);
  for (uint32_t &x : in)
    x = uint32_t(random());
  in_every_mode([&](const Options &options) {
    struct {
      uint32_t *out;
      const uint32_t *in;
    } arguments{out.data(), in.data()};
    run("permute_private", {1, 1, 1}, 64, arguments, memory, options);
    for (uint32_t i = 0; i < 64; ++i) {
      uint32_t table[16];
      std::copy_n(&in[16 * i], 16, table);
      uint32_t at = i & 15, sum = 0;
      for (uint32_t k = 0; k < 16; ++k) {
        at = table[at] & 15;
        table[at] += k;
        sum = sum * 31 + table[at];
      }
      CHECK(out[i] == sum);
    }
  });
}

TEST_CASE("matrix products", "[isa][programs]") {
  constexpr uint32_t m = 64, n = 96, k = 48;
  Memory memory;
  const std::span<float> c = device<float>(memory, m * n);
  std::mt19937 random(5);
  std::vector<float> a(m * k), b(k * n);
  // Small whole numbers: every sum is exact in every type.
  for (float &x : a)
    x = float(int(random() % 17) - 8);
  for (float &x : b)
    x = float(int(random() % 17) - 8);
  auto check = [&](const char *kernel, auto narrow, uint32_t tile) {
    using T = decltype(narrow(0.0f));
    const std::span<T> x = device<T>(memory, a.size()), y = device<T>(memory, b.size());
    std::transform(a.begin(), a.end(), x.begin(), narrow);
    std::transform(b.begin(), b.end(), y.begin(), narrow);
    in_every_mode([&](const Options &options) {
      std::fill(c.begin(), c.end(), NAN);
      struct {
        float *c;
        const T *a;
        const T *b;
        int n, k;
      } arguments{c.data(), x.data(), y.data(), n, k};
      run(kernel, {n / tile, m / tile, 1}, 64, arguments, memory, options);
      for (uint32_t i = 0; i < m; ++i)
        for (uint32_t j = 0; j < n; ++j) {
          float expected = 0;
          for (uint32_t l = 0; l < k; ++l)
            expected += a[i * k + l] * b[l * n + j];
          if (c[i * n + j] != expected) CHECK(c[i * n + j] == expected);
        }
    });
  };
  check("matmul_f16", [](float x) { return support::f16_from_float(x); }, 32);
  check("matmul_bf16", [](float x) { return support::bf16_from_float(x); }, 16);
  check("matmul_f32", [](float x) { return x; }, 16);
  SUCCEED();
}

TEST_CASE("matrix multiplications in the other types", "[isa][programs]") {
  constexpr int m = 32, n = 64, k = 64;
  std::mt19937 random(5);
  // Whole numbers from -3 to 3, whose products every type holds; B as columns.
  std::vector<int> a(m * k), b(n * k);
  for (std::vector<int> *matrix : {&a, &b})
    for (int &x : *matrix)
      x = int(random() % 7) - 3;
  auto check = [&](const char *kernel, auto encode_a, auto encode_b, auto initial, int tile) {
    using A = decltype(encode_a(0));
    using B = decltype(encode_b(0));
    using C = decltype(initial);
    Memory memory;
    const std::span<A> a_device = device<A>(memory, m * k);
    const std::span<B> b_device = device<B>(memory, n * k);
    const std::span<C> c = device<C>(memory, m * n);
    std::transform(a.begin(), a.end(), a_device.begin(), encode_a);
    std::transform(b.begin(), b.end(), b_device.begin(), encode_b);
    in_every_mode([&](const Options &options) {
      std::fill(c.begin(), c.end(), initial);
      struct {
        C *c;
        const A *a;
        const B *b;
        int n, k;
      } arguments{c.data(), a_device.data(), b_device.data(), n, k};
      run(kernel, {uint32_t(n / tile), uint32_t(m / tile), 1}, 64, arguments, memory, options);
      for (int i = 0; i < m; ++i)
        for (int j = 0; j < n; ++j) {
          int sum = 0;
          for (int kk = 0; kk < k; ++kk)
            sum += a[i * k + kk] * b[j * k + kk];
          REQUIRE(c[i * n + j] == C(sum));
        }
    });
  };
  auto f64 = [](int x) { return double(x); };
  auto f32 = [](int x) { return float(x); };
  auto i8 = [](int x) { return int8_t(x); };
  auto fp8 = [](int x) {
    return uint8_t((x < 0 ? 0x80 : 0) | std::array{0x00, 0x40, 0x48, 0x4c}[size_t(std::abs(x))]);
  };
  auto bf8 = [](int x) {
    return uint8_t((x < 0 ? 0x80 : 0) | std::array{0x00, 0x40, 0x44, 0x46}[size_t(std::abs(x))]);
  };
  check("matmul_f64", f64, f64, -1.0, 16);
  check("matmul_xf32", f32, f32, -1.0f, 16);
  check("matmul_i8", i8, i8, -1, 16);
  check("matmul_fp8_bf8", fp8, bf8, -1.0f, 32);
}

TEST_CASE("a sparse matrix multiplication", "[isa][programs]") {
  constexpr int m = 32, n = 32, k = 96;
  Memory memory;
  const std::span<uint16_t> a = device<uint16_t>(memory, m * k / 2), b = device<uint16_t>(memory, n * k);
  const std::span<uint8_t> places = device<uint8_t>(memory, m * k / 8);
  const std::span<float> c = device<float>(memory, m * n);
  std::mt19937 random(9);
  std::vector<int> dense(m * k), columns(n * k);
  for (int &x : columns)
    x = int(random() % 7) - 3;
  std::transform(columns.begin(), columns.end(), b.begin(),
                 [](int x) { return support::f16_from_float(float(x)); });
  std::fill(places.begin(), places.end(), 0);
  for (int four = 0; four < m * k / 4; ++four) {
    const int first = int(random() % 3), second = first + 1 + int(random() % unsigned(3 - first));
    places[four / 2] |= uint8_t((first | second << 2) << (four % 2 * 4));
    for (int stored = 0; stored < 2; ++stored) {
      const int value = int(random() % 7) - 3;
      dense[four * 4 + (stored == 0 ? first : second)] = value;
      a[four * 2 + stored] = support::f16_from_float(float(value));
    }
  }
  in_every_mode([&](const Options &options) {
    std::fill(c.begin(), c.end(), NAN);
    struct {
      float *c;
      const uint16_t *a;
      const uint16_t *b;
      const uint8_t *places;
      int n, k;
    } arguments{c.data(), a.data(), b.data(), places.data(), n, k};
    run("matmul_sparse", {n / 16, m / 16, 1}, 64, arguments, memory, options);
    for (int i = 0; i < m; ++i)
      for (int j = 0; j < n; ++j) {
        int sum = 0;
        for (int kk = 0; kk < k; ++kk)
          sum += dense[i * k + kk] * columns[j * k + kk];
        REQUIRE(c[i * n + j] == float(sum));
      }
  });
}

TEST_CASE("a transpose through direct-to-LDS copies", "[isa][programs]") {
  constexpr uint32_t n = 128;
  Memory memory;
  const std::span<uint32_t> in = device<uint32_t>(memory, n * n), out = device<uint32_t>(memory, n * n);
  std::iota(in.begin(), in.end(), 1000u);
  in_every_mode([&](const Options &options) {
    std::fill(out.begin(), out.end(), 0);
    struct {
      uint32_t *out;
      const uint32_t *in;
      int n;
    } arguments{out.data(), in.data(), n};
    run("transpose_copied", {2, 2, 1}, 256, arguments, memory, options);
    bool equal = true;
    for (uint32_t i = 0; i < n * n; ++i)
      equal = equal && out[i] == in[i % n * n + i / n];
    CHECK(equal);
  });
}

TEST_CASE("double precision", "[isa][programs]") {
  Memory memory;
  const std::span<double> in = device<double>(memory, 256), out = device<double>(memory, 512);
  std::mt19937_64 random(6);
  for (double &x : in)
    x = std::ldexp(double(int64_t(random())), -int(random() % 120));
  in_every_mode([&](const Options &options) {
    struct {
      double *out;
      const double *in;
    } arguments{out.data(), in.data()};
    run("doubles", {2, 1, 1}, 64, arguments, memory, options);
    for (uint32_t i = 0; i < 128; ++i) {
      const double a = in[2 * i], b = in[2 * i + 1];
      CHECK(out[4 * i] == a / b);
      CHECK(out[4 * i + 1] == std::fma(a, b, 1.0));
      CHECK(out[4 * i + 2] == std::floor(a) + std::nearbyint(b) - std::trunc(a * b));
      CHECK(out[4 * i + 3] == (a < b ? a * 2 : b - a));
    }
  });
}

TEST_CASE("single precision", "[isa][programs]") {
  Memory memory;
  const std::span<float> in = device<float>(memory, 256), out = device<float>(memory, 640);
  std::mt19937 random(7);
  for (float &x : in)
    x = std::normal_distribution<float>(0, 50)(random);
  in_every_mode([&](const Options &options) {
    struct {
      float *out;
      const float *in;
    } arguments{out.data(), in.data()};
    run("singles", {2, 1, 1}, 64, arguments, memory, options);
    for (uint32_t i = 0; i < 128; ++i) {
      const float a = in[2 * i], b = in[2 * i + 1];
      // OpenCL allows 2.5 units in the last place for a quotient.
      CHECK(std::fabs(out[5 * i] - a / b) <= 2.5f * std::ldexp(std::fabs(a / b), -23));
      CHECK(out[5 * i + 2] == float(int(a)) + float(unsigned(std::fabs(b))) + std::nearbyint(a));
      CHECK(out[5 * i + 3] == (std::isnan(a) || a > b ? std::fmin(a, b) : std::fmax(a, -b)));
      CHECK(out[5 * i + 4] == support::bf16_to_float(support::bf16_from_float(a)));
    }
  });
}

} // namespace sluice::test

//===- collectives_test.cpp - work-items that share, against the host -----------------------------------===//
#include <algorithm>
#include <numeric>

#include "hip/hip_fixture.h"

namespace sluice::test {

namespace {

SLUICE_BUILDS(COLLECTIVES);

template <class T> void check_reduction(const char *kernel, const std::function<T(std::mt19937_64 &)> &draw) {
  constexpr uint32_t n = 5000, blocks = 5;
  Memory memory;
  const std::span<T> in = device<T>(memory, n), partial = device<T>(memory, blocks),
                     out = device<T>(memory, 1);
  const std::span<uint32_t> arrived = device<uint32_t>(memory, 1);
  std::mt19937_64 random(1);
  for (T &x : in)
    x = draw(random);
  const T expected = std::accumulate(in.begin(), in.end(), T(0));
  run_everywhere(
      builds, {kernel, {blocks, 1, 1}, {256, 1, 1}, 256 * sizeof(T)}, memory,
      Arguments(out.data(), partial.data(), arrived.data(), in.data(), n),
      [&] { arrived[0] = 0, out[0] = T(-1); }, [&] { CHECK(out[0] == expected); });
}

} // namespace

TEST_CASE("sums in LDS of dynamic size, finished by the last block", "[hip][collectives]") {
  check_reduction<int32_t>("reduce_int", [](auto &random) { return int32_t(random() % 100000) - 50000; });
  check_reduction<int64_t>("reduce_long", [](auto &random) { return int64_t(random()) >> 14; });
  // Multiples of 1/8: every sum is exact in any order.
  check_reduction<double>("reduce_double", [](auto &random) { return double(int64_t(random()) >> 30) / 8; });
}

TEST_CASE("prefix sums over blocks that wait for each other", "[hip][collectives]") {
  constexpr uint32_t n = 1000, blocks = 8;
  Memory memory;
  const auto in = device<uint32_t>(memory, n), out = device<uint32_t>(memory, n);
  const auto sums = device<uint32_t>(memory, blocks), ready = device<uint32_t>(memory, blocks);
  std::mt19937 random(2);
  std::generate(in.begin(), in.end(), [&] { return uint32_t(random()); });
  std::vector<uint32_t> expected(n);
  std::partial_sum(in.begin(), in.end(), expected.begin());
  run_everywhere(
      builds, {"scan", {blocks, 1, 1}, {128, 1, 1}}, memory,
      Arguments(out.data(), in.data(), sums.data(), ready.data(), n),
      [&] { std::fill(ready.begin(), ready.end(), 0u); }, [&] { CHECK(same(out, expected)); });
}

TEST_CASE("a transpose by tiles, in blocks of two dimensions", "[hip][collectives]") {
  constexpr uint32_t rows = 70, columns = 45;
  Memory memory;
  const auto in = device<float>(memory, rows * columns), out = device<float>(memory, rows * columns);
  std::iota(in.begin(), in.end(), 0.5f);
  std::vector<float> expected(rows * columns);
  for (uint32_t i = 0; i < rows; ++i)
    for (uint32_t j = 0; j < columns; ++j)
      expected[j * rows + i] = in[i * columns + j];
  run_everywhere(
      builds, {"transpose", {2, 3, 1}, {32, 8, 1}}, memory, Arguments(out.data(), in.data(), rows, columns),
      [&] { std::fill(out.begin(), out.end(), -1.0f); }, [&] { CHECK(same(out, expected)); });
}

TEST_CASE("a histogram through LDS and memory", "[hip][collectives]") {
  constexpr uint32_t n = 3000;
  Memory memory;
  const auto in = device<uint8_t>(memory, n);
  const auto bins = device<uint32_t>(memory, 256), largest = device<uint32_t>(memory, 1);
  std::mt19937 random(3);
  std::vector<uint32_t> expected(256),
      block_bins[2] = {std::vector<uint32_t>(256), std::vector<uint32_t>(256)};
  for (uint32_t i = 0; i < n; ++i) {
    in[i] = uint8_t(random() % 4 == 0 ? 9 : random());
    ++expected[in[i]];
    ++block_bins[i / 256 % 2][in[i]];
  }
  const uint32_t most = std::max(*std::max_element(block_bins[0].begin(), block_bins[0].end()),
                                 *std::max_element(block_bins[1].begin(), block_bins[1].end()));
  run_everywhere(
      builds, {"histogram", {2, 1, 1}, {256, 1, 1}}, memory,
      Arguments(bins.data(), largest.data(), in.data(), n),
      [&] { std::fill(bins.begin(), bins.end(), largest[0] = 0); },
      [&] {
        CHECK(same(bins, expected));
        CHECK(largest[0] == most);
      });
}

TEST_CASE("an atomic built from compare-and-swap", "[hip][collectives]") {
  Memory memory;
  const auto in = device<uint32_t>(memory, 128), product = device<uint32_t>(memory, 1);
  uint32_t expected = 3;
  for (uint32_t i = 0; i < 128; ++i)
    expected *= in[i] = 2 * i + 5;
  run_everywhere(
      builds, {"multiply_all", {2, 1, 1}, {64, 1, 1}}, memory, Arguments(product.data(), in.data()),
      [&] { product[0] = 3; }, [&] { CHECK(product[0] == expected); });
}

TEST_CASE("a bitonic sort in LDS", "[hip][collectives]") {
  Memory memory;
  const auto data = device<uint64_t>(memory, 2048);
  std::mt19937_64 random(4);
  std::vector<uint64_t> given(2048);
  std::generate(given.begin(), given.end(), [&] { return random() % 3 == 0 ? random() % 16 : random(); });
  std::vector<uint64_t> expected = given;
  std::sort(expected.begin(), expected.begin() + 1024);
  std::sort(expected.begin() + 1024, expected.end());
  run_everywhere(
      builds, {"bitonic_sort", {2, 1, 1}, {512, 1, 1}}, memory, Arguments(data.data()),
      [&] { std::copy(given.begin(), given.end(), data.begin()); }, [&] { CHECK(same(data, expected)); });
}

TEST_CASE("compaction with one atomic per wave", "[hip][collectives]") {
  constexpr uint32_t n = 700;
  Memory memory;
  const auto in = device<uint32_t>(memory, n), out = device<uint32_t>(memory, n),
             count = device<uint32_t>(memory, 1);
  std::mt19937 random(5);
  std::vector<uint32_t> expected;
  for (uint32_t &x : in)
    if ((x = uint32_t(random())) % 2 == 1) expected.push_back(x);
  std::sort(expected.begin(), expected.end());
  run_everywhere(
      builds, {"compact", {6, 1, 1}, {128, 1, 1}}, memory, Arguments(out.data(), count.data(), in.data(), n),
      [&] { count[0] = 0; },
      [&] {
        REQUIRE(count[0] == expected.size());
        std::sort(out.begin(), out.begin() + count[0]);
        CHECK(same(out.first(count[0]), expected));
      });
}

} // namespace sluice::test

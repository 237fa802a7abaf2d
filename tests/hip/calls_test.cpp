//===- calls_test.cpp - calls that the compiler cannot see through, against the host --------------------===//
#include <algorithm>

#include "hip/hip_fixture.h"

namespace sluice::test {

namespace {

SLUICE_BUILDS(CALLS);
constexpr uint32_t fibonacci[] = {0, 1, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144, 233};

} // namespace

TEST_CASE("recursion", "[hip][calls]") {
  Memory memory;
  const auto in = device<uint32_t>(memory, 64 * 16), out = device<uint32_t>(memory, 64 * 18);
  std::mt19937 random(1);
  std::generate(in.begin(), in.end(), [&] { return uint32_t(random() % 50); });
  std::vector<uint32_t> expected;
  for (uint32_t i = 0; i < 64; ++i) {
    expected.insert(expected.end(), in.begin() + 16 * i, in.begin() + 16 * (i + 1));
    std::sort(expected.end() - 16, expected.end());
    expected.push_back(fibonacci[i % 11]);
    expected.push_back(i % 20 % 2 == 0);
  }
  run_everywhere(
      builds, {"recursion", {1, 1, 1}, {64, 1, 1}}, memory, Arguments(out.data(), in.data()),
      [&] { std::fill(out.begin(), out.end(), 0); }, [&] { CHECK(same(out, expected)); });
}

TEST_CASE("pointers to functions that differ between lanes", "[hip][calls]") {
  Memory memory;
  const auto in = device<uint32_t>(memory, 128), out = device<uint32_t>(memory, 128);
  std::mt19937 random(2);
  std::generate(in.begin(), in.end(), [&] { return uint32_t(random()); });
  std::vector<uint32_t> expected;
  for (uint32_t item = 0; item < 128; ++item) {
    uint32_t x = in[item];
    for (uint32_t b = 3; b < 7; ++b)
      switch ((x / 8 ^ item) % 4) {
      case 0:
        x += b;
        break;
      case 1:
        x *= b;
        break;
      case 2:
        x = (x >> (x % 8 + 16 - b) % 8) ^ b;
        break;
      case 3:
        x = fibonacci[x % 8] + x * b;
        break;
      }
    expected.push_back(x);
  }
  run_everywhere(
      builds, {"function_pointers", {2, 1, 1}, {64, 1, 1}}, memory, Arguments(out.data(), in.data()),
      [&] { std::fill(out.begin(), out.end(), 0); }, [&] { CHECK(same(out, expected)); });
}

TEST_CASE("virtual functions", "[hip][calls]") {
  Memory memory;
  const auto in = device<float>(memory, 128), out = device<float>(memory, 128);
  std::vector<float> expected;
  for (uint32_t item = 0; item < 128; ++item) {
    const float x = in[item] = float(item) / 4;
    expected.push_back(item % 2 == 0 ? x * x + x * x * 2 * 16 : x * 3 + x * 2 * 3 * 2 * 16);
  }
  run_everywhere(
      builds, {"virtual_functions", {2, 1, 1}, {64, 1, 1}}, memory, Arguments(out.data(), in.data()),
      [&] { std::fill(out.begin(), out.end(), 0); }, [&] { CHECK(same(out, expected)); });
}

TEST_CASE("stacks whose size lanes decide", "[hip][calls]") {
  Memory memory;
  const auto out = device<uint32_t>(memory, 64);
  std::vector<uint32_t> expected;
  for (uint32_t item = 0; item < 64; ++item) {
    const uint32_t n = item % 13 + 1;
    uint32_t sum = fibonacci[n];
    for (uint32_t i = n; i-- > 0;)
      sum = sum * 3 + i * i + item;
    expected.push_back(sum);
  }
  run_everywhere(
      builds, {"dynamic_stack", {1, 1, 1}, {64, 1, 1}}, memory, Arguments(out.data()),
      [&] { std::fill(out.begin(), out.end(), 0); }, [&] { CHECK(same(out, expected)); });
}

} // namespace sluice::test

//===- arithmetic_test.cpp - independent work-items, against the host -----------------------------------===//
#include <algorithm>
#include <bit>
#include <cmath>

#include "hip/hip_fixture.h"
#include "support/half.h"

namespace sluice::test {

namespace {

SLUICE_BUILDS(ARITHMETIC);
constexpr uint32_t items = 128;
const Launch two_blocks_of(const char *kernel) {
  return {kernel, {2, 1, 1}, {64, 1, 1}};
}

uint64_t reversed(uint64_t x) {
  uint64_t r = 0;
  for (int i = 0; i < 64; ++i)
    r |= (x >> i & 1) << (63 - i);
  return r;
}

} // namespace

TEST_CASE("64-bit integers", "[hip][arithmetic]") {
  Memory memory;
  const auto in = device<uint64_t>(memory, 2 * items), out = device<uint64_t>(memory, 10 * items);
  std::mt19937_64 random(1);
  for (uint64_t &x : in)
    x = random() >> random() % 64;
  std::vector<uint64_t> expected;
  for (uint32_t i = 0; i < items; ++i) {
    const uint64_t a = in[2 * i], b = in[2 * i + 1] | 1;
    expected.insert(expected.end(), {a * b, a / b, a % b, uint64_t(int64_t(a) / int64_t(b >> 7 | 1)),
                                     uint64_t((unsigned __int128)(a)*b >> 64), std::rotl(a, int(b & 63)),
                                     uint64_t(int64_t(a) >> (b & 63)),
                                     uint64_t(std::popcount(a) + std::countl_zero(b) * 100 +
                                              std::countr_zero(b << 3) * 10000),
                                     __builtin_bswap64(a) ^ reversed(b),
                                     uint64_t(int32_t(a) / (int32_t(b) | 1)) + uint32_t(a) % uint16_t(b)});
  }
  run_everywhere(
      builds, two_blocks_of("wide_integers"), memory, Arguments(out.data(), in.data()),
      [&] { std::fill(out.begin(), out.end(), 0); }, [&] { CHECK(same(out, expected)); });
}

TEST_CASE("doubles", "[hip][arithmetic]") {
  Memory memory;
  const auto in = device<double>(memory, 2 * items), out = device<double>(memory, 8 * items);
  std::mt19937_64 random(2);
  std::vector<double> expected;
  for (uint32_t i = 0; i < items; ++i) {
    const double a = in[2 * i] = std::ldexp(double(int64_t(random())), -20 - int(random() % 60));
    const double b = in[2 * i + 1] = std::ldexp(double(int64_t(random())), -40 - int(random() % 30));
    expected.insert(expected.end(),
                    {a / b, std::sqrt(std::fabs(a)), std::fma(a, b, -a),
                     double(int64_t(a)) + double(uint64_t(std::fabs(b))), double(float(a)) - double(int(b)),
                     std::floor(a) * 3 + std::ceil(b) + std::trunc(a) + std::nearbyint(b),
                     a < b ? std::fmin(a, 0.25) : std::fmax(b, -0.25), std::ldexp(a, int(b) % 64)});
  }
  run_everywhere(
      builds, two_blocks_of("doubles"), memory, Arguments(out.data(), in.data()),
      [&] { std::fill(out.begin(), out.end(), 0); }, [&] { CHECK(same(out, expected)); });
}

TEST_CASE("single and half precision", "[hip][arithmetic]") {
  Memory memory;
  const auto in = device<float>(memory, 2 * items), out = device<float>(memory, 6 * items);
  std::mt19937 random(3);
  for (float &x : in)
    x = std::normal_distribution<float>(0, 20)(random);
  const auto half = [](float x) { return support::f16_to_float(support::f16_from_float(x)); };
  run_everywhere(
      builds, two_blocks_of("floats"), memory, Arguments(out.data(), in.data()),
      [&] { std::fill(out.begin(), out.end(), 0); },
      [&] {
        for (uint32_t i = 0; i < items; ++i) {
          const float a = in[2 * i], b = in[2 * i + 1];
          const float *o = &out[6 * i];
          CHECK(o[0] == half(half(a) * 2 + half(b)));
          CHECK(o[1] == half(half(half(b) * 0.5f) + half(a)));
          CHECK(o[2] == support::bf16_to_float(support::bf16_from_float(a)));
          CHECK(o[3] == std::sqrt(std::fabs(a)));
          CHECK(o[4] == a / b);
          CHECK(o[5] ==
                Approx(std::exp2(double(b)) + std::log2(std::fabs(double(a)))).epsilon(1e-5).margin(1e-5));
        }
      });
}

namespace {

struct Matrix {
  float m[3][4];
};
struct __attribute__((packed)) Packed {
  uint8_t tag;
  uint32_t value;
  uint16_t bits : 5;
  uint16_t more : 11;
};
struct Scene {
  Matrix transform;
  struct {
    float direction[3];
    uint8_t on;
  } lights[3];
  Packed packed;
  double scale;
};

} // namespace

TEST_CASE("structs by value, packed members and bit fields", "[hip][arithmetic]") {
  Memory memory;
  const auto out = device<float>(memory, items);
  const auto packed = device<Packed>(memory, items);
  std::mt19937 random(4);
  for (Packed &p : packed)
    p = {uint8_t(random()), uint32_t(random()), uint16_t(random() % 32), uint16_t(random() % 2048)};
  Scene scene{};
  for (auto &row : scene.transform.m)
    for (float &x : row)
      x = float(int(random() % 7) - 3) / 2;
  for (int i = 0; i < 3; ++i)
    scene.lights[i] = {{float(i + 1), float(i * 2), 0.5f}, uint8_t(i != 1)};
  scene.packed = {1, 123456, 3, 4};
  scene.scale = 0.125;
  std::vector<float> expected;
  for (uint32_t i = 0; i < items; ++i) {
    // Column 3 of a product is the left matrix's column 3 plus its rotation applied to the right one's.
    float column[3], rotation[3][3];
    for (int r = 0; r < 3; ++r) {
      column[r] = scene.transform.m[r][3];
      for (int c = 0; c < 3; ++c)
        rotation[r][c] = scene.transform.m[r][c];
    }
    for (uint32_t step = 0; step < (i % 64 & 3); ++step) {
      float next[3][3];
      for (int r = 0; r < 3; ++r) {
        for (int k = 0; k < 3; ++k)
          column[r] += rotation[r][k] * scene.transform.m[k][3];
        for (int c = 0; c < 3; ++c) {
          next[r][c] = 0;
          for (int k = 0; k < 3; ++k)
            next[r][c] += rotation[r][k] * scene.transform.m[k][c];
        }
      }
      std::memcpy(rotation, next, sizeof next);
    }
    float sum = float(packed[i].value % 1000) + float(packed[i].bits) * 2 + float(packed[i].more) +
                123456.0f + float(packed[i].tag);
    for (int light : {0, 2})
      for (int axis = 0; axis < 3; ++axis)
        sum += scene.lights[light].direction[axis] * column[axis];
    expected.push_back(sum * 0.125f);
  }
  run_everywhere(
      builds, two_blocks_of("structs"), memory, Arguments(out.data(), scene, packed.data()),
      [&] { std::fill(out.begin(), out.end(), 0); }, [&] { CHECK(same(out, expected)); });
}

TEST_CASE("arrays of a work-item's own", "[hip][arithmetic]") {
  Memory memory;
  const auto in = device<uint32_t>(memory, 24 * items), out = device<uint32_t>(memory, 24 * items);
  std::mt19937 random(5);
  std::generate(in.begin(), in.end(), [&] { return uint32_t(random() % 100); });
  std::vector<uint32_t> expected(in.begin(), in.end());
  for (uint32_t i = 0; i < items; ++i)
    std::sort(expected.begin() + 24 * i, expected.begin() + 24 * (i + 1));
  run_everywhere(
      builds, two_blocks_of("local_array"), memory, Arguments(out.data(), in.data()),
      [&] { std::fill(out.begin(), out.end(), 0); }, [&] { CHECK(same(out, expected)); });
}

TEST_CASE("lanes that interpret different programs", "[hip][arithmetic]") {
  constexpr uint32_t length = 20;
  Memory memory;
  const auto programs = device<uint8_t>(memory, items * length);
  const auto out = device<uint32_t>(memory, items);
  std::mt19937 random(6);
  std::generate(programs.begin(), programs.end(), [&] { return uint8_t(random()); });
  std::vector<uint32_t> expected;
  for (uint32_t item = 0; item < items; ++item) {
    std::array<uint32_t, 16> ring;
    for (uint32_t i = 0; i < 16; ++i)
      ring[i] = item * 77 + i;
    uint32_t top = 0, steps = 0, pc = 0;
    bool ended = false;
    while (!ended && pc < length && steps < 200) {
      const uint32_t op = programs[item * length + pc++];
      const uint32_t above = (top + 1) % 16, below = (top + 15) % 16;
      const uint32_t a = ring[top % 16], b = ring[below];
      // The result that a two-operand instruction puts in place of both.
      const auto replace = [&](uint32_t value) { ring[below] = value, top = below; };
      const uint32_t code = op % 12;
      if (code == 0) ring[above] = op, top = above;
      if (code == 1) replace(b + a);
      if (code == 2) replace(b - a);
      if (code == 3) replace(b * a);
      if (code == 4) ring[above] = a, top = above;
      if (code == 5) std::swap(ring[top], ring[below]);
      if (code == 6) ring[top] = a >> op % 8;
      if (code == 7) replace(b ^ a);
      if (code == 8 && a % 2 == 0 && pc >= 3) pc -= 3, ring[top] = a + 3;
      if (code == 9) ring[top] = std::rotl(a, 5);
      if (code == 10) ring[top] = ~a;
      if (code == 11) ended = true;
      ++steps;
    }
    expected.push_back(ring[top] * 31 + steps);
  }
  run_everywhere(
      builds, two_blocks_of("interpreter"), memory, Arguments(out.data(), programs.data(), length),
      [&] { std::fill(out.begin(), out.end(), 0); }, [&] { CHECK(same(out, expected)); });
}

TEST_CASE("loops that are left in every way", "[hip][arithmetic]") {
  Memory memory;
  const auto in = device<uint32_t>(memory, 256), out = device<uint32_t>(memory, 256);
  std::mt19937 random(7);
  std::generate(in.begin(), in.end(), [&] { return uint32_t(random()) >> random() % 20; });
  // The same steps as a function with returns instead of jumps.
  const auto one = [](uint32_t x) -> uint32_t {
    uint32_t sum = 0;
    for (uint32_t i = 0; i < x % 8; ++i) {
      if ((x >> i) % 4 == 1) continue;
      for (uint32_t j = i; true; ++j) {
        sum += x * j;
        if (sum % 5 == 0) return sum ^ x;
        if (j > (x >> 8) % 16) break;
        if ((j ^ sum) % 8 != 3) continue;
        x = x * 5 + 1;
        do {
          sum ^= x;
          x /= 2;
        } while (x % 2 == 1);
      }
      if (sum > 0xf0000000u) return sum;
    }
    return (sum + 1000) ^ x;
  };
  std::vector<uint32_t> expected(256);
  std::transform(in.begin(), in.end(), expected.begin(), one);
  run_everywhere(
      builds, {"divergence", {1, 1, 1}, {256, 1, 1}}, memory, Arguments(out.data(), in.data()),
      [&] { std::fill(out.begin(), out.end(), 0); }, [&] { CHECK(same(out, expected)); });
}

} // namespace sluice::test

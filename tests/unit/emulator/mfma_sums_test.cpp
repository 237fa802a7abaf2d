//===- mfma_sums_test.cpp - sums of MFMA against an independent model -----------------------------------===//
#include <algorithm>
#include <bit>
#include <catch2/catch.hpp>
#include <cmath>
#include <functional>
#include <random>
#include <string>
#include <vector>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "unit/emulator/mfma_layout.h"
#include "unit/emulator/mfma_model.h"

using namespace sluice::emulator;
using namespace sluice::test;

namespace {

std::vector<uint32_t> model(const MfmaShape &s, const Registers &in) {
  std::vector<uint32_t> d(in.c.size());
  const uint32_t stored = s.sparse ? s.k / 2 : s.k;
  for (uint32_t block = 0; block < s.blocks; ++block)
    for (uint32_t i = 0; i < s.m; ++i)
      for (uint32_t j = 0; j < s.n; ++j) {
        std::vector<uint64_t> a(stored);
        std::vector<uint64_t> b(stored);
        for (uint32_t k = 0; k < stored; ++k) {
          a[k] = bits_at(in.a, width_of(s.input), a_at(s, block, i, k));
          b[k] = bits_at(in.b, width_of(s.b_input), b_at(s, block, k_of(s, in, 0, i, k), j));
        }
        const At at = c_at(s, block, i, j);
        put(d, result_width(s), at, model_element(s, a, b, bits_at(in.c, result_width(s), at)));
      }
  return d;
}

using Draw = uint64_t (*)(MfmaInput, std::mt19937_64 &);

int largest_exponent(MfmaInput input) {
  const InputFormat format = format_of(input);
  return (1 << (format.width - 1 - format.digits)) - 1 - format.bias - (format.infinities ? 1 : 0);
}

/// A number with this exponent, or the closest one that exists; below the smallest a subnormal.
uint64_t encode(MfmaInput input, uint64_t sign, int exponent, uint64_t fraction) {
  const InputFormat format = format_of(input);
  const uint64_t field = uint64_t(std::clamp(exponent, -format.bias, largest_exponent(input)) + format.bias);
  const uint64_t bits = field << format.digits | (fraction & ((uint64_t(1) << format.digits) - 1));
  // The pattern of minus zero is the NaN of a format without infinities.
  return (format.infinities || bits != 0 ? sign << (format.width - 1) : 0) | bits;
}

uint64_t any_bits(MfmaInput input, std::mt19937_64 &random) {
  const int width = format_of(input).width;
  return random() >> (64 - width);
}

uint64_t finite_bits(MfmaInput input, std::mt19937_64 &random) {
  for (;;) {
    const uint64_t bits = any_bits(input, random);
    if (std::isfinite(to_double(input, bits))) return bits;
  }
}

uint64_t near_one(MfmaInput input, std::mt19937_64 &random) {
  return encode(input, random() & 1, int(random() % 7) - 3, random());
}

uint64_t wide_spread(MfmaInput input, std::mt19937_64 &random) {
  if (random() % 6 == 0) return encode(input, random() & 1, -5000, 0);
  const int range = std::min(largest_exponent(input), 60);
  return encode(input, random() & 1, int(random() % unsigned(2 * range)) - range, random());
}

uint64_t subnormal(MfmaInput input, std::mt19937_64 &random) {
  return encode(input, random() & 1, random() % 4 == 0 ? 1 - format_of(input).bias : -5000, random());
}

uint64_t huge(MfmaInput input, std::mt19937_64 &random) {
  return encode(input, random() & 1,
                largest_exponent(input) * (random() % 4 == 0 ? 2 : 1) / 2 + int(random() % 5), random());
}

uint64_t mostly_zero(MfmaInput input, std::mt19937_64 &random) {
  return random() % 8 == 0 ? near_one(input, random) : encode(input, random() & 1, -5000, 0);
}

/// Few values, so that products cancel.
uint64_t cancelling(MfmaInput input, std::mt19937_64 &random) {
  return encode(input, random() & 1, int(random() % 2) * (largest_exponent(input) / 4), random() % 2);
}

/// Mostly numbers, sometimes an infinity or a NaN.
uint64_t special(MfmaInput input, std::mt19937_64 &random) {
  if (random() % 32 != 0) return near_one(input, random);
  const InputFormat format = format_of(input);
  const uint64_t sign = uint64_t(1) << (format.width - 1);
  if (!format.infinities) return sign;
  const uint64_t infinity = (sign - 1) >> format.digits << format.digits;
  return infinity | (random() & 1 ? sign : 0) | (random() % 3 == 0 ? 1 + random() % 4 : 0);
}

void fill(std::vector<uint32_t> &registers, MfmaInput input, Draw draw, std::mt19937_64 &random) {
  const uint32_t width = width_of(input);
  std::fill(registers.begin(), registers.end(), 0);
  for (uint32_t lane = 0; lane < 64; ++lane)
    for (uint32_t element = 0; element < registers.size() / 64 * 32 / width; ++element)
      put(registers, width, {lane, element}, draw(input, random));
}

/// Accumulators: around the products, far from them, zeros and powers of two (where truncating a negative
/// number is visible), subnormals, and arbitrary numbers.
uint64_t accumulator(const MfmaShape &s, std::mt19937_64 &random) {
  const MfmaInput type = s.input == MfmaInput::f64 ? MfmaInput::f64 : MfmaInput::f32;
  const int far = largest_exponent(type) - 2;
  switch (random() % 6) {
  case 0:
    return encode(type, random() & 1, int(random() % 12) - 6, random());
  case 1:
    return encode(type, random() & 1, int(random() % unsigned(2 * far)) - far, random());
  case 2:
    return encode(type, random() & 1, random() % 3 == 0 ? -5000 : int(random() % 120) - 60, 0);
  case 3:
    return subnormal(type, random);
  case 4:
    return random() % 8 == 0 ? special(type, random) : any_bits(type, random);
  default:
    return 0;
  }
}

void fill_accumulator(const MfmaShape &s, Registers &in, std::mt19937_64 &random) {
  std::fill(in.c.begin(), in.c.end(), 0);
  for (uint32_t lane = 0; lane < 64; ++lane)
    for (uint32_t element = 0; element < in.c.size() / 64 * 32 / result_width(s); ++element)
      put(in.c, result_width(s), {lane, element}, accumulator(s, random));
}

constexpr std::pair<const char *, Draw> draws[] = {{"near one", near_one},
                                                   {"any finite", finite_bits},
                                                   {"wide spread", wide_spread},
                                                   {"subnormal", subnormal},
                                                   {"huge", huge},
                                                   {"mostly zero", mostly_zero},
                                                   {"any bits", any_bits},
                                                   {"cancelling", cancelling},
                                                   {"special", special}};

uint64_t any_byte(MfmaInput, std::mt19937_64 &random) {
  return random() & 255;
}
uint64_t extreme_byte(MfmaInput, std::mt19937_64 &random) {
  return random() % 4 == 0 ? 127 : 128;
}

} // namespace

TEST_CASE("sums equal the independent model bit by bit on every path", "[mfma]") {
  std::mt19937_64 random(20240607);
  std::mt19937 index_random(1);
  for (const MfmaInstruction &instruction : mfma_instructions()) {
    const MfmaShape &s = instruction.shape;
    if (s.input == MfmaInput::i8) continue;
    for (const auto &[name, draw] : draws) {
      Registers in(s);
      fill(in.a, s.input, draw, random);
      fill(in.b, s.b_input, draw, random);
      fill_accumulator(s, in, random);
      draw_index(in, index_random);
      const std::vector<uint32_t> want = model(s, in);
      for (MfmaPath path : paths()) {
        INFO(instruction.mnemonic << ", " << name << ", path " << int(path));
        require_equal(run(path, s, in), want);
      }
    }
  }
}

TEST_CASE("integer sums wrap around", "[mfma]") {
  std::mt19937_64 random(4);
  std::mt19937 index_random(2);
  for (const MfmaInstruction &instruction : mfma_instructions()) {
    const MfmaShape &s = instruction.shape;
    if (s.input != MfmaInput::i8) continue;
    for (Draw draw : {any_byte, extreme_byte}) {
      Registers in(s);
      fill(in.a, s.input, draw, random);
      fill(in.b, s.b_input, draw, random);
      for (uint32_t &word : in.c)
        word = random() % 2 ? uint32_t(random()) : 0x7fffff00u + uint32_t(random() % 512);
      draw_index(in, index_random);
      const std::vector<uint32_t> want = model(s, in);
      for (MfmaPath path : paths()) {
        INFO(instruction.mnemonic << " path " << int(path));
        require_equal(run(path, s, in), want);
      }
    }
  }
}

TEST_CASE("every value of a small format is decoded as it is defined", "[mfma]") {
  for (const char *mnemonic :
       {"v_mfma_f32_32x32x8_f16", "v_mfma_f32_16x16x16_bf16", "v_mfma_f32_32x32x16_fp8_bf8",
        "v_mfma_f32_16x16x32_bf8_fp8", "v_smfmac_f32_32x32x16_bf16", "v_smfmac_f32_32x32x32_bf8_bf8"}) {
    const MfmaShape s = *mfma_shape(mnemonic);
    const uint32_t width = width_of(s.input);
    for (MfmaPath path : paths())
      for (uint32_t first = 0; first < 1u << width; first += s.m) {
        // A column of A against a row of ones of B, and a row of B against a column of ones of A.
        Registers a_registers(s);
        Registers b_registers(s);
        for (uint32_t i = 0; i < s.m; ++i) {
          put(a_registers.a, width, a_at(s, 0, i, 0), (first + i) % (1u << width));
          put(a_registers.b, width, b_at(s, 0, 0, i), one_of(s.b_input));
          put(b_registers.a, width, a_at(s, 0, i, 0), one_of(s.input));
          put(b_registers.b, width, b_at(s, 0, 0, i), (first + i) % (1u << width));
        }
        const std::vector<uint32_t> a_result = run(path, s, a_registers);
        const std::vector<uint32_t> b_result = run(path, s, b_registers);
        for (uint32_t i = 0; i < s.m; ++i) {
          auto wanted = [&](MfmaInput input) {
            const double value = to_double(input, (first + i) % (1u << width));
            if (std::isnan(value)) return 0x7fc00000u;
            return value == 0 ? 0u : std::bit_cast<uint32_t>(float(value)); // zeros add up to plus zero
          };
          const uint32_t other = (i + 1) % s.m;
          const uint64_t a_got = bits_at(a_result, 32, c_at(s, 0, i, other));
          const uint64_t b_got = bits_at(b_result, 32, c_at(s, 0, other, i));
          if (a_got != wanted(s.input) || b_got != wanted(s.b_input)) {
            INFO(mnemonic << " path " << int(path) << " bits " << first + i);
            REQUIRE(a_got == wanted(s.input));
            REQUIRE(b_got == wanted(s.b_input));
          }
        }
      }
  }
}

namespace {

/// D[0][0] of products given one after the other, the same on every path.
uint32_t first_element(const MfmaShape &s, const std::vector<std::pair<uint64_t, uint64_t>> &products,
                       uint32_t c) {
  Registers in(s);
  for (uint32_t k = 0; k < products.size(); ++k) {
    put(in.a, width_of(s.input), a_at(s, 0, 0, k), products[k].first);
    put(in.b, width_of(s.b_input), b_at(s, 0, k, 0), products[k].second);
  }
  in.c[0] = c;
  const uint32_t first = run(MfmaPath::portable, s, in)[0];
  for (MfmaPath path : paths())
    CHECK(run(path, s, in)[0] == first);
  return first;
}

/// The same with numbers that the formats hold exactly.
float first_value(const MfmaShape &s, const std::vector<std::pair<double, double>> &products, float c) {
  std::vector<std::pair<uint64_t, uint64_t>> encoded;
  auto bits = [](MfmaInput input, double value) {
    if (value == 0) return uint64_t(0);
    int exponent;
    const double fraction = std::frexp(std::fabs(value), &exponent);
    const uint64_t result =
        encode(input, value < 0, exponent - 1, uint64_t(std::ldexp(fraction, format_of(input).digits + 1)));
    REQUIRE(to_double(input, result) == value);
    return result;
  };
  for (const auto &[x, y] : products)
    encoded.push_back({bits(s.input, x), bits(s.b_input, y)});
  return std::bit_cast<float>(first_element(s, encoded, std::bit_cast<uint32_t>(c)));
}

} // namespace

TEST_CASE("sums that only the published model explains", "[mfma]") {
  const MfmaShape s = *mfma_shape("v_mfma_f32_32x32x8_f16");
  auto element = [&](const std::vector<std::pair<double, double>> &products, float c) {
    return first_value(s, products, c);
  };
  // A product 2^-25 below the largest is truncated to 0; 2^-24 is kept.
  CHECK(element({{1, 1}, {0x1p-12, 0x1p-13}, {-1, 1}}, 0) == 0);
  CHECK(element({{1, 1}, {0x1p-12, 0x1p-12}, {-1, 1}}, 0) == 0x1p-24f);
  // A product of either sign is truncated toward zero; the accumulator toward minus infinity.
  CHECK(element({{1, 1}, {-0x1p-12, 0x1p-13}, {-1, 1}}, 0) == 0);
  CHECK(element({{1, 1}, {-1, 1}}, 0x1p-25f) == 0);
  CHECK(element({{1, 1}, {-1, 1}}, -0x1p-60f) == -0x1p-24f);
  // Exponents add without normalising: 1.5 * 1.5 counts as 2^0, so 24 places below 2^0 are kept.
  CHECK(element({{1.5, 1.5}, {0x1p-12, 0x1p-12}, {-1.5, 1.5}}, 0) == 0x1p-24f);
  // A sum of zeros leaves the accumulator unchanged, but a minus zero becomes zero.
  CHECK(element({}, -0x1.234566p-140f) == -0x1.234566p-140f);
  CHECK(std::bit_cast<uint32_t>(element({}, -0.0f)) == 0);
  // Round to nearest even happens once per group.
  CHECK(element({{0x1p-12, 0x1p-12}}, 1.0f) == 1.0f);
  CHECK(element({{0x1p-12, 0x1p-12}}, 1.0f + 0x1p-23f) == 1.0f + 0x1p-22f);
}

TEST_CASE("even and odd products of bf8 are cut apart from each other", "[mfma]") {
  const MfmaShape s = *mfma_shape("v_mfma_f32_32x32x16_bf8_bf8");
  auto element = [&](const std::vector<std::pair<double, double>> &products, float c) {
    return first_value(s, products, c);
  };
  // Elements 0 and 2 are even: 2^-26 is truncated below 2^0. Element 1 is odd, and its sum is separate.
  CHECK(element({{1, 1}, {0, 0}, {0x1p-13, 0x1p-13}, {0, 0}, {-1, 1}}, 0) == 0);
  CHECK(element({{1, 1}, {0, 0}, {0x1p-12, 0x1p-12}, {0, 0}, {-1, 1}}, 0) == 0x1p-24f);
  // The odd sum is truncated toward minus infinity where the even products would be truncated toward zero.
  CHECK(element({{1, 1}, {-0x1p-13, 0x1p-13}, {-1, 1}}, 0) == -0x1p-24f);
  CHECK(element({{1, 1}, {0x1p-13, 0x1p-13}, {-1, 1}}, 0) == 0);
  // An accumulator 2^-26 below the largest product does not count; one of -2^-25 is truncated to -2^-24.
  CHECK(element({{1, 1}, {0, 0}, {-1, 1}}, -0x1p-26f) == 0);
  CHECK(element({{1, 1}, {0, 0}, {-1, 1}}, -0x1p-25f) == -0x1p-24f);
  // Sixteen products are one group: the last is truncated because of the first.
  std::vector<std::pair<double, double>> sixteen(16);
  sixteen[0] = {1, 1};
  sixteen[2] = {-1, 1};
  sixteen[14] = {0x1p-13, 0x1p-13};
  CHECK(element(sixteen, 0) == 0);
}

TEST_CASE("xf32 drops thirteen bits and has groups of four", "[mfma]") {
  const MfmaShape s = *mfma_shape("v_mfma_f32_16x16x8_xf32");
  const uint64_t one = 0x3f800000;
  CHECK(first_element(s, {{one + 0x1fff, one}}, 0) == one);
  CHECK(first_element(s, {{one + 0x2000, one}}, 0) == one + 0x2000);
  CHECK(first_element(s, {{one, one + 0x3fff}}, 0) == one + 0x2000);
  // The fifth product starts a new group: nothing is left to truncate it.
  std::vector<std::pair<uint64_t, uint64_t>> products = {
      {one, one}, {one | 0x80000000, one}, {0, 0}, {0, 0}, {0x30800000, one}};
  CHECK(first_element(s, products, 0) == 0x30800000);
  std::swap(products[3], products[4]);
  CHECK(first_element(s, products, 0) == 0);
  // The dropped bits still make a NaN, and the remaining bits of a subnormal are not lost.
  CHECK(first_element(s, {{0x7f800001, one}}, 0) == 0x7fc00000);
  CHECK(first_element(s, {{0x7f800000, one}}, 0) == 0x7f800000);
  CHECK(first_element(s, {{0x00402000, one}}, 0) == 0x00402000);
}

TEST_CASE("infinities and NaNs come out as the sum of the products would", "[mfma]") {
  const MfmaShape s = *mfma_shape("v_mfma_f32_16x16x16_bf16");
  auto result = [&](uint64_t a0, uint64_t b0, uint64_t a1, uint64_t b1, uint32_t c) {
    return first_element(s, {{a0, b0}, {a1, b1}}, c);
  };
  const uint64_t inf = 0x7f80, minus_inf = 0xff80, one = 0x3f80, big = 0x7f00, minus_big = 0xff00;
  CHECK(result(inf, one, 0, 0, 0) == 0x7f800000);
  CHECK(result(minus_inf, one, 0, 0, 0) == 0xff800000);
  CHECK(result(inf, one, minus_inf, one, 0) == 0x7fc00000);
  CHECK(result(inf, 0, 0, 0, 0) == 0x7fc00000);
  CHECK(result(0x7fff, one, 0, 0, 0) == 0x7fc00000);
  CHECK(result(one, one, 0, 0, 0xff800000) == 0xff800000);
  CHECK(result(one, one, 0, 0, 0x7f800001) == 0x7fc00000);
  CHECK(result(one, one, 0, 0, 0xffc12345) == 0x7fc00000);
  // A bf16 product that f32 cannot hold is an infinity, even if another would cancel it.
  CHECK(result(big, 0x4000, 0, 0, 0) == 0x7f800000);
  CHECK(result(minus_big, 0x4000, 0, 0, 0) == 0xff800000);
  CHECK(result(big, 0x4000, minus_big, 0x4000, 0) == 0x7fc00000);
  CHECK(result(big, one, 0, 0, 0) == 0x7f000000);
}

TEST_CASE("subnormals of A and B count as zeros only for f32, and only if asked", "[mfma]") {
  std::mt19937_64 random(12);
  for (const MfmaInstruction &instruction : mfma_instructions()) {
    const MfmaShape &s = instruction.shape;
    if (s.input == MfmaInput::i8) continue;
    Registers in(s);
    fill(
        in.a, s.input,
        [](MfmaInput input, auto &r) { return r() % 2 ? subnormal(input, r) : huge(input, r); }, random);
    fill(in.b, s.b_input, huge, random);
    std::fill(in.c.begin(), in.c.end(), 0);
    for (size_t at = 0; at < in.c.size(); ++at) // subnormal
      if (s.input != MfmaInput::f64) in.c[at] = uint32_t(random() & 0x807fffff);
    Registers flushed = in;
    if (s.input == MfmaInput::f32)
      for (std::vector<uint32_t> *operand : {&flushed.a, &flushed.b})
        for (uint32_t &word : *operand)
          if ((word & 0x7f800000) == 0) word &= 0x80000000;
    for (MfmaPath path : paths()) {
      INFO(instruction.mnemonic << " path " << int(path));
      require_equal(run(path, s, in, {.flush_inputs = true}), run(path, s, flushed));
    }
    if (s.input == MfmaInput::f32)
      CHECK(run(MfmaPath::portable, s, in) != run(MfmaPath::portable, s, flushed));
  }
}

#if defined(__x86_64__)
TEST_CASE("the host's floating-point mode does not reach the sums and survives them", "[mfma]") {
  std::mt19937_64 random(13);
  for (const char *mnemonic : {"v_mfma_f32_32x32x8_f16", "v_mfma_f32_16x16x16_bf16", "v_mfma_f32_16x16x4_f32",
                               "v_mfma_f64_16x16x4_f64", "v_mfma_f32_32x32x4_xf32",
                               "v_mfma_f32_16x16x32_fp8_fp8", "v_smfmac_f32_16x16x32_bf16"}) {
    const MfmaShape s = *mfma_shape(mnemonic);
    Registers in(s);
    fill(in.a, s.input, subnormal, random);
    fill(in.b, s.b_input, near_one, random);
    for (uint32_t &word : in.c)
      word = uint32_t(random() & 0x807fffff);
    for (MfmaPath path : paths()) {
      INFO(mnemonic << " path " << int(path));
      const std::vector<uint32_t> want = run(path, s, in);
      const uint32_t before = _mm_getcsr();
      const uint32_t odd = before | 0xe040; // flush, toward zero, denormals are zero
      _mm_setcsr(odd);
      const std::vector<uint32_t> got = run(path, s, in);
      const uint32_t after = _mm_getcsr();
      _mm_setcsr(before);
      require_equal(got, want);
      CHECK((after & 0xe040) == 0xe040);
    }
  }
}
#endif

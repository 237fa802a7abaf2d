//===- mfma_test.cpp - layouts, sums and paths of MFMA --------------------------------------------------===//

#include "emulator/exec/mfma.h"

#include <algorithm>
#include <bit>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <random>
#include <set>
#include <vector>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "unit/emulator/mfma_model.h"

using namespace sluice::emulator;
using namespace sluice::test;

namespace {

// ---- layouts, written down per shape as AMD's matrix calculator prints them -----------------------------

struct At {
  uint32_t lane;
  uint32_t element; // of A and B: 16-bit elements, or registers of f32
};

At a_at(const MfmaShape &s, uint32_t block, uint32_t i, uint32_t k) {
  if (s.m == 32 && s.k == 8) return {i + 32 * (k / 4), k % 4};
  if (s.m == 16 && s.k == 16) return {i + 16 * (k / 4), k % 4};
  if (s.m == 32 && s.k == 2) return {i + 32 * k, 0};
  if (s.m == 16 && s.k == 4 && s.blocks == 1) return {i + 16 * k, 0};
  return {i + s.m * block, k}; // the shapes of several blocks: one block after the other, all of k in a lane
}

At c_at(const MfmaShape &s, uint32_t block, uint32_t i, uint32_t j) {
  if (s.m == 4) return {4 * block + j, i};
  if (s.m == 16) return {16 * (i / 4) + j, 4 * block + i % 4};
  return {32 * (i / 4 % 2) + j, 16 * block + 4 * (i / 8) + i % 4};
}

uint32_t &word_at(const MfmaShape &s, std::vector<uint32_t> &registers, At at) {
  return registers[(s.input == MfmaInput::f32 ? at.element : at.element / 2) * 64 + at.lane];
}

uint16_t half_at(const std::vector<uint32_t> &registers, At at) {
  return uint16_t(registers[at.element / 2 * 64 + at.lane] >> (at.element % 2 * 16));
}

std::vector<MfmaPath> paths() {
  std::vector<MfmaPath> available;
  for (MfmaPath path : {MfmaPath::portable, MfmaPath::avx2, MfmaPath::avx512})
    if (mfma_path_available(path)) available.push_back(path);
  return available;
}

struct Registers {
  std::vector<uint32_t> a, b, c;
  explicit Registers(const MfmaShape &s)
      : a(s.a_registers() * 64), b(s.a_registers() * 64), c(s.c_registers() * 64) {}
};

std::vector<uint32_t> run(MfmaPath path, const MfmaShape &shape, const Registers &in) {
  std::vector<uint32_t> d(in.c.size(), 0xdeadbeef);
  mfma_on_path(path, shape, d.data(), in.a.data(), in.b.data(), in.c.data());
  return d;
}

std::vector<uint32_t> model(const MfmaShape &s, const Registers &in) {
  std::vector<uint32_t> d(in.c.size());
  for (uint32_t block = 0; block < s.blocks; ++block)
    for (uint32_t i = 0; i < s.m; ++i)
      for (uint32_t j = 0; j < s.n; ++j) {
        std::vector<uint16_t> a(s.k);
        std::vector<uint16_t> b(s.k);
        for (uint32_t k = 0; k < s.k; ++k) {
          a[k] = half_at(in.a, a_at(s, block, i, k));
          b[k] = half_at(in.b, a_at(s, block, j, k));
        }
        const At at = c_at(s, block, i, j);
        d[at.element * 64 + at.lane] = model_element(s, a, b, in.c[at.element * 64 + at.lane]);
      }
  return d;
}

using Draw = uint16_t (*)(MfmaInput, std::mt19937 &);

uint16_t any_bits(MfmaInput, std::mt19937 &random) {
  return uint16_t(random());
}

uint16_t finite_bits(MfmaInput input, std::mt19937 &random) {
  const uint32_t exponent_mask = input == MfmaInput::f16 ? 0x7c00 : 0x7f80;
  for (;;) {
    const uint16_t bits = uint16_t(random());
    if ((bits & exponent_mask) != exponent_mask) return bits;
  }
}

uint16_t encode(MfmaInput input, uint32_t sign, int exponent, uint32_t fraction) {
  if (input == MfmaInput::f16)
    return uint16_t(sign << 15 | uint32_t(std::clamp(exponent + 15, 0, 30)) << 10 | (fraction & 0x3ff));
  return uint16_t(sign << 15 | uint32_t(std::clamp(exponent + 127, 0, 254)) << 7 | (fraction & 0x7f));
}

uint16_t near_one(MfmaInput input, std::mt19937 &random) {
  return encode(input, random() & 1, int(random() % 7) - 3, random());
}

uint16_t wide_spread(MfmaInput input, std::mt19937 &random) {
  if (random() % 6 == 0) return uint16_t((random() & 1) << 15);
  const int range = input == MfmaInput::f16 ? 15 : 40;
  return encode(input, random() & 1, int(random() % (2 * range)) - range, random());
}

uint16_t subnormal(MfmaInput input, std::mt19937 &random) {
  return random() % 4 == 0 ? encode(input, random() & 1, input == MfmaInput::f16 ? -14 : -126, random())
                           : encode(input, random() & 1, -1000, random());
}

uint16_t huge(MfmaInput input, std::mt19937 &random) {
  return encode(input, random() & 1, (input == MfmaInput::f16 ? 12 : 60) + int(random() % 8), random());
}

uint16_t mostly_zero(MfmaInput input, std::mt19937 &random) {
  return random() % 8 == 0 ? near_one(input, random) : uint16_t((random() & 1) << 15);
}

void fill(const MfmaShape &s, Registers &registers, Draw draw, std::mt19937 &random) {
  for (auto *operand : {&registers.a, &registers.b})
    for (uint32_t &word : *operand)
      word = draw(s.input, random) | uint32_t(draw(s.input, random)) << 16;
}

float f32(uint32_t sign, int exponent, uint32_t fraction) {
  return std::bit_cast<float>(sign << 31 | uint32_t(std::clamp(exponent + 127, 0, 254)) << 23 |
                              (fraction & 0x7fffff));
}

void require_equal(const std::vector<uint32_t> &got, const std::vector<uint32_t> &want) {
  REQUIRE(got.size() == want.size());
  for (size_t i = 0; i < got.size(); ++i)
    if (got[i] != want[i]) {
      INFO("register " << i / 64 << " lane " << i % 64 << std::hex << ": got " << got[i] << " want "
                       << want[i]);
      REQUIRE(got[i] == want[i]);
    }
}

} // namespace

TEST_CASE("an MFMA mnemonic names its shape in every spelling", "[mfma]") {
  CHECK(mfma_instructions().size() == 15);
  for (const MfmaInstruction &instruction : mfma_instructions()) {
    CHECK(mfma_shape(instruction.mnemonic) == instruction.shape);
    CHECK(mfma_shape(std::string(instruction.mnemonic) + "_e64") == instruction.shape);
    CHECK(instruction.shape.m == instruction.shape.n);
  }
  const auto flagship = mfma_shape("v_mfma_f32_32x32x8_f16");
  REQUIRE(flagship);
  CHECK(flagship->passes == 8);
  CHECK(flagship->a_registers() == 2);
  CHECK(flagship->c_registers() == 16);
  CHECK(flagship->multiply_adds() == 8192);
  CHECK(mfma_shape("v_mfma_f32_32x32x8f16") == flagship);
  CHECK(mfma_shape("V_MFMA_F32_32X32X8F16") == flagship);
  CHECK(mfma_shape("v_mfma_f32_32x32x8bf16_1k") == mfma_shape("v_mfma_f32_32x32x8_bf16"));
  CHECK(mfma_shape("v_mfma_f32_4x4x4f16") == mfma_shape("v_mfma_f32_4x4x4_16b_f16"));
  for (const char *other :
       {"", "v_mfma", "v_mfma_f32_32x32x4bf16", "v_mfma_f32_16x16x8bf16", "v_add_f32",
        "v_mfma_f32_32x32x16_fp8_fp8", "v_mfma_f64_16x16x4_f64", "v_mfma_i32_32x32x16_i8"})
    CHECK_FALSE(mfma_shape(other));
}

TEST_CASE("modifiers that are not executed are refused by name and value", "[mfma]") {
  const MfmaShape shape = *mfma_shape("v_mfma_f32_16x16x16_f16");
  CHECK(mfma_refusal(shape, {}).empty());
  CHECK(mfma_refusal(shape, {.cbsz = 2}).find("cbsz = 2") != std::string::npos);
  CHECK(mfma_refusal(shape, {.abid = 1}).find("abid = 1") != std::string::npos);
  CHECK(mfma_refusal(shape, {.blgp = 7}).find("blgp = 7") != std::string::npos);
}

TEST_CASE("every lane and register holds the element the matrix calculator gives", "[mfma]") {
  for (const MfmaInstruction &instruction : mfma_instructions()) {
    const MfmaShape &s = instruction.shape;
    INFO(instruction.mnemonic);
    std::set<std::pair<uint32_t, uint32_t>> seen;
    for (uint32_t block = 0; block < s.blocks; ++block)
      for (uint32_t i = 0; i < s.m; ++i)
        for (uint32_t k = 0; k < s.k; ++k) {
          const At at = a_at(s, block, i, k);
          seen.insert({at.lane, at.element});
          const MfmaElement a = mfma_a_element(s, at.lane, at.element);
          const MfmaElement b = mfma_b_element(s, at.lane, at.element);
          REQUIRE((a.block == block && a.row == i && a.column == k));
          REQUIRE((b.block == block && b.row == k && b.column == i));
        }
    CHECK(seen.size() == 64 * s.lane_elements());
    seen.clear();
    for (uint32_t block = 0; block < s.blocks; ++block)
      for (uint32_t i = 0; i < s.m; ++i)
        for (uint32_t j = 0; j < s.n; ++j) {
          const At at = c_at(s, block, i, j);
          seen.insert({at.lane, at.element});
          const MfmaElement c = mfma_c_element(s, at.lane, at.element);
          REQUIRE((c.block == block && c.row == i && c.column == j));
        }
    CHECK(seen.size() == 64 * s.c_registers());
  }
}

TEST_CASE("one product lands in its one element, on every path, for every shape", "[mfma]") {
  for (const MfmaInstruction &instruction : mfma_instructions()) {
    const MfmaShape &s = instruction.shape;
    const uint32_t one = s.input == MfmaInput::f32 ? 0x3f800000 : s.input == MfmaInput::f16 ? 0x3c00 : 0x3f80;
    const uint32_t two = s.input == MfmaInput::f32 ? 0x40000000 : 0x4000;
    for (MfmaPath path : paths()) {
      INFO(instruction.mnemonic << " path " << int(path));
      for (uint32_t block = 0; block < s.blocks; ++block)
        for (uint32_t i = 0; i < s.m; ++i)
          for (uint32_t k = 0; k < s.k; ++k) {
            const uint32_t j = (i * 7 + k * 3 + block + 1) % s.n;
            Registers in(s);
            const At a = a_at(s, block, i, k);
            const At b = a_at(s, block, j, k);
            word_at(s, in.a, a) = s.input == MfmaInput::f32 ? one : one << (16 * (a.element % 2));
            word_at(s, in.b, b) = s.input == MfmaInput::f32 ? two : two << (16 * (b.element % 2));
            const std::vector<uint32_t> d = run(path, s, in);
            const At at = c_at(s, block, i, j);
            REQUIRE(d[at.element * 64 + at.lane] == 0x40000000);
            REQUIRE(std::count(d.begin(), d.end(), 0u) == std::ptrdiff_t(d.size() - 1));
          }
    }
  }
}

TEST_CASE("f16 and bf16 sums equal the independent model bit by bit on every path", "[mfma]") {
  std::mt19937 random(20240607);
  const std::pair<const char *, Draw> draws[] = {{"near one", near_one},
                                                 {"any finite", finite_bits},
                                                 {"wide spread", wide_spread},
                                                 {"subnormal", subnormal},
                                                 {"huge", huge},
                                                 {"mostly zero", mostly_zero},
                                                 {"any bits", any_bits}};
  for (const MfmaInstruction &instruction : mfma_instructions()) {
    const MfmaShape &s = instruction.shape;
    if (s.input == MfmaInput::f32) continue;
    for (const auto &[name, draw] : draws)
      for (int kind = 0; kind < 6; ++kind) {
        Registers in(s);
        fill(s, in, draw, random);
        for (uint32_t &word : in.c) {
          const uint32_t sign = random() & 1;
          switch (kind) {
          case 0: // around the products
            word = std::bit_cast<uint32_t>(f32(sign, int(random() % 12) - 6, random()));
            break;
          case 1: // far above or below them
            word = std::bit_cast<uint32_t>(f32(sign, int(random() % 250) - 125, random()));
            break;
          case 2: // zeros and powers of two, where cutting a negative number shows
            word = random() % 3 == 0 ? sign << 31
                                     : std::bit_cast<uint32_t>(f32(sign, int(random() % 80) - 40, 0));
            break;
          case 3: // subnormal
            word = sign << 31 | (random() & 0x7fffff);
            break;
          case 4: // any, specials included
            word = random() % 16 == 0 ? (0x7f800000u | sign << 31 | (random() % 2 ? random() & 0x7fffff : 0))
                                      : uint32_t(random());
            break;
          default:
            word = 0;
          }
        }
        const std::vector<uint32_t> want = model(s, in);
        for (MfmaPath path : paths()) {
          INFO(instruction.mnemonic << ", " << name << ", accumulator kind " << kind << ", path "
                                    << int(path));
          require_equal(run(path, s, in), want);
        }
      }
  }
}

TEST_CASE("sums that only the published model explains", "[mfma]") {
  const MfmaShape s = *mfma_shape("v_mfma_f32_32x32x8_f16");
  auto element = [&](std::vector<std::pair<double, double>> products, float c) {
    Registers in(s);
    for (uint32_t k = 0; k < products.size(); ++k) {
      auto put = [&](std::vector<uint32_t> &registers, double value) {
        int exponent;
        const double fraction = std::frexp(std::fabs(value), &exponent);
        const uint16_t bits = encode(s.input, value < 0, exponent - 1, uint32_t(fraction * 2048) & 0x3ff);
        REQUIRE(half_to_double(s.input, bits) == value);
        word_at(s, registers, a_at(s, 0, 0, k)) |= uint32_t(bits) << (16 * (k % 2));
      };
      put(in.a, products[k].first);
      put(in.b, products[k].second);
    }
    in.c[0] = std::bit_cast<uint32_t>(c);
    std::vector<float> results;
    for (MfmaPath path : paths())
      results.push_back(std::bit_cast<float>(run(path, s, in)[0]));
    for (float result : results)
      CHECK(std::bit_cast<uint32_t>(result) == std::bit_cast<uint32_t>(results[0]));
    return results[0];
  };
  // A product 2^-25 below the largest is cut to nothing; 2^-24 is kept.
  CHECK(element({{1, 1}, {0x1p-12, 0x1p-13}, {-1, 1}}, 0) == 0);
  CHECK(element({{1, 1}, {0x1p-12, 0x1p-12}, {-1, 1}}, 0) == 0x1p-24f);
  // A product is cut toward zero, whatever its sign; the accumulator toward minus infinity.
  CHECK(element({{1, 1}, {-0x1p-12, 0x1p-13}, {-1, 1}}, 0) == 0);
  CHECK(element({{1, 1}, {-1, 1}}, 0x1p-25f) == 0);
  CHECK(element({{1, 1}, {-1, 1}}, -0x1p-60f) == -0x1p-24f);
  // Exponents add without normalising: 1.5 * 1.5 counts as 2^0, so 24 places below 2^0 are kept.
  CHECK(element({{1.5, 1.5}, {0x1p-12, 0x1p-12}, {-1.5, 1.5}}, 0) == 0x1p-24f);
  // Nothing but zeros leaves the accumulator alone, but a minus zero becomes zero.
  CHECK(element({}, -0x1.234566p-140f) == -0x1.234566p-140f);
  CHECK(std::bit_cast<uint32_t>(element({}, -0.0f)) == 0);
  // Round to nearest even happens once per group.
  CHECK(element({{0x1p-12, 0x1p-12}}, 1.0f) == 1.0f);
  CHECK(element({{0x1p-12, 0x1p-12}}, 1.0f + 0x1p-23f) == 1.0f + 0x1p-22f);
}

TEST_CASE("infinities and NaNs come out as the sum of the products would", "[mfma]") {
  const MfmaShape s = *mfma_shape("v_mfma_f32_16x16x16_bf16");
  auto result = [&](uint16_t a0, uint16_t b0, uint16_t a1, uint16_t b1, uint32_t c) {
    Registers in(s);
    in.a[0] = a0 | uint32_t(a1) << 16;
    in.b[0] = b0 | uint32_t(b1) << 16;
    in.c[0] = c;
    const uint32_t first = run(MfmaPath::portable, s, in)[0];
    for (MfmaPath path : paths())
      CHECK(run(path, s, in)[0] == first);
    return first;
  };
  const uint16_t inf = 0x7f80, minus_inf = 0xff80, one = 0x3f80, big = 0x7f00, minus_big = 0xff00;
  CHECK(result(inf, one, 0, 0, 0) == 0x7f800000);
  CHECK(result(minus_inf, one, 0, 0, 0) == 0xff800000);
  CHECK(result(inf, one, minus_inf, one, 0) == 0x7fc00000);
  CHECK(result(inf, 0, 0, 0, 0) == 0x7fc00000);
  CHECK(result(0x7fff, one, 0, 0, 0) == 0x7fc00000);
  CHECK(result(one, one, 0, 0, 0xff800000) == 0xff800000);
  CHECK(result(one, one, 0, 0, 0x7f800001) == 0x7fc00000);
  CHECK(result(one, one, 0, 0, 0xffc12345) == 0x7fc00000);
  // A bf16 product no f32 can hold is an infinity, even if another would cancel it.
  CHECK(result(big, 0x4000, 0, 0, 0) == 0x7f800000);
  CHECK(result(minus_big, 0x4000, 0, 0, 0) == 0xff800000);
  CHECK(result(big, 0x4000, minus_big, 0x4000, 0) == 0x7fc00000);
  CHECK(result(big, one, 0, 0, 0) == 0x7f000000);
}

TEST_CASE("f32 is a chain of fused multiply-adds", "[mfma]") {
  std::mt19937 random(7);
  for (const MfmaInstruction &instruction : mfma_instructions()) {
    const MfmaShape &s = instruction.shape;
    if (s.input != MfmaInput::f32) continue;
    for (int kind = 0; kind < 4; ++kind) {
      Registers in(s);
      for (auto *operand : {&in.a, &in.b, &in.c})
        for (uint32_t &word : *operand)
          word = kind == 0   ? uint32_t(random())
                 : kind == 1 ? std::bit_cast<uint32_t>(f32(random() & 1, int(random() % 6) - 3, random()))
                 : kind == 2 ? uint32_t((random() & 1) << 31 | (random() & 0x7fffff))
                             : std::bit_cast<uint32_t>(f32(random() & 1, int(random() % 40) - 85, random()));
      std::vector<uint32_t> want(in.c.size());
      for (uint32_t block = 0; block < s.blocks; ++block)
        for (uint32_t i = 0; i < s.m; ++i)
          for (uint32_t j = 0; j < s.n; ++j) {
            const At at = c_at(s, block, i, j);
            float sum = std::bit_cast<float>(in.c[at.element * 64 + at.lane]);
            for (uint32_t k = 0; k < s.k; ++k)
              sum = std::fmaf(std::bit_cast<float>(word_at(s, in.a, a_at(s, block, i, k))),
                              std::bit_cast<float>(word_at(s, in.b, a_at(s, block, j, k))), sum);
            want[at.element * 64 + at.lane] = std::isnan(sum) ? 0x7fc00000 : std::bit_cast<uint32_t>(sum);
          }
      for (MfmaPath path : paths()) {
        INFO(instruction.mnemonic << " kind " << kind << " path " << int(path));
        require_equal(run(path, s, in), want);
      }
    }
  }
}

TEST_CASE("operands may overlap and the accumulator may be a constant", "[mfma]") {
  std::mt19937 random(11);
  for (const char *mnemonic : {"v_mfma_f32_32x32x8_f16", "v_mfma_f32_16x16x16_bf16", "v_mfma_f32_32x32x2_f32",
                               "v_mfma_f32_4x4x4_16b_f16"}) {
    const MfmaShape s = *mfma_shape(mnemonic);
    const uint32_t c_words = s.c_registers() * 64;
    Registers in(s);
    fill(s, in, near_one, random);
    for (uint32_t &word : in.c)
      word = std::bit_cast<uint32_t>(f32(random() & 1, int(random() % 6), random()));
    for (MfmaPath path : paths()) {
      INFO(mnemonic << " path " << int(path));
      const std::vector<uint32_t> want = run(path, s, in);

      std::vector<uint32_t> file = in.c; // in place
      mfma_on_path(path, s, file.data(), in.a.data(), in.b.data(), file.data());
      require_equal(file, want);

      file.assign(c_words + 64, 0); // c one register above d
      std::copy(in.c.begin(), in.c.end(), file.begin() + 64);
      mfma_on_path(path, s, file.data(), in.a.data(), in.b.data(), file.data() + 64);
      require_equal({file.begin(), file.begin() + c_words}, want);

      file.assign(c_words + in.a.size(), 0); // a in the last registers of d
      std::copy(in.a.begin(), in.a.end(), file.begin() + (c_words - 64));
      mfma_on_path(path, s, file.data(), file.data() + (c_words - 64), in.b.data(), in.c.data());
      require_equal({file.begin(), file.begin() + c_words}, want);

      Registers constant = in;
      std::fill(constant.c.begin(), constant.c.end(), 0x3f800000);
      file.assign(c_words, 0);
      mfma_on_path(path, s, file.data(), in.a.data(), in.b.data(), nullptr, 0x3f800000);
      require_equal(file, run(path, s, constant));
    }
  }
}

#if defined(__x86_64__)
TEST_CASE("the host's floating-point mode does not reach the sums and survives them", "[mfma]") {
  std::mt19937 random(13);
  for (const char *mnemonic :
       {"v_mfma_f32_32x32x8_f16", "v_mfma_f32_16x16x16_bf16", "v_mfma_f32_16x16x4_f32"}) {
    const MfmaShape s = *mfma_shape(mnemonic);
    Registers in(s);
    fill(s, in, subnormal, random);
    for (uint32_t &word : in.c)
      word = uint32_t(random() & 0x807fffff);
    for (MfmaPath path : paths()) {
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

//===- append_fp8_test.cpp - every 16-bit number into a cache of bytes ----------------------------------===//
#include "cache_ops/device.h"
#include "calls/cache_ops.h"
#include "calls/problem.h"

#include "conformance/shared/numbers.h"

#include <cmath>
#include <cstdlib>
#include <limits>

using namespace sluice::conformance;
namespace calls = sluice::calls;
using namespace sluice::test;

namespace {

uint8_t encode_for(uint32_t cache_type, double value) {
  return cache_type == SLUICE_I8         ? uint8_t(encode_i8(value))
         : cache_type == SLUICE_E4M3FNUZ ? encode_fp8(value)
                                         : encode_fnuz<2>(value);
}

/// All 65536 numbers of the source type, divided by a scale: the expected value is an independent
/// conversion of x / scale in double, whose 53 bits avoid rounding to the other side (x has 11 bits, scale
/// 24).
void check_all_numbers(uint32_t source, uint32_t cache_type, float scale, bool with_scale) {
  INFO("source type " << source << ", cache type " << cache_type << ", scale " << scale);
  constexpr int row = 1024, rows = 64;
  std::vector<uint16_t> all(row * rows);
  for (size_t i = 0; i < all.size(); ++i)
    all[i] = uint16_t(i);
  Visible<uint16_t> k(all);
  Visible<uint8_t> cache(all.size(), 0x55);
  std::vector<int64_t> order(rows);
  for (int t = 0; t < rows; ++t)
    order[size_t(t)] = t;
  Visible<int64_t> slots(order);
  Visible<float> scales(1, scale);
  calls::Append call;
  call.flags = calls::v_in_k;
  call.source_type = source;
  call.cache_type = cache_type;
  call.kv_heads = 1;
  call.head_dim_qk = row;
  call.page_size = 16;
  call.tokens = rows;
  call.k = {k.data(), {0, row, row, 1}};
  call.k_cache = {cache.data(), {16 * row, row, row, 1}};
  call.slots = slots.data();
  if (with_scale) {
    call.k_scale_kind = SLUICE_SCALE_PER_TENSOR;
    call.k_scale = scales.data();
  }
  run_on_device(call, sluice_cache_append);
  int wrong = 0;
  for (size_t i = 0; i < all.size(); ++i) {
    const double x = decode(source == SLUICE_F16 ? f16_format : bf16_format, uint16_t(i));
    const double quotient = with_scale ? x / double{scale} : x;
    const uint8_t expected = encode_for(cache_type, quotient);
    if (cache[i] != expected && ++wrong <= 5)
      UNSCOPED_INFO("bits " << i << ", " << x << " became " << int(cache[i]) << " instead of "
                            << int(expected));
  }
  CHECK(wrong == 0);
}

} // namespace

TEST_CASE("the oracle's FP8 follows its definition", "[append_fp8]") {
  CHECK(decode_fp8(0x7f) == 240);
  CHECK(decode_fp8(0x01) == std::ldexp(1, -10));
  CHECK(decode_fp8(0x08) == std::ldexp(1, -7));
  CHECK(decode_fp8(0x40) == 1);
  for (int byte = 0; byte < 256; ++byte)
    if (byte != 0x80) CHECK(encode_fp8(decode_fp8(uint8_t(byte))) == byte);
  CHECK(encode_fp8(1e9) == 0x7f);
  CHECK(encode_fp8(-1e9) == 0xff);
  CHECK(encode_fp8(std::nan("")) == 0x80);
  CHECK(encode_fp8(-0.0) == 0);
  CHECK(encode_fp8(1.0625) == 0x40); // halfway, to even
  CHECK(encode_fp8(1.1875) == 0x42);
  CHECK(decode_fnuz<2>(0x7f) == 57344);
  CHECK(decode_fnuz<2>(0x01) == std::ldexp(1, -17));
  CHECK(decode_fnuz<2>(0x04) == std::ldexp(1, -15));
  CHECK(decode_fnuz<2>(0x40) == 1);
  CHECK(encode_fnuz<2>(1.125) == 0x40); // halfway, to even
  CHECK(encode_fnuz<2>(-1e9) == 0xff);
  CHECK(encode_i8(2.5) == 2);
  CHECK(encode_i8(-1e9) == -127);
  CHECK(encode_i8(std::nan("")) == 0);
}

TEST_CASE("every number is rounded once, to nearest even, and limited", "[append_fp8]") {
  for (const uint32_t source : {SLUICE_F16, SLUICE_BF16})
    for (const uint32_t cache : {SLUICE_E4M3FNUZ, SLUICE_E5M2FNUZ, SLUICE_I8}) {
      check_all_numbers(source, cache, 1, false);
      for (const float scale : {1.0f, 0.25f, 3.0f, 0.1f, 1.0f / 240, 7.7777f, -0.3f, 1e-4f, 65504.0f})
        check_all_numbers(source, cache, scale, true);
      // Scales that are subnormal, or beside that, or whose inverses are.
      for (const float scale : {0x1p-149f, 0x1.8p-148f, 1e-39f, 0x1.fffffcp-127f, 0x1p-126f, 0x1.000002p-126f,
                                0x1.8p-64f, 0x1.4p64f, 0x1p126f, 0x1.000002p126f, 0x1.fffffep127f})
        check_all_numbers(source, cache, scale, true);
    }
}

TEST_CASE("scales that cannot be divisors", "[append_fp8]") {
  // The NaN has all its bits set: rounding them up would turn it into a number.
  float nan_scale;
  const uint32_t nan_bits = 0x7fffffff;
  std::memcpy(&nan_scale, &nan_bits, sizeof nan_scale);
  for (const uint32_t source : {SLUICE_F16, SLUICE_BF16})
    for (const uint32_t cache : {SLUICE_E4M3FNUZ, SLUICE_E5M2FNUZ, SLUICE_I8})
      for (const float scale : {0.0f, -0.0f, std::numeric_limits<float>::infinity(), nan_scale})
        check_all_numbers(source, cache, scale, true);
}

TEST_CASE("quotients right beside the middle between two numbers", "[append_fp8]") {
  // scale = x / (middle * (1 + tiny)) in F32: the quotient is closer to the middle than F32 can represent.
  // The chip's reciprocal may be off by one unit, so the emulator's is too.
  for (const char *perturbed : {"off", "on"}) {
    REQUIRE(sluice_emulator_configure("perturb_transcendentals", perturbed) == SLUICE_EMULATOR_OK);
    for (const double middle : {1.125, 1.375, 5.0 * 8192, 5 * 0x1p-18})
      for (const double x : {1.0, 3.140625, 1000.0}) {
        const float scale = float(x / middle);
        for (const float near : {std::nextafter(scale, 0.0f), scale, std::nextafter(scale, 1e30f)})
          check_all_numbers(SLUICE_F16, SLUICE_E5M2FNUZ, near, true);
      }
    for (const double middle : {0.5, 1.5, 2.5, 63.5, 126.5})
      for (const double x : {1.0, 3.140625, 1000.0})
        for (const double sign : {1.0, -1.0}) {
          const float scale = float(sign * x / middle);
          for (const float near : {std::nextafter(scale, 0.0f), scale, std::nextafter(scale, scale * 2)})
            check_all_numbers(SLUICE_F16, SLUICE_I8, near, true);
        }
    for (const double middle : {1.0625, 1.1875, 136.0, 3 * 0.00048828125, 15.5 * 8})
      for (const double x : {1.0, 1.5, 3.140625, 1000.0})
        for (const int steps : {-1, 0, 1}) {
          float scale = float(x / middle);
          for (int i = 0; i < std::abs(steps); ++i)
            scale = std::nextafter(scale, steps < 0 ? 0.0f : 1e30f);
          check_all_numbers(SLUICE_F16, SLUICE_E4M3FNUZ, scale, true);
        }
  }
  REQUIRE(sluice_emulator_configure("perturb_transcendentals", "off") == SLUICE_EMULATOR_OK);
}

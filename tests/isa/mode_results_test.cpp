//===- mode_results_test.cpp - CLAMP, OMOD and FP16_OVFL, which change results --------------------------===//
#include <catch2/catch.hpp>

#include <algorithm>

#include "isa/mode_rows.h"

namespace sluice::test {

TEST_CASE("CLAMP, and its result for NaN, which depends on DX10_CLAMP", "[isa][mode]") {
  for (bool dx10_clamp : {true, false})
    check_rows(
        {.dx10_clamp = dx10_clamp}, {}, " clamp",
        [](const ValuRow &row) { return is_float(row.result_type); }, unchanged,
        [&](const ValuRow &row, TestWave &t) {
          change_numbers(t, row_destination, row.result_type, [&](uint64_t x) {
            if (nan_bits(x, row.result_type)) return dx10_clamp ? 0 : x;
            return bits_of(std::clamp(number(x, row.result_type), 0.0, 1.0) + 0.0, row.result_type);
          });
        },
        90);
}

TEST_CASE("OMOD counts only without IEEE and without subnormal results", "[isa][mode]") {
  struct Scale {
    const char *text;
    double factor;
  };
  for (const Scale &scale : {Scale{" mul:2", 2.0}, Scale{" mul:4", 4.0}, Scale{" div:2", 0.5}}) {
    auto floats = [](const ValuRow &row) { return is_float(row.result_type); };
    check_rows({}, {}, scale.text, floats, unchanged, unchanged, 60);
    const Mode ieee{.denormal_32 = 1, .denormal_16_64 = 1};
    check_rows(ieee, ieee, scale.text, floats, unchanged, unchanged, 60);
    const Mode denormals{.ieee = false};
    check_rows(denormals, denormals, scale.text, floats, unchanged, unchanged, 60);
    const Mode scaling{.denormal_32 = 1, .denormal_16_64 = 1, .ieee = false};
    check_rows(
        scaling, scaling, scale.text, floats, unchanged,
        [&](const ValuRow &row, TestWave &t) {
          change_numbers(t, row_destination, row.result_type, [&](uint64_t x) {
            if (nan_bits(x, row.result_type)) return x;
            const double scaled = number(x, row.result_type) * scale.factor;
            return flushed(bits_of(scaled == 0 ? 0.0 : scaled, row.result_type), row.result_type);
          });
        },
        60);
  }
}

TEST_CASE("FP16_OVFL stops halves at the largest, except for true infinities", "[isa][mode]") {
  check_rows(
      {.fp16_overflow = true}, {}, "",
      [](const ValuRow &row) { return is_float(row.result_type) && row.form != ValuForm::accumulate; },
      unchanged,
      [](const ValuRow &row, TestWave &t) {
        if (row.result_type != OperandType::f16 && row.result_type != OperandType::packed_f16) return;
        for (uint32_t i = 0; i < 64; ++i)
          for (uint32_t shift : {0u, 16u}) {
            if (shift == 16 && row.result_type == OperandType::f16) continue;
            bool infinite = false;
            for (uint32_t k = 0; k < written_sources(row); ++k) {
              const uint32_t x = t.v(row_source(k), i);
              const bool single = row.source_types[k] == OperandType::f32;
              const bool whole =
                  !is_float(row.source_types[k]) || (row.form == ValuForm::fused_constant_1 && k == 1);
              infinite =
                  infinite ||
                  (!whole && (single ? (x & 0x7fffffff) == 0x7f800000 : (x >> shift & 0x7fff) == 0x7c00));
            }
            uint32_t &result = t.v(row_destination, i);
            if ((result >> shift & 0x7fff) == 0x7c00 && !infinite) result -= 1u << shift;
          }
      },
      100);
}

TEST_CASE("s_setreg changes MODE in parts, and OMOD follows", "[isa][mode]") {
  TestWave t;
  t.fill(1, 3.0f);
  t.fill(2, 1.0f);
  t.run("v_mul_f32_e64 v3, v1, v2 mul:2\n"
        "s_setreg_imm32_b32 hwreg(HW_REG_MODE, 4, 2), 1\n s_setreg_imm32_b32 hwreg(HW_REG_MODE, 9, 1), 0\n"
        "v_mul_f32_e64 v4, v1, v2 mul:2\n s_getreg_b32 s4, hwreg(HW_REG_MODE)");
  CHECK(t.f(3) == 3.0f);
  CHECK(t.f(4) == 6.0f);
  CHECK(t.s(4) == 0x1d0);
}

TEST_CASE("mixed fma to halves: infinity, or with FP16_OVFL the largest half", "[isa][mode]") {
  TestWave t;
  t.wave.set_mode(Mode{}.bits());
  t.fill(1, 70000.0f);
  t.fill(2, 1.0f);
  t.fill(4, 0u);
  t.run("v_fma_mixlo_f16 v4, v1, v2, 0\n v_fma_mixhi_f16 v4, -v1, v2, 0");
  CHECK(t.v(4) == 0xfc007c00);
  t.wave.set_mode(Mode{.fp16_overflow = true}.bits());
  t.run("v_fma_mixlo_f16 v4, v1, v2, 0\n v_fma_mixhi_f16 v4, -v1, v2, 0");
  CHECK(t.v(4) == 0xfbff7bff);
}

} // namespace sluice::test

//===- mode_subnormals_test.cpp - subnormal numbers, kept or flushed to zero ----------------------------===//
#include <catch2/catch.hpp>

#include "isa/mode_rows.h"

namespace sluice::test {

namespace {

/// Rows that move bits or have their own rules.
bool ignores_denormal_mode(std::string_view name) {
  return name == "v_cndmask_b32" || name.starts_with("v_cmp_class") || name.starts_with("v_dot2") ||
         name == "v_pk_mov_b32";
}

bool every(const ValuRow &) {
  return true;
}

void flush_operands(const ValuRow &row, TestWave &t, const Mode &mode) {
  if (ignores_denormal_mode(row.mnemonic)) return;
  for (uint32_t k = 0; k < row.sources; ++k) {
    const OperandType type = row.source_types[k];
    const bool is_destination = row.form == ValuForm::accumulate && k + 1u == row.sources;
    if (!is_float(type) || ((is_single(type) ? mode.denormal_32 : mode.denormal_16_64) & 1) != 0) continue;
    change_numbers(t, is_destination ? row_destination : row_source(k), type,
                   [&](uint64_t x) { return flushed(x, type); });
  }
}
void flush_result(const ValuRow &row, TestWave &t, const Mode &mode) {
  const OperandType type = row.result_type;
  if (ignores_denormal_mode(row.mnemonic) || !is_float(type)) return;
  if (((is_single(type) ? mode.denormal_32 : mode.denormal_16_64) & 2) != 0) return;
  change_numbers(t, row_destination, type, [&](uint64_t x) { return flushed(x, type); });
}

} // namespace

TEST_CASE("subnormal operands and results become zeros where MODE says so", "[isa][mode]") {
  for (uint32_t denormals : {0u, 1u, 2u})
    for (bool single : {false, true}) {
      Mode mode;
      (single ? mode.denormal_32 : mode.denormal_16_64) = denormals;
      check_rows(
          mode, {}, "", every, [&](const ValuRow &row, TestWave &t) { flush_operands(row, t, mode); },
          [&](const ValuRow &row, TestWave &t) { flush_result(row, t, mode); }, 180);
    }
}

TEST_CASE("dot products of halves have subnormal rules of their own", "[isa][mode]") {
  for (const Mode &mode : {Mode{}, Mode{.denormal_32 = 0, .denormal_16_64 = 0}}) {
    TestWave t;
    t.wave.set_mode(mode.bits());
    t.fill(1, 0x3c000001u); // 1 and the smallest half
    t.fill(2, 0x00003c00u);
    t.fill(3, 0x00000100u); // a subnormal f32
    t.run("v_dot2_f32_f16 v4, v1, v2, v3");
    CHECK(t.f(4) == 0x1p-24f);
    t.fill(1, 0u);
    t.run("v_dot2_f32_f16 v4, v1, v2, v3");
    CHECK(t.v(4) == 0);
  }
}

TEST_CASE("mixed fma flushes subnormals by the width of each operand", "[isa][mode]") {
  TestWave t;
  t.fill(1, 0x00000001u); // the smallest half, a subnormal f32
  t.fill(2, 1.0f);
  t.wave.set_mode(Mode{.denormal_32 = 0}.bits());
  t.run("v_fma_mix_f32 v4, v1, v2, 0 op_sel_hi:[1,0,0]\n v_fma_mix_f32 v5, v1, v2, 0");
  CHECK(t.f(4) == 0x1p-24f);
  CHECK(t.v(5) == 0);
  t.wave.set_mode(Mode{.denormal_16_64 = 0}.bits());
  t.run("v_fma_mix_f32 v4, v1, v2, 0 op_sel_hi:[1,0,0]\n v_fma_mix_f32 v5, v1, v2, 0");
  CHECK(t.f(4) == 0);
  CHECK(t.v(5) == 1);
}

} // namespace sluice::test

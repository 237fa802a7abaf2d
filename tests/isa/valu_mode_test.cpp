//===- valu_mode_test.cpp - the effect of the MODE register on float instructions -----------------------===//
//
// Rounding is checked against exact arithmetic in 113 bits, truncated by a separate rule. Subnormals, OMOD,
// CLAMP and FP16_OVFL change inputs or results: every row is run plain on changed operands and its result
// changed by the manual's rule.
//
//===----------------------------------------------------------------------------------------------------===//
#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>

#include "isa/row_text.h"
#include "isa/wave_fixture.h"

namespace sluice::test {

namespace {

using emulator::OperandType;
using emulator::ValuForm;
using emulator::ValuRow;

struct Mode {
  uint32_t round_32 = 0, round_16_64 = 0; // 0 nearest, 1 up, 2 down, 3 toward zero
  uint32_t denormal_32 = 3, denormal_16_64 = 3;
  bool dx10_clamp = true, ieee = true, fp16_overflow = false;

  uint32_t bits() const {
    return round_32 | round_16_64 << 2 | denormal_32 << 4 | denormal_16_64 << 6 | uint32_t(dx10_clamp) << 8 |
           uint32_t(ieee) << 9 | uint32_t(fp16_overflow) << 23;
  }
};

//===--- Rounding ---------------------------------------------------------------------------------------===//

__extension__ using Exact = __float128;

struct Shape {
  int precision, min_exponent;
  double max;
};
constexpr Shape half_shape = {11, -14, 65504}, single_shape = {24, -126, 0x1.fffffep127},
                double_shape = {53, -1022, 0x1.fffffffffffffp1023};

double rounded(Exact x, const Shape &shape, uint32_t mode) {
  const bool negative = x < 0;
  Exact magnitude = negative ? -x : x;
  if (magnitude == 0) return 0;
  int exponent = 0;
  Exact scaled = magnitude;
  for (; scaled >= 2; ++exponent)
    scaled /= 2;
  for (; scaled < 1; --exponent)
    scaled *= 2;
  const int place = std::max(exponent, shape.min_exponent) - shape.precision + 1; // of the last bit
  Exact in_places = magnitude;
  for (int i = 0; i < std::abs(place); ++i)
    in_places = place > 0 ? in_places / 2 : in_places * 2;
  uint64_t whole = uint64_t(in_places);
  const Exact rest = in_places - Exact(whole);
  const bool away = mode == 0   ? rest > 0.5 || (rest == 0.5 && whole % 2 == 1)
                    : mode == 1 ? rest > 0 && !negative
                    : mode == 2 ? rest > 0 && negative
                                : false;
  const double result = std::ldexp(double(whole + (away ? 1 : 0)), place);
  const bool to_max = mode == 3 || (mode == 1 && negative) || (mode == 2 && !negative);
  const double bounded = result <= shape.max ? result : to_max ? shape.max : INFINITY;
  return negative ? -bounded : bounded;
}

double half_value(uint32_t bits) {
  return double(support::f16_to_float(uint16_t(bits)));
}

/// Numbers of moderate size, whose sums and products fit into 113 bits; some of few bits, for ties.
double moderate(std::mt19937_64 &random, const Shape &shape) {
  const int bits = random() % 2 == 0 ? shape.precision : shape.precision / 2;
  const double mantissa = double(1 + random() % (uint64_t(1) << bits));
  const double value = std::ldexp(mantissa, -bits + int(random() % 9) - 4);
  return random() % 2 == 0 ? value : -value;
}

struct RoundingCase {
  const char *text; // v2, v4 and v6 give v8, each of two dwords if f64
  OperandType sources, result;
  std::function<Exact(Exact, Exact, Exact, const std::function<Exact(Exact)> &)>
      exact; // and how products are rounded
};

using Round = std::function<Exact(Exact)>;
const RoundingCase rounding_cases[] = {
    {"v_add_f32 v8, v2, v4", OperandType::f32, OperandType::f32,
     [](Exact a, Exact b, Exact, const Round &) { return a + b; }},
    {"v_sub_f32 v8, v2, v4", OperandType::f32, OperandType::f32,
     [](Exact a, Exact b, Exact, const Round &) { return a - b; }},
    {"v_subrev_f32 v8, v2, v4", OperandType::f32, OperandType::f32,
     [](Exact a, Exact b, Exact, const Round &) { return b - a; }},
    {"v_mul_f32 v8, v2, v4", OperandType::f32, OperandType::f32,
     [](Exact a, Exact b, Exact, const Round &) { return a * b; }},
    {"v_mul_legacy_f32 v8, v2, v4", OperandType::f32, OperandType::f32,
     [](Exact a, Exact b, Exact, const Round &) { return a * b; }},
    {"v_fma_f32 v8, v2, v4, v6", OperandType::f32, OperandType::f32,
     [](Exact a, Exact b, Exact c, const Round &) { return a * b + c; }},
    {"v_mov_b32 v8, v6\n v_fmac_f32 v8, v2, v4", OperandType::f32, OperandType::f32,
     [](Exact a, Exact b, Exact c, const Round &) { return a * b + c; }},
    {"v_fmamk_f32 v8, v2, 0x40490fdb, v4", OperandType::f32, OperandType::f32,
     [](Exact a, Exact b, Exact, const Round &) { return a * Exact(0x1.921fb6p1) + b; }},
    {"v_fma_mix_f32 v8, v2, v4, v6", OperandType::f32, OperandType::f32,
     [](Exact a, Exact b, Exact c, const Round &) { return a * b + c; }},
    {"v_mov_b32 v3, 0\n v_mov_b32 v5, 0\n v_pk_add_f32 v[8:9], v[2:3], v[4:5]", OperandType::f32,
     OperandType::f32, [](Exact a, Exact b, Exact, const Round &) { return a + b; }},
    {"v_cvt_f32_f64 v8, v[2:3]", OperandType::f64, OperandType::f32,
     [](Exact a, Exact, Exact, const Round &) { return a; }},
    {"v_cvt_f32_i32 v8, v2", OperandType::i64, OperandType::f32,
     [](Exact a, Exact, Exact, const Round &) { return a; }},
    {"v_mov_b32 v7, 0xffffff6d\n v_ldexp_f32 v8, v2, v7", OperandType::f32, OperandType::f32,
     [](Exact a, Exact, Exact, const Round &) { return a * Exact(0x1p-147); }},
    {"v_add_f64 v[8:9], v[2:3], v[4:5]", OperandType::f64, OperandType::f64,
     [](Exact a, Exact b, Exact, const Round &) { return a + b; }},
    {"v_mul_f64 v[8:9], v[2:3], v[4:5]", OperandType::f64, OperandType::f64,
     [](Exact a, Exact b, Exact, const Round &) { return a * b; }},
    {"v_add_f16 v8, v2, v4", OperandType::f16, OperandType::f16,
     [](Exact a, Exact b, Exact, const Round &) { return a + b; }},
    {"v_subrev_f16 v8, v2, v4", OperandType::f16, OperandType::f16,
     [](Exact a, Exact b, Exact, const Round &) { return b - a; }},
    {"v_mul_f16 v8, v2, v4", OperandType::f16, OperandType::f16,
     [](Exact a, Exact b, Exact, const Round &) { return a * b; }},
    {"v_fma_legacy_f16 v8, v2, v4, v6", OperandType::f16, OperandType::f16,
     [](Exact a, Exact b, Exact c, const Round &) { return a * b + c; }},
    {"v_mad_legacy_f16 v8, v2, v4, v6", OperandType::f16, OperandType::f16,
     [](Exact a, Exact b, Exact c, const Round &round) { return round(a * b) + c; }},
    {"v_mov_b32 v8, v6\n v_mac_f16 v8, v2, v4", OperandType::f16, OperandType::f16,
     [](Exact a, Exact b, Exact c, const Round &round) { return round(a * b) + c; }},
    {"v_madak_f16 v8, v2, v4, 0x4248", OperandType::f16, OperandType::f16,
     [](Exact a, Exact b, Exact, const Round &round) { return round(a * b) + Exact(3.140625); }},
    {"v_pk_mul_f16 v8, v2, v4", OperandType::f16, OperandType::f16,
     [](Exact a, Exact b, Exact, const Round &) { return a * b; }},
    {"v_pk_fma_f16 v8, v2, v4, v6", OperandType::f16, OperandType::f16,
     [](Exact a, Exact b, Exact c, const Round &) { return a * b + c; }},
    {"v_ldexp_f16 v8, v2, 15", OperandType::f16, OperandType::f16,
     [](Exact a, Exact, Exact, const Round &) { return a * 32768; }},
    {"v_mov_b32 v7, 0xffffffec\n v_ldexp_f16 v8, v2, v7", OperandType::f16, OperandType::f16,
     [](Exact a, Exact, Exact, const Round &) { return a * Exact(0x1p-20); }},
    {"v_cvt_f16_f32 v8, v2", OperandType::f32, OperandType::f16,
     [](Exact a, Exact, Exact, const Round &) { return a; }},
};

//===--- Every row --------------------------------------------------------------------------------------===//

/// Rows that round by MODE; the manual's list of those that do not is longer.
bool rounds(std::string_view name) {
  for (std::string_view kind :
       {"v_add_f",       "v_sub_f",       "v_subrev_f",     "v_mul_f",       "v_mul_legacy_f",
        "v_fma",         "v_mad_f",       "v_mad_legacy_f", "v_mac_f",       "v_madmk",
        "v_madak",       "v_ldexp",       "v_cvt_f32_f64",  "v_cvt_f32_i32", "v_cvt_f32_u32",
        "v_cvt_f16_f32", "v_cvt_f16_i16", "v_cvt_f16_u16",  "v_pk_add_f",    "v_pk_mul_f",
        "v_pk_fma",      "v_div_fmas"})
    if (name.starts_with(kind)) return true;
  return false;
}

/// Rows that move bits or have their own rules.
bool ignores_denormal_mode(std::string_view name) {
  return name == "v_cndmask_b32" || name.starts_with("v_cmp_class") || name.starts_with("v_dot2") ||
         name == "v_pk_mov_b32";
}

struct Width {
  uint32_t mantissa;
  uint64_t infinity;
};
Width width_of(OperandType type) {
  if (type == OperandType::f64) return {52, 0x7ff0000000000000};
  if (type == OperandType::f16 || type == OperandType::packed_f16) return {10, 0x7c00};
  return {23, 0x7f800000};
}

/// Each number of a register (pair) of a type, through `change`.
void change_numbers(TestWave &t, uint32_t first, OperandType type,
                    const std::function<uint64_t(uint64_t)> &change) {
  for (uint32_t i = 0; i < 64; ++i) {
    uint32_t &low = t.v(first, i);
    if (type == OperandType::f64) {
      const uint64_t x = change(t.vv(first, i));
      low = uint32_t(x);
      t.v(first + 1, i) = uint32_t(x >> 32);
    } else if (type == OperandType::f16) {
      low = (low & 0xffff0000) | uint32_t(change(low & 0xffff));
    } else if (type == OperandType::packed_f16) {
      low = uint32_t(change(low & 0xffff)) | uint32_t(change(low >> 16)) << 16;
    } else {
      low = uint32_t(change(low));
      if (type == OperandType::packed_f32) t.v(first + 1, i) = uint32_t(change(t.v(first + 1, i)));
    }
  }
}

uint64_t flushed(uint64_t bits, OperandType type) {
  const Width width = width_of(type);
  const bool subnormal = (bits & width.infinity) == 0;
  return subnormal ? bits & (width.infinity + (uint64_t(1) << width.mantissa)) : bits;
}

double number(uint64_t bits, OperandType type) {
  if (type == OperandType::f64) return std::bit_cast<double>(bits);
  if (type == OperandType::f16 || type == OperandType::packed_f16) return half_value(uint32_t(bits));
  return double(std::bit_cast<float>(uint32_t(bits)));
}
uint64_t bits_of(double x, OperandType type) {
  if (type == OperandType::f64) return std::bit_cast<uint64_t>(x);
  if (type == OperandType::f16 || type == OperandType::packed_f16) return support::f16_from_double(x);
  return std::bit_cast<uint32_t>(float(x));
}
bool nan_bits(uint64_t bits, OperandType type) {
  const Width width = width_of(type);
  return (bits & (width.infinity | ((uint64_t(1) << width.mantissa) - 1))) > width.infinity;
}

bool is_single(OperandType type) {
  return type == OperandType::f32 || type == OperandType::packed_f32;
}

uint32_t interesting(std::mt19937 &random, OperandType type) {
  const uint32_t kind = uint32_t(random() % 8);
  const uint32_t any = uint32_t(random());
  if (type == OperandType::f16 || type == OperandType::packed_f16) {
    constexpr uint32_t halves[] = {0,      0x8000, 1,      0x83ff, 0x400,  0x3c00,
                                   0xbc00, 0x7bff, 0xfbff, 0x7c00, 0xfc00, 0x7e00};
    auto one = [&] {
      return kind < 3 ? halves[random() % 12] : kind < 5 ? random() & 0x83ff : random() & 0xbfff;
    };
    const uint32_t low = uint32_t(one());
    return low | uint32_t(one()) << 16;
  }
  if (is_single(type)) {
    constexpr uint32_t singles[] = {0,          0x80000000, 1,          0x807fffff, 0x00800000, 0x3f800000,
                                    0xbf800000, 0x7f7fffff, 0x7f800000, 0xff800000, 0x7fc00000, 0x42000000};
    if (kind < 3) return singles[random() % 12];
    if (kind < 5) return any & 0x807fffff;
    return 0x3e000000 + (any & 0x81ffffff);
  }
  return any;
}

/// A register of the type, or both of a pair.
void fill_operand(TestWave &t, uint32_t first, OperandType type, std::mt19937 &random) {
  for (uint32_t i = 0; i < 64; ++i)
    for (uint32_t r = 0; r < rows_of(type); ++r)
      t.v(first + r, i) = interesting(random, type);
  if (type != OperandType::f64) return;
  constexpr uint64_t doubles[] = {0,
                                  1,
                                  0x800fffffffffffff,
                                  0x0010000000000000,
                                  0x3ff0000000000000,
                                  0xbff8000000000000,
                                  0x7fefffffffffffff,
                                  0x7ff0000000000000,
                                  0x7ff8000000000000};
  for (uint32_t i = 0; i < 64; ++i) {
    const uint64_t any = uint64_t(random()) << 32 | random();
    const uint64_t x = i % 3 == 0   ? doubles[random() % 9]
                       : i % 3 == 1 ? any & 0x800fffffffffffff
                                    : (any & 0x801fffffffffffff) + 0x3fe0000000000000;
    t.v(first, i) = uint32_t(x);
    t.v(first + 1, i) = uint32_t(x >> 32);
  }
}

void fill_row(TestWave &t, const ValuRow &row, std::mt19937 &random) {
  for (uint32_t r = 0; r < 24; ++r)
    t.fill_lanes(r, [&](uint32_t) { return uint32_t(random()); });
  for (uint32_t k = 0; k < written_sources(row); ++k) {
    fill_operand(t, row_source(k), row.source_types[k], random);
    // Whole numbers that are shifts or exponents.
    if (row.source_types[k] == OperandType::b32 || row.source_types[k] == OperandType::b16)
      if (row.mnemonic.starts_with("v_ldexp"))
        t.fill_lanes(row_source(k), [&](uint32_t) { return uint32_t(int32_t(random() % 41) - 20); });
  }
  if (row.form == ValuForm::accumulate)
    fill_operand(t, row_destination, row.source_types[row.sources - 1], random);
  t.wave.set_pair(emulator::sgpr_vcc, 0x0123456789abcdef);
}

void copy_registers(TestWave &to, TestWave &from) {
  for (uint32_t r = 0; r < 24; ++r)
    for (uint32_t i = 0; i < 64; ++i)
      to.v(r, i) = from.v(r, i);
  to.wave.set_pair(emulator::sgpr_vcc, from.vcc());
}

struct RowCode {
  const ValuRow *row;
  TestWave::Prepared code;
  std::string text;
};

/// The rows that do arithmetic on floats, with a modifier if the assembler takes it.
std::vector<RowCode> float_rows(TestWave &t, const std::string &modifier = "") {
  std::vector<const ValuRow *> rows;
  std::vector<std::string> lines;
  for (const ValuRow *row : rows_of_lanes()) {
    if (row->mnemonic.starts_with("v_fma_mix")) continue; // its operands are f32 or f16
    bool floats = is_float(row->result_type);
    for (uint32_t k = 0; k < row->sources; ++k)
      floats = floats || is_float(row->source_types[k]);
    if (!floats || row->form == ValuForm::keeps_part) continue;
    rows.push_back(row);
    lines.push_back(row_text(*row, {"", {}, modifier}));
  }
  const std::vector<std::string> good = assembling_lines(lines);
  std::string source;
  for (const std::string &line : good)
    source += line + "\n";
  const auto code = t.prepare(source);
  std::vector<RowCode> result;
  for (size_t i = 0, at = 0; i < lines.size() && at < good.size(); ++i)
    if (lines[i] == good[at]) {
      if (code[at].refusal.empty()) result.push_back({rows[i], code[at], lines[i]});
      ++at;
    }
  return result;
}

/// All registers and VCC; NaNs of the result are equal.
std::string difference(TestWave &got, TestWave &expected, const ValuRow &row) {
  if (row.mask_out && got.vcc() != expected.vcc()) return "the mask differs";
  if (row.result_type == OperandType::mask) return "";
  if (is_float(row.result_type))
    for (TestWave *t : {&got, &expected})
      change_numbers(*t, row_destination, row.result_type, [&](uint64_t x) {
        const Width width = width_of(row.result_type);
        return nan_bits(x, row.result_type) ? width.infinity | 1 : x;
      });
  for (uint32_t r = 0; r < rows_of(row.result_type); ++r)
    for (uint32_t i = 0; i < 64; ++i)
      if (got.v(row_destination + r, i) != expected.v(row_destination + r, i)) {
        char text[160];
        std::snprintf(text, sizeof text, "lane %u: %08x, not %08x, of %08x %08x %08x", i,
                      got.v(row_destination + r, i), expected.v(row_destination + r, i),
                      got.v(row_source(0), i), got.v(row_source(1), i), got.v(row_source(2), i));
        return text;
      }
  return "";
}

/// Runs every row in `mode`, and plain with operands and result changed; `after` may also see the operands.
void check_rows(const Mode &mode, const Mode &plain_mode, const std::string &modifier,
                const std::function<bool(const ValuRow &)> &wanted,
                const std::function<void(const ValuRow &, TestWave &)> &before,
                const std::function<void(const ValuRow &, TestWave &)> &after, size_t at_least) {
  for (emulator::SimdPath path : simd_paths()) {
    TestWave t(path), plain(path);
    t.wave.set_mode(mode.bits());
    plain.wave.set_mode(plain_mode.bits());
    const std::vector<RowCode> rows = float_rows(t, modifier), plain_rows = float_rows(plain);
    std::map<const ValuRow *, const RowCode *> plain_of;
    for (const RowCode &row : plain_rows)
      plain_of[row.row] = &row;
    std::mt19937 random(11);
    size_t count = 0;
    for (const RowCode &row : rows) {
      if (!wanted(*row.row)) continue;
      ++count;
      for (uint32_t round = 0; round < 6; ++round) {
        fill_row(t, *row.row, random);
        copy_registers(plain, t);
        before(*row.row, plain);
        t.run(row.code);
        plain.run(plain_of.at(row.row)->code);
        after(*row.row, plain);
        const std::string wrong = difference(t, plain, *row.row);
        if (wrong.empty()) continue;
        FAIL_CHECK(row.text << " with MODE " << std::hex << mode.bits() << ": " << wrong);
        break;
      }
    }
    CHECK(count >= at_least);
  }
}

void unchanged(const ValuRow &, TestWave &) {}
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

TEST_CASE("a fused half is rounded once, however small the part that decides", "[isa][valu][mode]") {
  // 99 * 331 is 2^15 + 1: with the factors at 2^-8 the product is 2^-16 above one half, which no float next
  // to 1024 can distinguish from it, and which decides how 1024.5 is rounded.
  for (emulator::SimdPath path : simd_paths()) {
    TestWave t(path);
    const auto code = t.prepare("v_fma_f16 v8, v2, v4, v6\n v_pk_fma_f16 v9, v2, v4, v6");
    std::mt19937 random(11);
    auto half = [](double x) { return uint32_t(support::f16_from_double(x)); };
    uint32_t wrong = 0;
    for (uint32_t mode = 0; mode < 4; ++mode) {
      t.wave.set_mode(Mode{.round_16_64 = mode}.bits());
      for (uint32_t round = 0; round < 64; ++round) {
        for (uint32_t lane = 0; lane < 64; ++lane) {
          const double sign = lane % 2 == 0 ? 1 : -1;
          const bool crafted = lane < 8;
          t.v(2, lane) = crafted ? half(sign * 99.0 / 256) : random() & 0xffff;
          t.v(4, lane) = crafted ? half(331.0 / 256) : random() & 0xffff;
          t.v(6, lane) = crafted ? half(lane % 4 < 2 ? 1024 : -1025) : random() & 0xffff;
        }
        t.run(code);
        for (uint32_t lane = 0; lane < 64; ++lane) {
          const double a = half_value(t.v(2, lane)), b = half_value(t.v(4, lane)),
                       c = half_value(t.v(6, lane));
          if (!std::isfinite(a) || !std::isfinite(b) || !std::isfinite(c)) continue;
          const double expected = rounded(Exact(a) * Exact(b) + Exact(c), half_shape, mode);
          wrong += half_value(t.v(8, lane) & 0xffff) != expected;
          wrong += half_value(t.v(9, lane) & 0xffff) != expected;
        }
      }
    }
    CHECK(wrong == 0);
  }
}

TEST_CASE("results are rounded as MODE says, for each width apart", "[isa][mode]") {
  for (emulator::SimdPath path : simd_paths())
    for (const RoundingCase &c : rounding_cases) {
      TestWave t(path);
      const auto code = t.prepare(c.text);
      const bool single = c.result == OperandType::f32;
      const Shape &shape = single ? single_shape : c.result == OperandType::f64 ? double_shape : half_shape;
      const Shape &input = c.sources == OperandType::f32   ? single_shape
                           : c.sources == OperandType::f64 ? double_shape
                                                           : half_shape;
      std::mt19937_64 random(5);
      uint32_t wrong = 0;
      for (uint32_t mode = 0; mode < 4; ++mode) {
        // The other width's mode must not matter.
        const uint32_t other = (mode + 1) % 4;
        t.wave.set_mode(Mode{.round_32 = single ? mode : other, .round_16_64 = single ? other : mode}.bits());
        for (uint32_t round = 0; round < 8; ++round) {
          for (uint32_t r = 2; r <= 6; r += 2)
            for (uint32_t lane = 0; lane < 64; ++lane) {
              const double x = moderate(random, input);
              if (c.sources == OperandType::i64) {
                t.v(r, lane) = uint32_t(random());
              } else {
                const uint64_t bits = bits_of(x, c.sources);
                t.v(r, lane) = uint32_t(bits);
                t.v(r + 1, lane) = uint32_t(bits >> 32);
              }
            }
          t.run(code);
          for (uint32_t lane = 0; lane < 64; ++lane) {
            auto value = [&](uint32_t r) -> Exact {
              if (c.sources == OperandType::i64) return Exact(int32_t(t.v(r, lane)));
              return Exact(number(c.sources == OperandType::f64 ? t.vv(r, lane) : t.v(r, lane), c.sources));
            };
            const double expected = rounded(c.exact(value(2), value(4), value(6),
                                                    [&](Exact x) { return Exact(rounded(x, shape, mode)); }),
                                            shape, mode);
            const uint64_t bits = c.result == OperandType::f64
                                      ? t.vv(8, lane)
                                      : t.v(8, lane) & (c.result == OperandType::f16 ? 0xffffu : ~0u);
            const double got = number(bits, c.result);
            if (got == expected) continue;
            if (wrong == 0)
              UNSCOPED_INFO(c.text << " in mode " << mode << ": " << got << ", not " << expected);
            ++wrong;
          }
        }
      }
      CHECK(wrong == 0);
    }
}

TEST_CASE("what is not rounded by MODE is the same in all modes", "[isa][mode]") {
  for (uint32_t mode = 1; mode < 4; ++mode)
    check_rows(
        {.round_32 = mode, .round_16_64 = mode}, {}, "",
        [](const ValuRow &row) { return !rounds(row.mnemonic); }, unchanged, unchanged, 150);
}

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

TEST_CASE("CLAMP, and what it makes of NaN by DX10_CLAMP", "[isa][mode]") {
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

TEST_CASE("min and max: signalling NaNs count with IEEE only, quiet ones never, and -0 is below 0",
          "[isa][mode]") {
  struct Type {
    OperandType type;
    const char *name;
    uint32_t registers;
    std::vector<uint64_t> values;
  };
  const Type types[] = {
      {OperandType::f32,
       "f32",
       1,
       {0, 0x80000000, 0x3f800000, 0xbf800000, 0x7f800000, 0xff800000, 0x7fc00001, 0xffd00000, 0x7f800001,
        0xffa00000, 1, 0x80000001}},
      {OperandType::f16,
       "f16",
       1,
       {0, 0x8000, 0x3c00, 0xbc00, 0x7c00, 0xfc00, 0x7e01, 0xff00, 0x7c01, 0xfd00, 1, 0x8001}},
      {OperandType::f64,
       "f64",
       2,
       {0, 0x8000000000000000, 0x3ff0000000000000, 0xbff0000000000000, 0x7ff0000000000000, 0xfff0000000000000,
        0x7ff8000000000001, 0xfffc000000000000, 0x7ff0000000000001, 0xfff4000000000000, 1,
        0x8000000000000001}},
  };
  for (emulator::SimdPath path : simd_paths())
    for (const Type &type : types)
      for (bool ieee : {true, false}) {
        const uint64_t quiet = uint64_t(1) << (width_of(type.type).mantissa - 1);
        auto is_nan = [&](uint64_t x) { return nan_bits(x, type.type); };
        auto signals = [&](uint64_t x) { return is_nan(x) && (x & quiet) == 0; };
        auto extreme = [&](uint64_t a, uint64_t b, bool largest) {
          if (ieee && signals(a)) return a | quiet;
          if (ieee && signals(b)) return b | quiet;
          if (is_nan(a)) return b;
          if (is_nan(b)) return a;
          const double x = number(a, type.type), y = number(b, type.type);
          const bool a_below = x < y || (x == y && std::signbit(x));
          return a_below == largest ? b : a;
        };
        auto median = [&](uint64_t a, uint64_t b, uint64_t c) {
          if (is_nan(a) || is_nan(b) || is_nan(c)) return extreme(extreme(a, b, false), c, false);
          uint64_t sorted[] = {a, b, c};
          std::sort(sorted, sorted + 3,
                    [&](uint64_t x, uint64_t y) { return extreme(x, y, false) == x && x != y; });
          return sorted[1];
        };
        TestWave t(path);
        t.wave.set_mode(Mode{.ieee = ieee}.bits());
        const bool wide = type.registers == 2;
        auto reg = [&](uint32_t first) { return registers_text(first, type.registers); };
        const std::string name = type.name;
        std::string source = "v_min_" + name + " " + reg(8) + ", " + reg(2) + ", " + reg(4) + "\nv_max_" +
                             name + " " + reg(10) + ", " + reg(2) + ", " + reg(4) + "\n";
        for (const char *three : {"min3", "max3", "med3"})
          if (!wide)
            source += std::string("v_") + three + "_" + name + " v" +
                      (three[1] == 'i'   ? "12"
                       : three[1] == 'a' ? "14"
                                         : "16") +
                      ", v2, v4, v6\n";
        const auto code = t.prepare(source);
        const size_t count = type.values.size();
        uint32_t wrong = 0;
        for (size_t start = 0; start < count * count * count; start += 64) {
          for (uint32_t lane = 0; lane < 64; ++lane) {
            const size_t at = start + lane;
            const uint64_t operands[] = {type.values[at % count], type.values[at / count % count],
                                         type.values[at / count / count % count]};
            for (uint32_t k = 0; k < 3; ++k) {
              t.v(2 + 2 * k, lane) = uint32_t(operands[k]);
              t.v(3 + 2 * k, lane) = uint32_t(operands[k] >> 32);
            }
          }
          t.run(code);
          for (uint32_t lane = 0; lane < 64; ++lane) {
            auto value = [&](uint32_t r) -> uint64_t { return wide ? t.vv(r, lane) : t.v(r, lane); };
            const uint64_t a = value(2), b = value(4), c = value(6);
            auto compare = [&](uint32_t r, uint64_t expected) {
              const bool right = is_nan(expected) ? is_nan(value(r)) : value(r) == expected;
              if (!right && wrong == 0)
                UNSCOPED_INFO(name << " v" << r << std::hex << " of " << a << " " << b << " " << c << ": "
                                   << value(r) << ", not " << expected);
              wrong += !right;
            };
            compare(8, extreme(a, b, false));
            compare(10, extreme(a, b, true));
            if (wide) continue;
            compare(12, extreme(extreme(a, b, false), c, false));
            compare(14, extreme(extreme(a, b, true), c, true));
            compare(16, median(a, b, c));
          }
        }
        CHECK(wrong == 0);
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

TEST_CASE("mixed fma: MODE's rules by the width of each operand", "[isa][mode]") {
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
  // Fused: a rounded product would cancel. 1 + 2^-23 squared, less what an f32 holds of it.
  t.wave.set_mode(Mode{}.bits());
  t.fill(1, 0x1.000002p0f);
  t.fill(3, -0x1.000004p0f);
  t.run("v_fma_mix_f32 v4, v1, v1, v3");
  CHECK(t.f(4) == 0x1p-46f);
  // The largest half, or infinity.
  t.fill(1, 70000.0f);
  t.fill(4, 0u);
  t.run("v_fma_mixlo_f16 v4, v1, v2, 0\n v_fma_mixhi_f16 v4, -v1, v2, 0");
  CHECK(t.v(4) == 0xfc007c00);
  t.wave.set_mode(Mode{.fp16_overflow = true}.bits());
  t.run("v_fma_mixlo_f16 v4, v1, v2, 0\n v_fma_mixhi_f16 v4, -v1, v2, 0");
  CHECK(t.v(4) == 0xfbff7bff);
  t.fill(1, 1.0001f);
  t.wave.set_mode(Mode{.round_16_64 = 1}.bits());
  t.run("v_fma_mixlo_f16 v4, v1, v2, 0");
  CHECK((t.v(4) & 0xffff) == 0x3c01);
}

} // namespace sluice::test

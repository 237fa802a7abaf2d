//===- mode_rows.cpp - numbers of each type, and rows that are run in two ways --------------------------===//
#include "isa/mode_rows.h"

#include <catch2/catch.hpp>

#include <map>
#include <random>

namespace sluice::test {

Width width_of(OperandType type) {
  if (type == OperandType::f64) return {52, 0x7ff0000000000000};
  if (type == OperandType::f16 || type == OperandType::packed_f16) return {10, 0x7c00};
  return {23, 0x7f800000};
}

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
  if (type == OperandType::f16 || type == OperandType::packed_f16)
    return double(support::f16_to_float(uint16_t(bits)));
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

namespace {

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

} // namespace

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

} // namespace sluice::test

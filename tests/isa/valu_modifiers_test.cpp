//===- valu_modifiers_test.cpp - every row with every modifier ------------------------------------------===//
//
// A modifier changes the operands of an instruction or its result, never the instruction itself. So each row
// is run twice: with the modifier, and plain on operands that the test has changed by the manual's rule for
// one lane; another such rule then changes the result. The assembler decides which forms are legal.
//
//===----------------------------------------------------------------------------------------------------===//
#include <catch2/catch.hpp>

#include <map>
#include <optional>
#include <random>

#include "isa/row_text.h"
#include "isa/wave_fixture.h"

namespace sluice::test {

namespace {

using emulator::OperandType;
using emulator::ValuForm;
using emulator::ValuRow;

//===--- Rules for one lane -----------------------------------------------------------------------------===//

struct SdwaSelect {
  const char *name;
  uint32_t shift, width;
};
constexpr SdwaSelect sdwa_selects[] = {{"BYTE_0", 0, 8},  {"BYTE_1", 8, 8},  {"BYTE_2", 16, 8},
                                       {"BYTE_3", 24, 8}, {"WORD_0", 0, 16}, {"WORD_1", 16, 16},
                                       {"DWORD", 0, 32}};

uint32_t extract(uint32_t value, const SdwaSelect &select, bool sign) {
  if (select.width == 32) return value;
  const uint32_t part = value >> select.shift & ((1u << select.width) - 1);
  const bool negative = part >> (select.width - 1) & 1;
  return sign && negative ? part | ~((1u << select.width) - 1) : part;
}

struct DppRule {
  const char *name;
  std::optional<uint32_t> (*source)(uint32_t lane);
};
using Lane = std::optional<uint32_t>;
const DppRule dpp_rules[] = {
    {"quad_perm:[3,0,2,1]",
     [](uint32_t i) -> Lane {
       constexpr uint32_t order[] = {3, 0, 2, 1};
       return i / 4 * 4 + order[i % 4];
     }},
    {"row_shl:3", [](uint32_t i) -> Lane { return i % 16 < 13 ? Lane(i + 3) : std::nullopt; }},
    {"row_shr:15", [](uint32_t i) -> Lane { return i % 16 == 15 ? Lane(i - 15) : std::nullopt; }},
    {"row_ror:6", [](uint32_t i) -> Lane { return i / 16 * 16 + (i + 10) % 16; }},
    {"wave_shl:1", [](uint32_t i) -> Lane { return i == 63 ? std::nullopt : Lane(i + 1); }},
    {"wave_rol:1", [](uint32_t i) -> Lane { return i == 63 ? 0 : i + 1; }},
    {"wave_shr:1", [](uint32_t i) -> Lane { return i == 0 ? std::nullopt : Lane(i - 1); }},
    {"wave_ror:1", [](uint32_t i) -> Lane { return i == 0 ? 63 : i - 1; }},
    {"row_mirror", [](uint32_t i) -> Lane { return i / 16 * 16 + 15 - i % 16; }},
    {"row_half_mirror", [](uint32_t i) -> Lane { return i / 8 * 8 + 7 - i % 8; }},
    {"row_bcast:15", [](uint32_t i) -> Lane { return i < 16 ? std::nullopt : Lane(i / 16 * 16 - 1); }},
    {"row_bcast:31", [](uint32_t i) -> Lane { return i < 32 ? std::nullopt : Lane(31); }},
    {"row_newbcast:9", [](uint32_t i) -> Lane { return i / 16 * 16 + 9; }},
};

//===--- Forms ------------------------------------------------------------------------------------------===//

struct Form {
  const ValuRow *row;
  std::string text;
  uint32_t negate = 0, absolute = 0; // a bit per source
  uint32_t half = 0;                 // op_sel, bit 3 the destination
  // Packed: bits per source.
  uint32_t low_from_high = 0, high_from_high = 7, negate_low = 0, negate_high = 0;
  const SdwaSelect *sdwa[2] = {}; // of sources
  bool sdwa_sign[2] = {};
  const SdwaSelect *sdwa_result = nullptr;
  uint32_t sdwa_unused = 0; // 0 pad, 1 sign, 2 preserve
  const DppRule *dpp = nullptr;
  bool dpp_zero = false;
  uint32_t row_mask = 15, bank_mask = 15;
  bool in_place = false; // the destination is source 0
};

bool is_packed(OperandType type) {
  return type == OperandType::packed_b16 || type == OperandType::packed_f16 ||
         type == OperandType::packed_f32;
}

bool any_packed(const ValuRow &row) {
  for (uint32_t k = 0; k < row.sources; ++k)
    if (is_packed(row.source_types[k])) return true;
  return false;
}

std::string bit_list(const char *name, uint32_t bits, uint32_t count) {
  std::string text = std::string(" ") + name + ":[";
  for (uint32_t i = 0; i < count; ++i)
    text += std::string(i == 0 ? "" : ",") + (bits >> i & 1 ? "1" : "0");
  return text + "]";
}

void add_sign_forms(std::vector<Form> &forms, const ValuRow &row, const std::string &ending) {
  for (uint32_t k = 0; k < written_sources(row); ++k)
    for (const char *before : {"-", "|", "-|"}) {
      const bool constant = (row.form == ValuForm::fused_constant_1 && k == 1) ||
                            (row.form == ValuForm::fused_constant_2 && k == 2);
      if (constant || !is_float(row.source_types[k]) || is_packed(row.source_types[k])) continue;
      Form form{&row, ""};
      RowForm written{ending, {}, ""};
      written.before[k] = before;
      form.text = row_text(row, written);
      if (before[0] == '-') form.negate = 1u << k;
      if (std::string_view(before).ends_with('|')) form.absolute = 1u << k;
      forms.push_back(form);
    }
}

void add_op_sel_forms(std::vector<Form> &forms, const ValuRow &row) {
  const uint32_t sources = written_sources(row);
  if (row.form == ValuForm::keeps_part || any_packed(row) || row.mnemonic.starts_with("v_fma_mix")) return;
  for (uint32_t bits = 1; bits < 2u << sources; bits += bits == 1 ? 1 : bits / 2 + 1) {
    Form form{&row, row_text(row, {"", {}, bit_list("op_sel", bits, sources + 1)})};
    form.half = (bits & ((1u << sources) - 1)) | (bits >> sources & 1) << 3;
    forms.push_back(form);
  }
}

void add_packed_forms(std::vector<Form> &forms, const ValuRow &row) {
  const uint32_t sources = written_sources(row);
  // The assembler accepts op_sel with v_pk_fmac_f16, which has no room for it.
  if (!any_packed(row) || row.mnemonic == "v_pk_mov_b32" || row.mnemonic == "v_pk_fmac_f16") return;
  const uint32_t all = (1u << sources) - 1;
  for (uint32_t bit = 0; bit < sources; ++bit) {
    const uint32_t one = 1u << bit;
    if (!is_packed(row.source_types[bit])) {
      // f32 with two halves as other operands: only its sign can change.
      Form form{&row, row_text(row, {"", {}, bit_list("neg_lo", one, sources)})};
      form.negate = one;
      forms.push_back(form);
      continue;
    }
    Form select{&row, row_text(row, {"", {}, bit_list("op_sel", one, sources)})};
    select.low_from_high = one;
    Form select_low{&row, row_text(row, {"", {}, bit_list("op_sel_hi", all & ~one, sources)})};
    select_low.high_from_high = 7 & ~one;
    Form low{&row, row_text(row, {"", {}, bit_list("neg_lo", one, sources)})};
    low.negate_low = one;
    Form high{&row, row_text(row, {"", {}, bit_list("neg_hi", one, sources)})};
    high.negate_high = one;
    Form both{&row,
              row_text(row, {"",
                             {},
                             bit_list("op_sel", one, sources) + bit_list("op_sel_hi", all & ~one, sources) +
                                 bit_list("neg_lo", all, sources)})};
    both.low_from_high = one;
    both.high_from_high = 7 & ~one;
    both.negate_low = all;
    for (Form &form : std::vector{select, select_low, low, high, both})
      forms.push_back(form);
  }
}

void add_sdwa_forms(std::vector<Form> &forms, const ValuRow &row, std::mt19937 &random) {
  const uint32_t sources = std::min(written_sources(row), 2u);
  for (uint32_t attempt = 0; attempt < 8; ++attempt) {
    Form form{&row, ""};
    RowForm written{"_sdwa", {}, ""};
    std::string selects;
    for (uint32_t k = 0; k < sources; ++k) {
      form.sdwa[k] = &sdwa_selects[random() % 7];
      selects += std::string(" src") + char('0' + k) + "_sel:" + form.sdwa[k]->name;
      if (attempt % 2 == 0) continue;
      if (is_float(row.source_types[k])) {
        form.negate |= 1u << k;
        written.before[k] = "-";
      } else {
        form.sdwa_sign[k] = true;
        written.before[k] = "sext(";
      }
    }
    if (row.result_type != OperandType::mask) {
      form.sdwa_result = &sdwa_selects[attempt == 0 ? 6 : random() % 7];
      form.sdwa_unused = attempt % 3;
      constexpr const char *unused[] = {"UNUSED_PAD", "UNUSED_SEXT", "UNUSED_PRESERVE"};
      written.modifiers =
          std::string(" dst_sel:") + form.sdwa_result->name + " dst_unused:" + unused[form.sdwa_unused];
    }
    written.modifiers += selects;
    form.text = row_text(row, written);
    // Conversions from fp8 cannot select a part of the destination.
    RowForm shorter = written;
    shorter.modifiers = selects;
    forms.push_back(form);
    if (row.result_type == OperandType::mask) continue;
    form.text = row_text(row, shorter);
    form.sdwa_result = nullptr;
    if (row.mnemonic.starts_with("v_cvt_f32_fp8") || row.mnemonic.starts_with("v_cvt_f32_bf8") ||
        row.mnemonic.starts_with("v_cvt_pk_f32_"))
      forms.push_back(form);
  }
}

void add_dpp_forms(std::vector<Form> &forms, const ValuRow &row, std::mt19937 &random) {
  for (const DppRule &rule : dpp_rules) {
    Form form{&row, ""};
    form.dpp = &rule;
    form.dpp_zero = random() % 2 == 0;
    if (random() % 2 == 0) form.row_mask = random() % 16;
    if (random() % 2 == 0) form.bank_mask = random() % 16;
    RowForm written{"_dpp", {}, ""};
    written.modifiers = std::string(" ") + rule.name + " row_mask:" + std::to_string(form.row_mask) +
                        " bank_mask:" + std::to_string(form.bank_mask) +
                        (form.dpp_zero ? " bound_ctrl:0" : "");
    if (random() % 2 == 0 && is_float(row.source_types[0])) {
      form.negate = 1;
      written.before[0] = "-";
      if (written_sources(row) > 1 && is_float(row.source_types[1])) {
        form.absolute = 2;
        written.before[1] = "|";
      }
    }
    form.text = row_text(row, written);
    forms.push_back(form);
    const bool same_width = row.result_type != OperandType::mask &&
                            rows_of(row.result_type) == rows_of(row.source_types[0]) &&
                            row.form != ValuForm::accumulate;
    if (!same_width || random() % 3 != 0) continue;
    const std::string destination = registers_text(row_destination, rows_of(row.result_type));
    const size_t at = form.text.find(" " + destination + ",");
    form.text.replace(at + 1, destination.size(), registers_text(row_source(0), rows_of(row.result_type)));
    form.in_place = true;
    forms.push_back(form);
  }
}

//===--- One form on random registers -------------------------------------------------------------------===//

constexpr uint32_t used_registers = 24;

uint32_t random_register(std::mt19937 &random) {
  constexpr uint32_t edges[] = {0,          0x80000000, 0x3f800000, 0xbf800000, 0x7f800000, 0x3c003c00,
                                0xbc004400, 0x00010001, 0x7fffffff, 0x40490fdb, 0x000000ff, 0x7c00fc00};
  const uint32_t any = uint32_t(random());
  if (any % 4 == 0) return edges[random() % std::size(edges)];
  // Small floats and small halves, so that results differ.
  if (any % 4 == 1) return 0x3f000000 + (uint32_t(random()) & 0x81ffffff);
  if (any % 4 == 2) return 0x38003800 + (uint32_t(random()) & 0x8fff8fff);
  return uint32_t(random());
}

void change_sources(const Form &form, TestWave &t, uint64_t exec, uint64_t &without_source) {
  for (uint32_t k = 0; k < written_sources(*form.row); ++k) {
    const OperandType type = form.row->source_types[k];
    const uint32_t first = row_source(k);
    const uint32_t bit = 1u << k;
    if (form.dpp && k == 0)
      for (uint32_t r = 0; r < rows_of(type); ++r) {
        uint32_t old[64];
        for (uint32_t i = 0; i < 64; ++i)
          old[i] = t.v(first + r, i);
        for (uint32_t i = 0; i < 64; ++i) {
          const Lane from = form.dpp->source(i);
          const bool valid = from && (exec >> *from & 1) != 0;
          t.v(first + r, i) = valid ? old[*from] : 0;
          const bool enabled =
              (form.row_mask >> i / 16 & 1) != 0 && (form.bank_mask >> (i % 16) / 4 & 1) != 0;
          if (!enabled || (!valid && !form.dpp_zero)) without_source |= uint64_t(1) << i;
        }
      }
    for (uint32_t i = 0; i < 64; ++i) {
      uint32_t &low = t.v(first, i);
      uint32_t &last = t.v(first + rows_of(type) - 1, i);
      if (k < 2 && form.sdwa[k]) low = extract(low, *form.sdwa[k], form.sdwa_sign[k]);
      if ((form.half & bit) != 0) low >>= 16;
      const uint32_t sign = type == OperandType::f16 ? 0x8000 : 0x80000000;
      if ((form.absolute & bit) != 0) last &= ~sign;
      if ((form.negate & bit) != 0) last ^= sign;
      if (type == OperandType::packed_f32) {
        const uint32_t pair[2] = {low, last};
        low = pair[(form.low_from_high & bit) != 0] ^ ((form.negate_low & bit) != 0 ? sign : 0);
        last = pair[(form.high_from_high & bit) != 0] ^ ((form.negate_high & bit) != 0 ? sign : 0);
      } else if (is_packed(type)) {
        const uint32_t pair[2] = {low & 0xffff, low >> 16};
        low = (pair[(form.low_from_high & bit) != 0] ^ ((form.negate_low & bit) != 0 ? 0x8000 : 0)) |
              (pair[(form.high_from_high & bit) != 0] ^ ((form.negate_high & bit) != 0 ? 0x8000 : 0)) << 16;
      }
    }
  }
}

uint32_t place_result(const Form &form, uint32_t result, uint32_t old) {
  if ((form.half & 8) != 0) return result << 16 | (old & 0xffff);
  if (!form.sdwa_result || form.sdwa_result->width == 32) return result;
  const SdwaSelect &select = *form.sdwa_result;
  const uint32_t mask = (1u << select.width) - 1;
  const uint32_t part = (result & mask) << select.shift;
  if (form.sdwa_unused == 2) return (old & ~(mask << select.shift)) | part;
  const bool negative = form.sdwa_unused == 1 && (result >> (select.width - 1) & 1) != 0;
  const uint32_t above = uint32_t(~uint64_t(0) << (select.shift + select.width));
  return part | (negative ? above : 0);
}

/// Empty if the form works as it should.
std::string check_form(const Form &form, TestWave &modified, TestWave &plain, const TestWave::Prepared &with,
                       const TestWave::Prepared &without, std::mt19937 &random) {
  const ValuRow &row = *form.row;
  const uint64_t exec = (uint64_t(random()) << 32 | random()) | (random() % 2 == 0 ? ~uint64_t(0) : 0);
  const uint64_t vcc = uint64_t(random()) << 32 | random();
  std::vector<uint32_t> start(used_registers * 64);
  for (uint32_t r = 0; r < used_registers; ++r)
    for (uint32_t i = 0; i < 64; ++i)
      start[r * 64 + i] = modified.v(r, i) = plain.v(r, i) = random_register(random);
  for (TestWave *t : {&modified, &plain})
    t->wave.set_pair(emulator::sgpr_vcc, vcc);
  uint64_t without_source = 0;
  change_sources(form, plain, exec, without_source);
  modified.wave.set_exec(exec);
  modified.run(with);
  plain.run(without);

  const uint64_t active = exec & ~without_source;
  if (row.mask_out && modified.vcc() != (plain.vcc() & active)) return "the mask differs";
  if (row.result_type == OperandType::mask) return "";
  const uint32_t destination = form.in_place ? row_source(0) : row_destination;
  for (uint32_t r = 0; r < used_registers; ++r)
    for (uint32_t i = 0; i < 64; ++i) {
      const uint32_t old = start[r * 64 + i];
      const uint32_t part = r - destination;
      const bool written = r >= destination && part < rows_of(row.result_type) && (active >> i & 1) != 0;
      const uint32_t expected = written ? place_result(form, plain.v(row_destination + part, i), old) : old;
      if (modified.v(r, i) == expected) continue;
      char text[160];
      std::snprintf(text, sizeof text, "v%u lane %u: %08x, not %08x (before: %08x)", r, i, modified.v(r, i),
                    expected, old);
      return text;
    }
  return "";
}

/// Forms that the assembler accepts and the manual gives no meaning.
bool meaningless(const Form &form) {
  const std::string name = plain_mnemonic(*form.row);
  const bool whole_result = rows_of(form.row->result_type) == 1 &&
                            form.row->result_type != OperandType::f16 &&
                            form.row->result_type != OperandType::b16;
  if (name == "v_pk_fmac_f16" || name == "v_dot2c_f32_f16")
    return (form.negate | form.absolute | form.low_from_high | form.negate_low | form.negate_high) != 0 ||
           form.high_from_high != 7;
  if (name == "v_pack_b32_f16") return (form.half & 8) != 0;
  if (name == "v_alignbit_b32" || name == "v_alignbyte_b32") return form.half != 0;
  if (name == "v_mad_u32_u16" || name == "v_mad_i32_i16") return (form.half & 12) != 0;
  if (name.starts_with("v_cvt_pknorm_") && name.ends_with("_f16"))
    return whole_result && (form.half & 8) != 0;
  return form.text.ends_with(" clamp") || form.text.find(" clamp ") != std::string::npos;
}

void check_forms(const std::vector<Form> &candidates, size_t at_least) {
  std::vector<std::string> lines;
  for (const Form &form : candidates)
    lines.push_back(form.text);
  std::map<std::string, const Form *> by_text;
  for (const Form &form : candidates)
    by_text[form.text] = &form;
  const std::vector<std::string> good = assembling_lines(lines);
  std::string source, plain_source;
  for (const std::string &line : good) {
    source += line + "\n";
    plain_source += row_text(*by_text[line]->row, {}) + "\n";
  }
  for (emulator::SimdPath path : simd_paths()) {
    TestWave modified(path), plain(path);
    const auto with = modified.prepare(source);
    const auto without = plain.prepare(plain_source);
    REQUIRE(with.size() == good.size());
    REQUIRE(without.size() == good.size());
    std::mt19937 random(7);
    size_t run = 0;
    for (size_t i = 0; i < good.size(); ++i) {
      const Form &form = *by_text[good[i]];
      if (!with[i].refusal.empty()) {
        if (!meaningless(form)) FAIL_CHECK(good[i] << ": refused, " << with[i].refusal);
        continue;
      }
      const std::string wrong = check_form(form, modified, plain, with[i], without[i], random);
      if (!wrong.empty()) FAIL_CHECK(good[i] << ": " << wrong);
      ++run;
    }
    CHECK(run >= at_least);
  }
}

} // namespace

TEST_CASE("every row negates and takes absolute values", "[isa][modifiers]") {
  std::vector<Form> forms;
  for (const ValuRow *row : rows_of_lanes()) {
    add_sign_forms(forms, *row, "");
    add_sign_forms(forms, *row, "_e64");
  }
  check_forms(forms, 600);
}

TEST_CASE("every row of 16 bits chooses halves", "[isa][modifiers]") {
  std::vector<Form> forms;
  for (const ValuRow *row : rows_of_lanes())
    add_op_sel_forms(forms, *row);
  check_forms(forms, 80);
}

TEST_CASE("every packed row chooses and negates halves", "[isa][modifiers]") {
  std::vector<Form> forms;
  for (const ValuRow *row : rows_of_lanes())
    add_packed_forms(forms, *row);
  check_forms(forms, 200);
}

TEST_CASE("every row takes parts of registers", "[isa][modifiers]") {
  std::vector<Form> forms;
  std::mt19937 random(3);
  for (const ValuRow *row : rows_of_lanes())
    add_sdwa_forms(forms, *row, random);
  check_forms(forms, 1000);
}

TEST_CASE("every row takes a source from another lane", "[isa][modifiers]") {
  std::vector<Form> forms;
  std::mt19937 random(4);
  for (const ValuRow *row : rows_of_lanes())
    add_dpp_forms(forms, *row, random);
  check_forms(forms, 1500);
}

} // namespace sluice::test

//===- matrix_test.cpp - MFMA and SMFMAC as instructions of a wave --------------------------------------===//
//
// Tests in tests/unit/emulator compare the matrix core's results with a model; this file tests the rest of
// the instructions: register files, modifiers, constants, MODE, EXEC, and the wait states to neighbouring
// instructions.
//
//===----------------------------------------------------------------------------------------------------===//
#include <catch2/catch.hpp>

#include <random>
#include <string>

#include "emulator/check/hazards.h"
#include "emulator/exec/mfma.h"
#include "isa/kernel_fixture.h"
#include "isa/wave_fixture.h"

namespace sluice::test {

namespace {

using emulator::MatrixUnit;
using emulator::MfmaInput;
using emulator::MfmaInstruction;
using emulator::MfmaOptions;
using emulator::MfmaShape;

std::string operand(char file, uint32_t first, uint32_t count) {
  const std::string start = std::to_string(first);
  return count == 1 ? file + start : file + ("[" + start + ":" + std::to_string(first + count - 1)) + "]";
}

struct Place {
  uint32_t first;
  char file = 'v';
};
struct Places {
  Place d{0};
  Place c{40};
  Place a{100};
  Place b{110};
  uint32_t index = 120;
};

std::string text_of(const MfmaInstruction &instruction, const Places &at) {
  const MfmaShape &s = instruction.shape;
  const uint32_t rows = s.c_registers();
  std::string text = std::string(instruction.mnemonic) + " " + operand(at.d.file, at.d.first, rows) + ", " +
                     operand(at.a.file, at.a.first, s.a_registers()) + ", " +
                     operand(at.b.file, at.b.first, s.b_registers()) + ", ";
  return text + (s.sparse ? operand('v', at.index, 1) : operand(at.c.file, at.c.first, rows));
}

uint32_t *row(TestWave &t, Place place) {
  return t.wave.row(place.file == 'a' ? emulator::first_agpr + place.first : place.first);
}

void fill(TestWave &t, std::mt19937 &random) {
  for (uint32_t at = 0; at < 512 * 64; ++at)
    t.wave.vgprs[at] = uint32_t(random()) & 0x3fff3fff; // no NaN in any format
  t.fill(120, 0x44444444u);                             // pairs in ascending order
}

} // namespace

TEST_CASE("every matrix instruction reads and writes both register files, in all lanes", "[isa][matrix]") {
  std::mt19937 random(1);
  TestWave t;
  for (const MfmaInstruction &instruction : emulator::mfma_instructions()) {
    const MfmaShape &s = instruction.shape;
    for (uint32_t files = 0; files < 8; ++files) {
      auto file = [&](uint32_t bit) { return (files >> bit & 1) != 0 ? 'a' : 'v'; };
      Places at;
      at.a.file = file(0);
      at.b.file = file(1);
      at.c.file = at.d.file = file(2);
      fill(t, random);
      t.wave.set_exec(files % 2 == 0 ? 0x10 : 0); // does not matter
      const std::vector<uint32_t> before(t.wave.vgprs, t.wave.vgprs + 512 * 64);
      std::vector<uint32_t> want(s.c_registers() * 64);
      const MfmaOptions options{.index = t.wave.row(120)};
      emulator::mfma(s, want.data(), row(t, at.a), row(t, at.b), row(t, s.sparse ? at.d : at.c), 0, options);
      const std::string text = text_of(instruction, at);
      INFO(text);
      auto executed = t.wave.mfma_executed;
      ++executed[size_t(&instruction - emulator::mfma_instructions().data())];
      t.run(text);
      CHECK(t.wave.mfma_executed == executed);
      const uint32_t *d = row(t, at.d);
      REQUIRE(std::equal(want.begin(), want.end(), d));
      // Nothing else has changed.
      const size_t first = size_t(d - t.wave.vgprs);
      REQUIRE(std::equal(before.begin(), before.begin() + std::ptrdiff_t(first), t.wave.vgprs));
      REQUIRE(
          std::equal(before.begin() + std::ptrdiff_t(first + want.size()), before.end(), d + want.size()));
    }
  }
}

TEST_CASE("modifiers reach the matrix core", "[isa][matrix]") {
  struct Case {
    const char *mnemonic;
    const char *modifiers;
    emulator::MfmaModifiers expected;
  };
  const Case cases[] = {
      {"v_mfma_f32_4x4x4_16b_f16", " cbsz:2 abid:3 blgp:5", {2, 3, 5}},
      {"v_mfma_i32_16x16x4_4b_i8", " cbsz:1 abid:1 blgp:2", {1, 1, 2}},
      {"v_mfma_f32_32x32x1_2b_f32", " cbsz:1 abid:1", {1, 1, 0}},
      {"v_mfma_f32_16x16x16_bf16", " blgp:3", {0, 0, 3}},
      {"v_mfma_f64_4x4x4_4b_f64", " neg:[1,0,0]", {0, 0, 1}},
      {"v_mfma_f64_16x16x4_f64", " neg:[0,1,1]", {0, 0, 6}},
      {"v_smfmac_f32_16x16x32_f16", " abid:1", {0, 1, 0}},
      {"v_smfmac_i32_16x16x64_i8", " cbsz:1 abid:1", {1, 1, 0}},
  };
  std::mt19937 random(2);
  TestWave t;
  for (const Case &c : cases) {
    const MfmaShape s = *emulator::mfma_shape(c.mnemonic);
    fill(t, random);
    for (uint32_t lane = 0; lane < 64; ++lane)
      t.v(120, lane) = lane % 2 ? 0x9c84eed4 : 0x44849cee;
    MfmaOptions options{.modifiers = c.expected, .index = t.wave.row(120)};
    std::vector<uint32_t> want(s.c_registers() * 64);
    std::vector<uint32_t> plain(want.size());
    auto run = [&](std::vector<uint32_t> &d) {
      emulator::mfma(s, d.data(), t.wave.row(100), t.wave.row(110), t.wave.row(s.sparse ? 0 : 40), 0,
                     options);
    };
    run(want);
    options.modifiers = {};
    run(plain);
    const std::string text = text_of({c.mnemonic, s}, {}) + c.modifiers;
    INFO(text);
    t.run(text);
    CHECK(std::equal(want.begin(), want.end(), t.wave.row(0)));
    CHECK((want != plain) == (c.expected.cbsz == 0 || !s.sparse));
  }
  for (const char *refused : {
           "v_mfma_f32_32x32x4_2b_f16 v[0:31], v[32:33], v[34:35], v[0:31] cbsz:2",
           "v_mfma_f32_32x32x4_2b_f16 v[0:31], v[32:33], v[34:35], v[0:31] abid:1",
           "v_mfma_f32_16x16x16_f16 v[0:3], v[32:33], v[34:35], v[0:3] cbsz:1",
           "v_mfma_f64_4x4x4_4b_f64 v[0:1], v[32:33], v[34:35], v[0:1] cbsz:1",
           "v_mfma_f32_16x16x8_xf32 v[0:3], v[32:33], v[34:35], v[0:3] blgp:1",
           "v_mfma_f32_16x16x32_fp8_fp8 v[0:3], v[32:33], v[34:35], v[0:3] blgp:4",
           "v_smfmac_i32_16x16x64_i8 v[0:3], v[32:33], v[36:39], v40 abid:2",
       }) {
    INFO(refused);
    CHECK_THROWS_WITH(t.run(refused), Catch::Contains(" = "));
  }
}

TEST_CASE("operands that the matrix core cannot take are refused", "[isa][matrix]") {
  // v_mfma_f32_16x16x16_f16 and v_smfmac_f32_16x16x32_f16 as bits: the assembler would refuse them.
  auto refusal = [](uint32_t opcode, uint32_t d, uint32_t a, uint32_t b, uint32_t c) {
    const uint32_t code[] = {0xd3800000 | opcode << 16 | d, a | b << 9 | c << 18};
    emulator::Disassembler disassembler;
    emulator::Decoder decoder(emulator::SimdPath::portable);
    const auto instruction = disassembler.decode(std::as_bytes(std::span(code)), 0);
    return instruction ? decoder.decode(*instruction, code, 0).refusal : "no instruction";
  };
  constexpr uint32_t dense = 0x4d, sparse = 0x62, v = 256, s4 = 4, one = 242;
  CHECK(refusal(dense, 4, v + 8, v + 10, v + 12) == "");
  CHECK(refusal(dense, 4, v + 8, v + 10, one) == "");
  CHECK(refusal(dense, 252, v + 254, v + 10, v + 12) == "");
  CHECK(refusal(sparse, 4, v + 8, v + 12, v + 255) == "");
  const std::string even = "even register", beyond = "beyond the last", vector = "must be a vector";
  CHECK_THAT(refusal(dense, 5, v + 8, v + 10, v + 12), Catch::Contains(even));
  CHECK_THAT(refusal(dense, 4, v + 9, v + 10, v + 12), Catch::Contains(even));
  CHECK_THAT(refusal(dense, 4, v + 8, v + 11, v + 12), Catch::Contains(even));
  CHECK_THAT(refusal(dense, 4, v + 8, v + 10, v + 13), Catch::Contains(even));
  CHECK_THAT(refusal(sparse, 4, v + 8, v + 11, v + 13), Catch::Contains(even));
  CHECK_THAT(refusal(dense, 254, v + 8, v + 10, v + 12), Catch::Contains(beyond));
  CHECK_THAT(refusal(sparse, 4, v + 8, v + 254, v + 13), Catch::Contains(beyond));
  CHECK_THAT(refusal(dense, 4, one, v + 10, v + 12), Catch::Contains(vector));
  CHECK_THAT(refusal(dense, 4, v + 8, s4, v + 12), Catch::Contains(vector));
  CHECK_THAT(refusal(dense, 4, v + 8, v + 10, s4), Catch::Contains(vector));
  CHECK_THAT(refusal(sparse, 4, v + 8, v + 12, one), Catch::Contains(vector));
  CHECK_THAT(refusal(sparse, 4, v + 8, v + 12, s4), Catch::Contains(vector));
}

TEST_CASE("an inline constant is the addend of every element, in the width of the result", "[isa][matrix]") {
  TestWave t;
  std::fill(t.wave.vgprs, t.wave.vgprs + 512 * 64, 0u);
  t.run("v_mfma_f64_16x16x4_f64 v[0:7], v[100:101], v[102:103], 1.0");
  for (uint32_t r = 0; r < 8; r += 2)
    CHECK(t.vv(r, 63) == 0x3ff0000000000000);
  t.run("v_mfma_f64_4x4x4_4b_f64 v[0:1], v[100:101], v[102:103], -4.0 neg:[0,0,1]");
  CHECK(t.d(0, 5) == 4.0);
  t.run("v_mfma_f32_16x16x8_xf32 v[0:3], v[100:101], v[102:103], 0.5");
  CHECK(t.f(3, 63) == 0.5f);
  t.run("v_mfma_i32_32x32x16_i8 v[0:15], v[100:101], v[102:103], -7");
  CHECK(int32_t(t.v(15, 31)) == -7);
  t.run("v_mfma_f32_32x32x16_bf8_bf8 a[0:15], v[100:101], v[102:103], 2.0");
  CHECK(t.a(15, 31) == 0x40000000);
}

TEST_CASE("MODE decides about subnormal f32 inputs, not about others", "[isa][matrix]") {
  TestWave t;
  std::fill(t.wave.vgprs, t.wave.vgprs + 512 * 64, 0u);
  t.fill(100, 0x00400000u); // subnormal
  t.fill(101, 0x7f000000u); // 2^127
  t.fill(40, 0x00000001u);
  const std::string f32 = "v_mfma_f32_4x4x1_16b_f32 v[0:3], v100, v101, v[40:43]\n";
  const std::string xf32 = "v_mfma_f32_16x16x8_xf32 v[4:7], v[100:101], v[102:103], v[40:43]\n";
  t.run(f32);
  CHECK(t.f(0) == 1.0f);
  t.run("s_setreg_imm32_b32 hwreg(HW_REG_MODE, 4, 1), 0\n" + f32);
  CHECK(t.v(0) == 1); // the addend is not flushed
  t.fill(102, 0x7f000000u);
  t.fill(101, 0u);
  t.run(xf32);
  CHECK(t.f(4) == 4.0f); // four lanes have a product of 1
  t.run("s_setreg_imm32_b32 hwreg(HW_REG_MODE, 4, 1), 1\n");
}

TEST_CASE("matrix operations that are not modelled exactly stop the wave with a reason", "[isa][matrix]") {
  auto report_of = [](const std::string &source) {
    const TestKernel kernel(source + "s_endpgm\n");
    const Memory memory;
    Options options;
    options.checks = Checks::none();
    return only(kernel.run(memory, {}, {}, options), ReportKind::unknown_instruction);
  };
  const Report overflow = report_of("s_setreg_imm32_b32 hwreg(HW_REG_MODE, 23, 1), 1\n"
                                    "v_mfma_f32_16x16x16_f16 v[0:3], v[4:5], v[6:7], 0\n");
  CHECK_THAT(overflow.message, Catch::Contains("FP16_OVFL"));
  CHECK_THAT(overflow.disassembly, Catch::StartsWith("v_mfma_f32_16x16x16_f16"));
  const Report index = report_of("s_set_gpr_idx_on s4, gpr_idx(SRC0)\n"
                                 "v_mfma_f32_16x16x16_f16 v[0:3], v[4:5], v[6:7], 0\n");
  CHECK_THAT(index.message, Catch::Contains("GPR_IDX_EN"));
  const Report order =
      report_of("v_mov_b32_e32 v14, 0\n v_smfmac_f32_16x16x32_f16 v[0:3], v[4:5], v[8:11], v14\n");
  CHECK_THAT(order.message, Catch::Contains("ascending"));
  CHECK_THAT(order.disassembly, Catch::StartsWith("v_smfmac_f32_16x16x32_f16"));
}

namespace {

//===--- Wait states ------------------------------------------------------------------------------------===//

/// Wait states that LLVM's hazard recogniser inserts between a matrix instruction and later instructions.
struct Waits {
  MatrixUnit unit;
  uint32_t passes;
  uint32_t vector;          // a vector instruction reads or writes the result, or an MFMA reads it as A or B
  uint32_t memory;          // a memory instruction reads the result
  uint32_t part_for_xdl;    // an MFMA's addend overlaps it
  uint32_t part_for_others; // the same, for f32 and f64
  uint32_t whole;           // an MFMA's addend is exactly the result
  uint32_t addend;          // a vector or memory instruction writes the addend
};
constexpr Waits waits[] = {
    {MatrixUnit::xdl, 2, 5, 5, 3, 3, 2, 1},       {MatrixUnit::xdl, 4, 7, 7, 5, 5, 0, 3},
    {MatrixUnit::xdl, 8, 11, 11, 9, 9, 0, 7},     {MatrixUnit::xdl, 16, 19, 19, 17, 17, 0, 15},
    {MatrixUnit::sgemm, 2, 4, 4, 0, 2, 2, 0},     {MatrixUnit::sgemm, 8, 10, 10, 0, 8, 0, 0},
    {MatrixUnit::sgemm, 16, 18, 18, 0, 16, 0, 0}, {MatrixUnit::dgemm, 4, 6, 9, 0, 4, 4, 0},
    {MatrixUnit::dgemm, 8, 11, 18, 0, 9, 0, 0},
};

MatrixUnit unit_of(const MfmaInstruction &instruction) {
  const std::string_view name = instruction.mnemonic;
  if (name.ends_with("_f64")) return MatrixUnit::dgemm;
  return name.ends_with("_f32") ? MatrixUnit::sgemm : MatrixUnit::xdl;
}

/// As in LLVM's schedule.
uint32_t passes_of(const MfmaInstruction &instruction) {
  const MatrixUnit unit = unit_of(instruction);
  if (instruction.shape.m == 4) return unit == MatrixUnit::dgemm ? 4 : 2;
  const bool slow = unit != MatrixUnit::xdl || instruction.shape.blocks > 1;
  return (instruction.shape.m == 16 ? 4 : 8) * (slow ? 2 : 1);
}

const Waits &waits_of(const MfmaInstruction &instruction) {
  for (const Waits &row : waits)
    if (row.unit == unit_of(instruction) && row.passes == passes_of(instruction)) return row;
  throw std::runtime_error("no row of wait states");
}

struct Step {
  emulator::Op op;
  emulator::OpInfo info;
  emulator::OpInfos ranges;
  explicit Step(const std::string &text) {
    static emulator::Disassembler disassembler;
    static emulator::Decoder decoder(emulator::SimdPath::portable);
    const std::vector<uint32_t> code = assemble(text);
    const auto instruction = disassembler.decode(std::as_bytes(std::span(code)), 0);
    if (!instruction) throw std::runtime_error("does not decode: " + text);
    const emulator::DecodedOp decoded = decoder.decode(*instruction, code, 0);
    if (!decoded.refusal.empty()) throw std::runtime_error(text + ": " + decoded.refusal);
    op = decoded.fast;
    info = decoded.info;
    auto add = [&](const std::vector<emulator::RegisterRange> &from, uint32_t &begin, uint32_t &end) {
      begin = uint32_t(ranges.ranges.size());
      ranges.ranges.insert(ranges.ranges.end(), from.begin(), from.end());
      end = uint32_t(ranges.ranges.size());
    };
    add(instruction->reads, info.reads_begin, info.reads_end);
    add(instruction->writes, info.writes_begin, info.writes_end);
  }
};

/// The fewest wait states between the two with which the tracker is silent; it must have asked for as many.
uint32_t states_between(const Step &first, const Step &second) {
  static emulator::HazardTracker tracker;
  emulator::OpInfo nop;
  nop.kind = emulator::OpKind::scalar;
  const emulator::OpInfos none;
  std::vector<uint32_t> asked;
  for (uint32_t states = 0;; ++states) {
    tracker.start({true, true, true, true});
    REQUIRE_FALSE(tracker.step(first.op, first.info, first.ranges));
    nop.wait_states = uint8_t(states);
    if (states > 0) REQUIRE_FALSE(tracker.step({}, nop, none));
    const auto found = tracker.step(second.op, second.info, second.ranges);
    if (!found) {
      for (uint32_t needed : asked)
        CHECK(needed == states);
      return states;
    }
    CHECK(found->seen == states);
    asked.push_back(found->needed);
  }
}

} // namespace

TEST_CASE("wait states between matrix and other instructions are those of LLVM", "[isa][matrix]") {
  for (const MfmaInstruction &instruction : emulator::mfma_instructions()) {
    const Waits &want = waits_of(instruction);
    const bool dgemm = want.unit == MatrixUnit::dgemm;
    for (char file : {'v', 'a'}) {
      Places at;
      at.d.file = at.c.file = file;
      const Step matrix(text_of(instruction, at));
      const bool accumulation = file == 'a';
      const std::string result = operand(file, 1, 1), addend = operand(file, 41, 1);
      auto after = [&](const std::string &text) {
        INFO(instruction.mnemonic << ", then " << text);
        return states_between(matrix, Step(text));
      };
      auto write_vector = [&](const std::string &to) {
        return after((accumulation ? "v_accvgpr_write_b32 " : "v_mov_b32_e32 ") + to + ", v200");
      };
      CHECK(after((accumulation ? "v_accvgpr_read_b32 v200, " : "v_mov_b32_e32 v200, ") + result) ==
            want.vector);
      CHECK(write_vector(result) == want.vector);
      CHECK(after("ds_write_b32 v200, " + result) == want.memory);
      CHECK(after("global_store_dword v[200:201], " + result + ", off") == want.memory);
      CHECK(after("global_load_dword " + result + ", v[200:201], off") == want.vector);
      CHECK(after("ds_read_b32 " + result + ", v200") == want.vector);
      if (!instruction.shape.sparse) {
        CHECK(write_vector(addend) == want.addend);
        CHECK(after("global_load_dword " + addend + ", v[200:201], off") == want.addend);
      }
      CHECK(after("v_mov_b32_e32 v100, v200") == 0); // A has been read
      // For all registers.
      CHECK(after("v_fma_f64 v[210:211], v[212:213], v[212:213], v[212:213]") == (dgemm ? 2 : 0));
      CHECK(after("v_fmac_f64_e32 v[210:211], v[212:213], v[212:213]") == (dgemm ? 2 : 0));
      CHECK(after("v_mul_f64 v[210:211], v[212:213], v[212:213]") == 0);

      auto before = [&](const std::string &text) { return states_between(Step(text), matrix); };
      const uint32_t a_end = 100 + instruction.shape.a_registers(),
                     b_end = 110 + instruction.shape.b_registers();
      for (uint32_t source : {100u, a_end - 1, 110u, b_end - 1})
        CHECK(before("v_mov_b32_e32 " + operand('v', source, 1) + ", v200") == 2);
      for (uint32_t beside : {99u, a_end, 109u, b_end})
        CHECK(before("v_mov_b32_e32 " + operand('v', beside, 1) + ", v200") == 0);
      CHECK(before("v_cmpx_eq_u32_e32 vcc, 0, v200") == 4);
      if (instruction.shape.sparse) {
        CHECK(before("v_mov_b32_e32 v120, v200") == 2);
        CHECK(before("v_mov_b32_e32 v121, v200") == 0);
      }
    }
  }
}

TEST_CASE("wait states after dot products are those of LLVM", "[isa][matrix]") {
  auto between = [](const std::string &first, const std::string &second) {
    INFO(first << ", then " << second);
    return states_between(Step(first), Step(second));
  };
  const std::string dot = "v_dot2_f32_f16 v0, v1, v2, v3", accumulating = "v_dot4c_i32_i8_e32 v0, v1, v2";
  for (const std::string &first : {dot, accumulating}) {
    CHECK(between(first, "v_mov_b32_e32 v5, v0") == 3);
    CHECK(between(first, "v_mov_b32_e32 v0, v5") == 3);
    CHECK(between(first, "v_dot4_i32_i8 v0, v4, v5, v0") == 3);
    CHECK(between(first, "v_dot4_i32_i8 v6, v4, v5, v0") == 3);
    CHECK(between(first, "global_store_dword v[10:11], v0, off") == 3);
    CHECK(between(first, "global_load_dword v0, v[10:11], off") == 3);
    CHECK(between(first, "ds_write_b32 v10, v0") == 3);
    CHECK(between(first, "v_mfma_f32_4x4x1_16b_f32 v[20:23], v0, v6, v[20:23]") == 0);
    CHECK(between(first, "v_mov_b32_e32 v5, v1") == 0);
  }
  CHECK(between(dot, "v_dot2_f32_f16 v0, v4, v5, v0") == 0);
  CHECK(between(dot, "v_dot2_f32_f16 v5, v0, v4, v3") == 3);
  CHECK(between(dot, "v_dot2_f32_f16 v5, v4, v0, v3") == 3);
  CHECK(between(dot, "v_dot2_f32_f16 v0, v4, v5, v6") == 0);
  CHECK(between(accumulating, accumulating) == 0);
}

TEST_CASE("wait states between matrix instructions are those of LLVM", "[isa][matrix]") {
  for (const MfmaInstruction &first : emulator::mfma_instructions()) {
    const Waits &want = waits_of(first);
    const Step writer(text_of(first, {}));
    for (const MfmaInstruction &second : emulator::mfma_instructions()) {
      INFO(first.mnemonic << ", then " << second.mnemonic);
      auto after = [&](const Places &at) { return states_between(writer, Step(text_of(second, at))); };
      const bool xdl = unit_of(second) == MatrixUnit::xdl;
      const uint32_t part = xdl ? want.part_for_xdl : want.part_for_others;
      const bool same_rows = first.shape.c_registers() == second.shape.c_registers();
      CHECK(after({.d = {160}, .c = {160}, .a = {0}}) == want.vector);
      CHECK(after({.d = {160}, .c = {160}, .b = {0}}) == want.vector);
      if (second.shape.sparse) CHECK(after({.d = {160}, .index = 1}) == want.vector);
      CHECK(after({.d = {0}, .c = {0}}) == (same_rows ? want.whole : part));
      if (first.shape.c_registers() > 2) CHECK(after({.d = {2}, .c = {2}}) == part);
      CHECK(after({.d = {160}, .c = {160}}) == 0);
      if (!second.shape.sparse) CHECK(after({.d = {0}, .c = {60}}) == 0);
    }
  }
}

} // namespace sluice::test

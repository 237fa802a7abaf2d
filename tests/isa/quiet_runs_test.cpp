//===- quiet_runs_test.cpp - what a launch does not check instruction by instruction
//---------------------===//
//
// A launch asks once per run of instructions whether their registers need a look, and looks for hazards only
// where a path has one. A traced wave is checked at every instruction: its reports must be the same.
//
//===----------------------------------------------------------------------------------------------------===//
#include <catch2/catch.hpp>

#include <random>
#include <span>

#include "emulator/machine/program.h"
#include "isa/kernel_fixture.h"

namespace sluice::test {

namespace {

using emulator::QuietRun;
using emulator::QuietRuns;
using emulator::WaveSchedule;

class EveryInstruction : public emulator::Tracer {
public:
  bool follows(std::array<uint32_t, 3>, uint32_t) const override { return true; }
  void executed(const emulator::TracedInstruction &) override {}
};

/// Runs of registers v0 to v15 and s10 to s25, some of them never written.
class RandomProgram {
public:
  explicit RandomProgram(uint32_t seed) : engine(seed) {}

  std::string text() {
    std::string result = "s_load_dwordx2 s[4:5], s[0:1], 0x0\n s_load_dwordx2 s[6:7], s[0:1], 0x8\n"
                         "v_and_b32 v0, 0x3ff, v0\n v_lshlrev_b32 v30, 2, v0\n s_movk_i32 s28, 0x3\n"
                         "s_movk_i32 s29, 0x1\n s_mov_b32 m0, 0\n s_waitcnt lgkmcnt(0)\n";
    for (uint32_t r = 0, count = below(17); r < count; ++r)
      result += "v_mov_b32 v" + std::to_string(r) + ", " + std::to_string(r) + "\n";
    for (uint32_t r = 10; below(4) != 0 && r < 26; ++r)
      result += "s_mov_b32 s" + std::to_string(r) + ", " + std::to_string(r) + "\n";
    if (below(2) == 0) result += "s_nop 7\n s_nop 7\n";
    const bool spaced = below(2) == 0; // without hazards
    const uint32_t blocks = 2 + below(4);
    for (uint32_t block = 0; block < blocks; ++block) {
      result += "block" + std::to_string(block) + ":\n";
      for (uint32_t i = 0, count = 1 + below(12); i < count; ++i)
        result += fill(pick()) + (spaced ? "\n s_nop 7\n s_nop 7\n s_nop 7\n" : "\n");
      result += ending(block, blocks);
    }
    return result + "s_endpgm\n";
  }

private:
  uint32_t below(uint32_t limit) { return engine() % limit; }

  std::string_view pick() {
    static constexpr std::string_view choices[] = {
        "v_add_f32 V, V, V",
        "v_mov_b32 V, S",
        "v_fma_f32 V, V, V, V",
        "v_pk_fma_f32 VV, VV, VV, VV",
        "v_lshlrev_b64 VV, V, VV",
        "v_exp_f32 V, V",
        "v_swap_b32 V, V",
        "v_mad_u64_u32 VV, SS, V, V, VV",
        "v_mov_b32_dpp V, V row_shr:1 row_mask:0xf bank_mask:0xf",
        "v_cmp_lt_u32 vcc, V, V",
        "v_cmp_eq_u32 SS, V, V",
        "v_cndmask_b32 V, V, V, SS",
        "v_addc_co_u32 V, vcc, V, V, vcc",
        "v_cmpx_gt_u32 vcc, 40, V",
        "v_readfirstlane_b32 S, V",
        "v_writelane_b32 V, S, 3",
        "s_add_u32 S, S, S",
        "s_mov_b32 S, 7",
        "s_and_b64 SS, SS, vcc",
        "s_cselect_b32 S, S, S",
        "s_cmp_lt_u32 S, S",
        "s_mov_b64 SS, exec",
        "s_movrels_b32 S, s12",
        "s_movreld_b32 s12, S",
        "s_and_saveexec_b64 SS, SS",
        "s_mov_b64 exec, -1",
        "s_mov_b64 exec, 0xff0",
        "ds_read_b32 V, v30",
        "ds_write_b32 v30, V",
        "ds_add_rtn_u32 V, v30, V",
        "global_load_dword V, v30, s[4:5]",
        "global_load_dword V, v30, s[6:7]",
        "global_store_dword v30, V, s[4:5]",
        "s_load_dword S, s[4:5], 0x4",
        "s_waitcnt vmcnt(0)",
        "s_waitcnt lgkmcnt(0)",
        "s_waitcnt vmcnt(1)",
        "s_nop 1",
        "v_mfma_f32_16x16x16_f16 v[16:19], VV, VV, v[16:19]",
        "s_set_gpr_idx_on s29, 9\n v_mov_b32 V, V\n s_set_gpr_idx_off\n s_mov_b32 m0, 0\n s_nop 0"};
    return choices[below(uint32_t(std::size(choices)))];
  }

  /// Puts registers for V, VV, S and SS.
  std::string fill(std::string_view pattern) {
    std::string result;
    for (size_t i = 0; i < pattern.size(); ++i) {
      const char letter = pattern[i];
      if (letter != 'V' && letter != 'S') {
        result += letter;
        continue;
      }
      const std::string file = letter == 'V' ? "v" : "s";
      const bool pair = i + 1 < pattern.size() && pattern[i + 1] == letter;
      const uint32_t number = (letter == 'S' ? 10 : 0) + 2 * below(8);
      i += pair;
      result += pair ? file + "[" + std::to_string(number) + ":" + std::to_string(number + 1) + "]"
                     : file + std::to_string(number + below(2));
    }
    return result;
  }

  std::string ending(uint32_t block, uint32_t blocks) {
    static constexpr std::string_view branches[] = {"s_cbranch_scc1", "s_cbranch_vccz", "s_cbranch_execz"};
    switch (below(4)) {
    case 0:
      if (block + 1 == blocks) return "";
      return std::string(branches[below(3)]) + " block" +
             std::to_string(block + 1 + below(blocks - block - 1)) + "\n";
    case 1:
      return "s_sub_u32 s28, s28, 1\n s_cmp_gt_i32 s28, 0\n s_cbranch_scc1 block" +
             std::to_string(below(block + 1)) + "\n";
    default:
      return "";
    }
  }

  std::mt19937 engine;
};

std::string reports_of(const TestKernel &kernel, uint32_t waves, Options options) {
  for (std::string_view name : emulator::check_names())
    *emulator::check_by_name(options.checks, name) = true;
  options.instruction_budget = 10'000;
  static Memory memory;
  static auto *const data = static_cast<uint32_t *>(memory.allocate(8192));
  static auto *const fresh = static_cast<uint32_t *>(memory.allocate(8192, Memory::Contents::undefined));
  std::fill_n(data, 2048, 3u);
  std::fill_n(fresh, 2048, 5u);
  const std::array<uint64_t, 8> arguments{reinterpret_cast<uint64_t>(data),
                                          reinterpret_cast<uint64_t>(fresh)};
  return to_json(kernel.run(memory, arguments, {.waves = waves, .lds_bytes = 4096}, options).reports);
}

std::array<bool, emulator::hazard_levels> levels_of(const std::string &source) {
  const TestKernel kernel(source);
  const emulator::ProgramImpl &program = kernel.program.impl();
  return program.hazard_levels_from(uint32_t(program.op_at_address(kernel.pc(0))));
}

constexpr std::array<bool, emulator::hazard_levels> no_level{};
constexpr std::array<bool, emulator::hazard_levels> every_level{true, true, true, true};

} // namespace

TEST_CASE("launches report what waves report whose instructions are checked one by one", "[isa][checks]") {
  uint32_t reported = 0;
  for (uint32_t seed = 1; seed <= 400; ++seed) {
    const std::string source = RandomProgram(seed).text();
    const TestKernel kernel(source);
    EveryInstruction tracer;
    for (WaveSchedule schedule : {WaveSchedule::greedy, WaveSchedule::random, WaveSchedule::round_robin}) {
      Options options;
      options.seed = seed;
      options.wave_schedule = schedule;
      options.completion = seed % 3 == 0 ? CompletionOrder::random : CompletionOrder::late;
      const std::string quiet = reports_of(kernel, 1 + seed % 2, options);
      options.tracer = &tracer;
      INFO("seed " << seed << "\n" << source);
      REQUIRE(quiet == reports_of(kernel, 1 + seed % 2, options));
      reported += quiet != "[]";
    }
  }
  CHECK(reported > 600);
}

TEST_CASE("straight-line code is one run, up to what changes EXEC or waits", "[isa][checks]") {
  const TestKernel kernel(
      "v_mov_b32 v1, 0\n v_add_f32 v2, v1, v3\n s_add_u32 s6, s6, s7\n s_waitcnt vmcnt(0)\n"
      "v_mov_b32 v4, v5\n s_mov_b64 exec, s[8:9]\n v_mov_b32 v6, v7\n"
      "global_load_dword v8, v9, s[10:11]\n s_cbranch_scc1 last\n v_mov_b32 v1, 0\n"
      "last: v_mov_b32 v2, 0\n s_endpgm\n");
  const emulator::ProgramImpl &program = kernel.program.impl();
  const QuietRuns &quiet = program.quiet_runs;
  const auto first = uint32_t(program.op_at_address(kernel.pc(0)));
  std::vector<uint32_t> ends;
  for (uint32_t op = first; op < first + 12;) {
    const uint32_t number = quiet.run_of[op];
    op = number == QuietRuns::none ? op + 1 : quiet.runs[number].end;
    ends.push_back(op - first);
  }
  CHECK(ends == std::vector<uint32_t>{4, 6, 7, 8, 9, 10, 12});
  CHECK(quiet.run_of[first + 7] == QuietRuns::none);
  // v1 is written before it is read.
  const QuietRun &run = quiet.runs[quiet.run_of[first]];
  const emulator::QuietWord &vectors = quiet.words[run.words_begin];
  CHECK(vectors.needed == 1u << 3);
  CHECK(vectors.read == (1u << 1 | 1u << 3));
  CHECK(vectors.written == (1u << 1 | 1u << 2));
}

TEST_CASE("hazards are looked for only where a path has one", "[isa][checks]") {
  const std::string exp = "v_exp_f32 v1, v0\n", use = "v_add_f32 v2, v1, v1\n", end = "s_endpgm\n";
  CHECK(levels_of(exp + "s_nop 0\n" + use + end) == no_level);
  CHECK(levels_of(exp + use + end)[size_t(HazardLevel::required)]);
  const std::string long_rest = "s_nop 15\n s_nop 15\n s_nop 15\n";
  CHECK(levels_of(exp + use + long_rest + end) != no_level);
  // Along a branch that is taken, past one that is not, around a loop, and over two blocks.
  CHECK(levels_of("s_cbranch_scc0 use\n" + exp + "s_endpgm\n use:\n" + use + end) == no_level);
  const std::string mfma = "v_mfma_f32_4x4x4_16b_f16 v[0:3], v[4:5], v[6:7], 0\n";
  CHECK(levels_of(mfma + "s_cbranch_scc0 use\n s_endpgm\n use:\n" + use + end) != no_level);
  CHECK(levels_of(mfma + "s_cbranch_scc0 away\n" + use + "away:\n" + end) != no_level);
  CHECK(levels_of("top:\n" + use + "s_nop 3\n" + mfma + "s_cbranch_scc0 top\n" + end) != no_level);
  CHECK(levels_of("top:\n s_nop 3\n" + use + "s_nop 3\n" + mfma + "s_cbranch_scc0 top\n" + end) == no_level);
  CHECK(levels_of(mfma + "s_cbranch_scc0 next\n s_nop 0\n next:\n s_cbranch_vccz use\n s_endpgm\n use:\n" +
                  use + end) != no_level);
  // Only LLVM asks for it.
  const auto waived = levels_of("v_cmp_eq_u32 s[6:7], 0, v0\n v_cndmask_b32 v1, v0, v0, s[6:7]\n" + end);
  CHECK((waived[size_t(HazardLevel::waived)] && !waived[size_t(HazardLevel::required)]));
  // Code that no path of the kernel reaches does not count; where a register jumps is not known.
  CHECK(levels_of(end + exp + use + end) == no_level);
  CHECK(levels_of("s_setpc_b64 s[6:7]\n" + end) == every_level);
  CHECK(levels_of("s_swappc_b64 s[6:7], s[8:9]\n" + end) == every_level);
  CHECK(levels_of("s_cbranch_join s6\n" + end) == every_level);
}

TEST_CASE("a hazard past a jump through a register is found", "[isa][checks]") {
  const TestKernel kernel(
      "s_getpc_b64 s[6:7]\n s_add_u32 s6, s6, 28\n v_mov_b32 v4, 0\n v_mov_b32 v5, 0\n s_nop 1\n"
      "v_mfma_f32_4x4x4_16b_f16 v[0:3], v[4:5], v[4:5], 0\n s_setpc_b64 s[6:7]\n"
      "v_mov_b32 v7, v0\n s_endpgm\n");
  Memory memory;
  const LaunchResult result = kernel.run(memory, {});
  REQUIRE(result.reports.size() == 1);
  CHECK(result.reports[0].kind == ReportKind::hazard);
  CHECK(result.reports[0].other.value().disassembly.starts_with("v_mfma"));
}

} // namespace sluice::test

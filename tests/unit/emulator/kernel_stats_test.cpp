//===- kernel_stats_test.cpp - static figures against counts made by hand -------------------------------===//

#include "emulator/stats/bound.h"
#include "emulator/stats/instruction_mix.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>
#include <numeric>
#include <span>
#include <vector>

#include "package/occupancy.h"
#include "support/files.h"
#include <sluice/emulator.h>

using namespace sluice::emulator;
using Json = nlohmann::json;

namespace {

const std::vector<std::byte> &loops() {
  static const std::vector<std::byte> bytes = sluice::test::read_file(SLUICE_CODE_OBJECT_MFMA_LOOP);
  return bytes;
}

std::string json(const std::vector<std::byte> &elf, const char *kernel) {
  std::string text(1 << 16, '\0');
  const size_t size = sluice_emulator_kernel_stats(elf.data(), elf.size(), kernel, text.data(), text.size());
  REQUIRE(size <= text.size());
  text.resize(size - 1);
  return text;
}

uint64_t address(const Json &hex) {
  return std::stoull(hex.get<std::string>(), nullptr, 16);
}

} // namespace

TEST_CASE("occupancy follows registers, LDS and waves", "[stats]") {
  struct Row {
    uint32_t vgprs, lds, threads, workgroups, waves;
    const char *limit;
  };
  for (const Row &row :
       {Row{64, 0, 256, 8, 8, "waves"}, Row{65, 0, 256, 7, 7, "vgprs"}, Row{128, 0, 256, 4, 4, "vgprs"},
        Row{168, 0, 256, 3, 3, "vgprs"}, Row{169, 0, 256, 2, 2, "vgprs"}, Row{256, 0, 512, 1, 2, "vgprs"},
        Row{264, 0, 512, 0, 0, "vgprs"}, Row{512, 0, 256, 1, 1, "vgprs"}, Row{256, 32768, 256, 2, 2, "lds"},
        Row{64, 65536, 512, 1, 2, "lds"}, Row{64, 32769, 256, 1, 1, "lds"}, Row{64, 65537, 256, 0, 0, "lds"},
        Row{32, 0, 64, 32, 8, "waves"}, Row{32, 0, 128, 16, 8, "waves"}, Row{32, 4000, 128, 16, 8, "lds"},
        Row{32, 0, 1, 32, 8, "waves"}, Row{128, 0, 1024, 1, 4, "vgprs"}, Row{520, 0, 64, 0, 0, "vgprs"}}) {
    INFO(row.vgprs << " VGPRs, " << row.lds << " bytes of LDS, " << row.threads << " threads");
    const sluice::package::Occupancy got = sluice::package::occupancy(row.vgprs, row.lds, row.threads);
    CHECK(got.workgroups_per_cu == row.workgroups);
    CHECK(got.waves_per_simd == row.waves);
    CHECK(std::string(got.limit) == row.limit);
  }
}

TEST_CASE("a kernel's figures are those of its descriptor, metadata and code", "[stats]") {
  const Json stats = Json::parse(json(loops(), "loops"));
  CHECK(stats["kernel"] == "loops");
  CHECK(stats["target"] == "gfx942");
  CHECK(stats["code_object_version"] == 5);
  CHECK(stats["vgprs"] == 96);
  CHECK(stats["agprs"] == 32);
  CHECK(stats["sgprs"] == 22);
  CHECK(stats["vgprs_allocated"] == 96);
  CHECK(stats["accum_offset"] == 64);
  CHECK(stats["lds_bytes"] == 20480);
  CHECK(stats["scratch_bytes"] == 16);
  CHECK(stats["vgpr_spills"] == 4);
  CHECK(stats["sgpr_spills"] == 2);
  CHECK(stats["kernarg_bytes"] == 8);
  CHECK(stats["max_workgroup_threads"] == 256);
  CHECK(stats["occupancy"]["workgroups_per_cu"] == 3); // 20 KiB of LDS each
  CHECK(stats["occupancy"]["waves_per_simd"] == 3);
  CHECK(stats["occupancy"]["limit"] == "lds");

  const Json &whole = stats["instructions"];
  CHECK(whole["total"] == 40);
  CHECK(whole["MFMA"] == 4);
  CHECK(whole["VALU"] == 4);
  CHECK(whole["SMEM"] == 2);
  CHECK(whole["wait"] == 3);
  CHECK(whole["branch"] == 4);
  CHECK(whole["unknown"] == 0);
  CHECK(stats["vmcnt0"] == true);

  REQUIRE(stats["loops"].size() == 2); // the third has no MFMA
  const Json &outer = stats["loops"][0];
  const Json &inner = stats["loops"][1];
  CHECK(outer["innermost"] == false);
  CHECK(inner["innermost"] == true);
  CHECK(address(outer["first"]) + 12 == address(inner["first"])); // s_mov and one MFMA
  CHECK(address(inner["last"]) + 16 == address(outer["last"]));
  CHECK(outer["instructions"]["MFMA"] == 4);
  CHECK(outer["mfma"]["v_mfma_f32_16x16x16_f16"] == 1);
  CHECK(outer["mfma_clk"] == 112);
  CHECK(outer["vmcnt0"] == true);
  CHECK(inner["vmcnt0"] == false);
  CHECK(outer["instructions"]["total"] == 34);

  const Json want = {{"total", 28}, {"MFMA", 3},    {"ACCMOV", 1},  {"VALU", 3},    {"PK32", 1},
                     {"TRANS", 2},  {"LDS_rd", 1},  {"LDS_wr", 1},  {"LDS_x", 1},   {"VM_lds", 2},
                     {"VM_ld", 1},  {"VM_st", 1},   {"SCRATCH", 1}, {"SALU", 3},    {"SMEM", 1},
                     {"wait", 1},   {"barrier", 1}, {"branch", 2},  {"setprio", 1}, {"nop", 1},
                     {"unknown", 0}};
  CHECK(inner["instructions"] == want);
  CHECK(inner["mfma"] == Json{{"v_mfma_f32_32x32x8_f16", 2}, {"v_mfma_f32_32x32x16_fp8_fp8", 1}});
  CHECK(inner["mfma_clk"] == 96);
  CHECK(inner["issue_clk"] == 4 * (3 + 3 + 1 + 1) + 16 * 2);
  CHECK(!inner.contains("bound_percent")); // of a path in order only

  // The common path skips everything that a branch can skip, but keeps all MFMAs.
  const Json &way = stats["way"];
  CHECK(way["first"] == outer["first"]);
  CHECK(way["instructions"]["total"] == 33);
  CHECK(way["instructions"]["MFMA"] == 4);
  CHECK(way["instructions"]["SALU"] == outer["instructions"]["SALU"].get<int>() - 1);
  CHECK(way["mfma_clk"] == 112);
  CHECK(way["slot_clk"]["matrix"] == 112);
  // Three waves on each SIMD fill one another's gaps.
  CHECK(way["slot_clk"]["wave"].get<double>() == Approx(way["alone_clk"].get<double>() / 3).margin(0.1));
  CHECK(way["binds"] == "memory");
  CHECK(way["bound_percent"].get<double>() ==
        Approx(100 * 112 / way["slot_clk"]["memory"].get<double>()).margin(0.1));
}

TEST_CASE("the usual way excludes detours with loops, wherever its blocks are", "[stats]") {
  const Json way = Json::parse(json(loops(), "detour"))["way"];
  CHECK(way["instructions"]["MFMA"] == 4); // 1, 1 out of line and 2, not the 6 of the detour
  CHECK(way["instructions"]["total"] == 11);
}

TEST_CASE("a branch too long for its offset closes a loop", "[stats]") {
  // v_mfma_f32_32x32x8_f16; s_getpc_b64, s_add_u32 and s_addc_u32 of -12, s_setpc_b64
  const uint32_t dwords[] = {0xd3cc0008, 0x02020904, 0xbe841c00, 0x8004ff04, 0xfffffff4,
                             0x8205ff05, 0xffffffff, 0xbe801d04, 0xbf810000};
  const std::vector<CodeInstruction> code = decode_code(std::as_bytes(std::span(dwords)), 256);
  REQUIRE(code.size() == 6);
  CHECK(code[4].target == 256);
  CHECK_FALSE(code[5].target);
  CHECK(ControlFlow(code).usual_way() == ControlFlow::Indices{0, 1, 2, 3, 4});
}

namespace {

const InstructionFacts &facts_of(std::string_view mnemonic) {
  const InstructionFacts *facts = instruction_facts(mnemonic);
  INFO(mnemonic);
  REQUIRE(facts != nullptr);
  return *facts;
}

/// A path around a loop of these instructions, all of 4 bytes; `words` of the waits and nops.
struct Way {
  std::vector<CodeInstruction> code;
  void add(std::string_view mnemonic, uint32_t word = 0, uint32_t times = 1) {
    const InstructionFacts &facts = facts_of(mnemonic);
    for (uint32_t i = 0; i < times; ++i)
      code.push_back({4 * code.size(), 4, word, &facts, classify(facts, false), std::nullopt});
  }
  Bound bound(uint32_t workgroups, uint32_t waves) const {
    ControlFlow::Indices all(code.size());
    std::iota(all.begin(), all.end(), size_t(0));
    return bound_of(code, all, {.workgroups_per_cu = workgroups, .waves_per_simd = 0, .limit = ""}, waves);
  }
};

constexpr uint32_t lgkm_0 = 0xc07f, vector_0 = 0x0f70; // of s_waitcnt
const std::string mfma = "v_mfma_f32_32x32x8_f16";     // 32 clk

} // namespace

TEST_CASE("the bound counts every slot, and names the one that binds", "[stats]") {
  struct Case {
    const char *mnemonic;
    uint32_t times;
    BoundSlot slot;
    double clk; // of a SIMD, with all four at work
  };
  for (const Case &c :
       {Case{"v_add_f32", 30, BoundSlot::vector, 30 * 4 + 4},
        Case{"v_exp_f32", 10, BoundSlot::vector, 10 * 16 + 4},
        Case{"v_mul_lo_u32", 10, BoundSlot::vector, 10 * 16 + 4},
        Case{"s_add_u32", 30, BoundSlot::scalar, 30 * 4}, Case{"s_load_dword", 30, BoundSlot::scalar, 30 * 4},
        Case{"ds_read_b128", 10, BoundSlot::lds, 10 * 16 * 2},
        Case{"ds_read2_b64", 10, BoundSlot::lds, 10 * 16 * 2},
        Case{"ds_read2st64_b32", 10, BoundSlot::lds, 10 * 8 * 2},
        Case{"ds_read2st64_b64", 10, BoundSlot::lds, 10 * 16 * 2},
        Case{"ds_write_b32", 10, BoundSlot::lds, 10 * 8 * 2},
        Case{"buffer_load_dword", 10, BoundSlot::memory, 10 * 4 * 4},
        Case{"global_load_dwordx4", 10, BoundSlot::memory, 10 * 16 * 4},
        Case{"global_load_lds_dword", 10, BoundSlot::memory, 10 * 11 * 4},
        Case{"s_cbranch_scc0", 30, BoundSlot::branch, 30 * 4}}) {
    INFO(c.mnemonic);
    Way way;
    way.add(mfma);
    way.add(c.mnemonic, 0, c.times);
    const Bound bound = way.bound(8, 4); // eight waves on a SIMD
    CHECK(bound[BoundSlot::matrix] == 32);
    CHECK(bound[c.slot] == c.clk);
    CHECK(bound.binds == c.slot);
    CHECK(bound.percent == Approx(100 * 32 / c.clk));
  }
  Way way;
  way.add(mfma, 0, 4);
  way.add("v_add_f32", 0, 20);
  const Bound bound = way.bound(2, 4);
  CHECK(bound.binds == BoundSlot::matrix);
  CHECK(bound.percent == 100);
}

TEST_CASE("a wave with few beside it is bound by its own instructions and waits", "[stats]") {
  Way plain, loads, lds, memory, nops;
  for (Way *way : {&plain, &loads, &lds, &memory, &nops})
    way->add(mfma);
  plain.add("s_add_u32", 0, 10);
  // Scalar loads that are waited for immediately: 64 clk each.
  for (int i = 0; i < 5; ++i) {
    loads.add("s_load_dword");
    loads.add("s_waitcnt", lgkm_0);
    lds.add("ds_read_b128");
    lds.add("s_waitcnt", lgkm_0);
    memory.add("global_load_dword");
    memory.add("s_waitcnt", vector_0);
  }
  nops.add("s_nop", 15, 5);
  const double turn = 4, taken = 16;
  const auto one_wave_clk = [](const Way &way) { return way.bound(1, 4).alone_clk; };
  CHECK(one_wave_clk(plain) == 10 * turn + taken);
  CHECK(one_wave_clk(loads) == 4 + 5 * 64 + 4 * turn + taken);
  CHECK(one_wave_clk(lds) == 4 + 5 * (48 + 16) + 4 * turn + taken);
  CHECK(one_wave_clk(memory) == 4 + 5 * 116 + 4 * turn + taken);
  CHECK(one_wave_clk(nops) == 4 + 4 * 16 * turn + 15 * turn + taken);
  CHECK(loads.bound(1, 4).binds == BoundSlot::wave);
  CHECK(loads.bound(1, 4).percent == Approx(100 * 32 / one_wave_clk(loads)));
  // Four waves fill one another's gaps.
  CHECK(loads.bound(4, 4).percent == Approx(4 * 100 * 32 / one_wave_clk(loads)));
  CHECK(loads.bound(4, 4).binds == BoundSlot::wave);
  SECTION("and a SIMD without a wave has an idle matrix core") {
    Way busy;
    busy.add(mfma, 0, 10);
    CHECK(busy.bound(1, 1).percent <= 25);
    CHECK(busy.bound(1, 4).percent > 90);
    CHECK(busy.bound(0, 4).percent == 0);
  }
}

TEST_CASE("the matrix core is busy four clk a pass, in every type", "[stats]") {
  CHECK(mfma_clk(facts_of("v_mfma_f32_16x16x16_f16")) == 16);
  CHECK(mfma_clk(facts_of("v_mfma_f32_32x32x16_fp8_bf8")) == 32);
  CHECK(mfma_clk(facts_of("v_mfma_i32_4x4x4_16b_i8")) == 8);
  CHECK(mfma_clk(facts_of("v_mfma_f64_4x4x4_4b_f64")) == 16);
  CHECK(mfma_clk(facts_of("v_smfmac_f32_16x16x32_bf16")) == 16);
  CHECK(mfma_clk(facts_of("v_smfmac_i32_32x32x32_i8")) == 32);
  CHECK(mfma_clk(facts_of("v_add_f32")) == 0);
}

TEST_CASE("instructions are sorted into classes by their facts", "[stats]") {
  const auto name = [](std::string_view mnemonic, bool to_lds = false) {
    return class_name(classify(facts_of(mnemonic), to_lds));
  };
  CHECK(name("v_mfma_f32_16x16x16_f16") == "MFMA");
  CHECK(name("v_smfmac_f32_16x16x32_f16") == "MFMA");
  CHECK(name("v_accvgpr_read_b32") == "ACCMOV");
  CHECK(name("v_exp_f32") == "TRANS");
  CHECK(name("v_sqrt_f64") == "TRANS");
  CHECK(name("v_exp_legacy_f32") == "TRANS");
  CHECK(name("v_pk_fma_f32") == "PK32");
  CHECK(name("v_pk_fma_f16") == "VALU");
  CHECK(name("v_readlane_b32") == "VALU");
  CHECK(name("buffer_load_dword", true) == "VM_lds");
  CHECK(name("buffer_load_dword") == "VM_ld");
  CHECK(name("tbuffer_load_format_x") == "VM_ld");
  CHECK(name("global_load_lds_dword") == "VM_lds");
  CHECK(name("scratch_load_dword") == "SCRATCH");
  CHECK(name("global_atomic_add") == "VM_st");
  CHECK(name("buffer_store_dword") == "VM_st");
  CHECK(name("ds_read2_b64") == "LDS_rd");
  CHECK(name("ds_write_b8") == "LDS_wr");
  CHECK(name("ds_add_u32") == "LDS_x");
  CHECK(name("s_waitcnt") == "wait");
  CHECK(name("s_barrier") == "barrier");
  CHECK(name("s_setprio") == "setprio");
  CHECK(name("s_sleep") == "nop");
  CHECK(name("s_buffer_load_dwordx4") == "SMEM");
  CHECK(name("s_memtime") == "SMEM");
  CHECK(name("s_cbranch_execz") == "branch");
  CHECK(name("s_endpgm") == "SALU");
}

TEST_CASE("failures come as an error in the JSON", "[stats]") {
  auto error = [](const std::vector<std::byte> &elf, const char *kernel) {
    return Json::parse(json(elf, kernel))["error"].get<std::string>();
  };
  CHECK(error(loops(), "no \"such\"") == "the code object has no kernel 'no \"such\"'");
  CHECK(error({}, "loops").find("code object: ") == 0);
  CHECK(error(std::vector<std::byte>(100), "loops").find("magic") != std::string::npos);
  CHECK(sluice_emulator_kernel_stats(nullptr, 0, nullptr, nullptr, 0) > 10);
  std::vector<char> small(10, 'x');
  CHECK(sluice_emulator_kernel_stats(loops().data(), loops().size(), "loops", small.data(), small.size()) ==
        json(loops(), "loops").size() + 1);
  CHECK(small[0] == '\0');
}

TEST_CASE("disassembly is text by line, and an unknown kernel an error", "[stats]") {
  auto disassembly = [](const char *kernel) {
    std::string text(1 << 16, '\0');
    const size_t size =
        sluice_emulator_disassemble(loops().data(), loops().size(), kernel, text.data(), text.size());
    REQUIRE(size <= text.size());
    text.resize(size - 1);
    return text;
  };
  const std::string text = disassembly("loops");
  INFO(text);
  CHECK(std::count(text.begin(), text.end(), '\n') >= 39);
  CHECK(text.find("v_mfma_f32_32x32x8_f16 a[0:15], v[4:5], v[6:7], a[0:15]") != std::string::npos);
  CHECK(text.find("s_endpgm") != std::string::npos);
  CHECK(disassembly("other").find("error: ") == 0);
}

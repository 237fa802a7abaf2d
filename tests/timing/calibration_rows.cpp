//===- calibration_rows.cpp - the streams of published micro-benchmarks ---------------------------------===//
#include "timing/calibration.h"

#include <numeric>

#include "timing/timed_kernel.h"

namespace sluice::test {

namespace {

namespace timing = emulator::timing;

constexpr const char *sc25 = "SC25 artifact";
constexpr const char *pyhip = "pyhip";

const std::string mfma16 = "v_mfma_f32_16x16x16_bf16 v[4:7], v[8:9], v[10:11], v[4:7]\n";
const std::string add = "v_add_f32_e32 v1, v2, v2\n";
const std::string add_8_bytes = "v_add_f32_e64 v1, v2, v2\n";
const std::string exponential = "v_exp_f32_e32 v3, v2\n";
const std::string packed_add = "v_pk_add_f32 v[12:13], v[14:15], v[16:17]\n";

class Rows {
public:
  std::vector<CalibrationRow> rows;

  void add(std::string stream, std::string unit, double published, double predicted, const char *source,
           bool input = false, std::string why = "") {
    rows.push_back({std::move(stream), std::move(unit), published, predicted, input, source, std::move(why)});
  }
};

/// Clk of one instruction of a SIMD, of all its waves.
double per_instruction(const std::string &start, const std::string &body, uint32_t waves,
                       uint32_t instructions = 1) {
  const uint32_t per_simd = (waves + timing::simds - 1) / timing::simds;
  return clk_each(start, body, end_program, {.waves = waves}) / (per_simd * instructions);
}

double one_wave(const std::string &body) {
  return clk_each(aligned, body, end_program);
}

/// Each of two waves of a SIMD repeats its own body.
double together(const std::string &first, const std::string &second) {
  constexpr uint32_t times = 48;
  auto run = [&](uint32_t count) {
    return clk_of(two_waves(repeat(count, first), repeat(count, second)), {.waves = 8});
  };
  return double(run(2 * times) - run(times)) / times;
}

//===--- Vector instructions ----------------------------------------------------------------------------===//

void add_vector_rows(Rows &r) {
  const std::string fma = "v_fma_f32 v1, v2, v2, v3\n";
  const std::string packed_fma = "v_pk_fma_f32 v[2:3], v[2:3], v[4:5], v[6:7]\n";
  r.add("v_add_f32, 1 wave", "clk", 4.012, per_instruction(aligned, add, 1), sc25, true);
  r.add("v_mul_f32, 4 waves", "clk", 4.009, per_instruction(aligned, "v_mul_f32_e32 v1, v2, v2\n", 4), sc25);
  r.add("v_add_f32, 16 waves, 4 instructions", "clk", 16.01, 4 * per_instruction(aligned, add, 16), sc25);
  r.add("v_fma_f32, 1 wave", "clk", 5.008, per_instruction(misaligned, fma, 1), sc25);
  r.add("v_fma_f32, 2 waves on a SIMD", "clk", 4.378, per_instruction(misaligned, fma, 8), sc25);
  r.add("v_fma_f32, 4 waves on a SIMD", "clk", 4.201, per_instruction(misaligned, fma, 16), sc25);
  r.add("v_fmac_f32", "clk", 4.01, per_instruction(aligned, "v_fmac_f32_e32 v1, v2, v2\n", 1), sc25);
  r.add("v_pk_fma_f32 in a chain, 1 wave", "clk", 8.03, one_wave(packed_fma), sc25, true);
  r.add("v_pk_fma_f32 in a chain, 2 waves on a SIMD", "clk", 4.01, per_instruction(aligned, packed_fma, 8),
        sc25);
  r.add("v_pk_add_f32, 4 chains, 1 wave", "clk", 4.008,
        one_wave("v_pk_add_f32 v[2:3], v[2:3], v[10:11]\n v_pk_add_f32 v[4:5], v[4:5], v[10:11]\n"
                 "v_pk_add_f32 v[6:7], v[6:7], v[10:11]\n v_pk_add_f32 v[8:9], v[8:9], v[10:11]\n") /
            4,
        pyhip);
  r.add("v_pk_mul_f32 in a chain, 1 wave", "clk", 8.02, one_wave("v_pk_mul_f32 v[2:3], v[2:3], v[4:5]\n"),
        sc25);
  r.add("v_exp_f32", "clk", 16.0, one_wave(exponential), pyhip, true);
  r.add("v_exp_f32 and v_add_f32, 1 wave", "clk", 20.04, one_wave(exponential + add), pyhip);
  r.add("v_exp_f32 and v_add_f32, a wave each", "clk", 20.01, together(exponential, add), pyhip);
  r.add("v_add_f32 of 8 bytes, PC % 8 = 4", "clk", 4 * 1.262639, per_instruction(misaligned, add_8_bytes, 1),
        pyhip, true);
  r.add("v_add_f32 of 8 bytes, PC % 8 = 0", "clk", 4 * 1.013566, per_instruction(aligned, add_8_bytes, 1),
        pyhip);
  r.add("v_add_f32 of 4 bytes", "clk", 4 * 1.012555, per_instruction(aligned, add, 1), pyhip);
}

//===--- The matrix core --------------------------------------------------------------------------------===//

void add_matrix_rows(Rows &r) {
  r.add("MFMA 16x16x16 bf16, 1 wave", "clk", 16.026, one_wave(mfma16), pyhip, true);
  r.add("MFMA 16x16x16 bf16, 4 waves", "clk", 16.0, per_instruction(aligned, mfma16, 4), sc25);
  r.add("MFMA 16x16x4 f32", "clk", 32.0, one_wave("v_mfma_f32_16x16x4_f32 v[4:7], v8, v9, v[4:7]\n"), sc25,
        true);
  r.add("MFMA 16x16x4 f64", "clk", 32.0,
        one_wave("v_mfma_f64_16x16x4_f64 v[4:11], v[12:13], v[14:15], v[4:11]\n"), sc25, true);
  const auto count = [](uint32_t n) { return std::to_string(n); };
  const double with_vector[] = {16.046, 16.046, 16.056, 20.056};
  const double beside_vector[] = {16.016, 16.016, 16.016, 19.996};
  const double with_exponential[] = {20.056, 36.056, 52.056, 68.056};
  const double with_packed[] = {28.026, 32.026, 36.026, 40.026};
  const double beside_packed[] = {21.026, 26.026, 31.026, 36.026};
  for (uint32_t n = 1; n <= 4; ++n)
    r.add("MFMA16 and " + count(n) + " v_add_f32", "clk", with_vector[n - 1],
          one_wave(mfma16 + repeat(n, add)), pyhip);
  for (uint32_t n = 1; n <= 4; ++n)
    r.add("MFMA16 beside " + count(n) + " v_add_f32 of another wave", "clk", beside_vector[n - 1],
          together(mfma16, repeat(n, add)), pyhip);
  r.add("MFMA16 beside 4 v_add_f32 of 8 bytes of another wave", "clk", 20.996,
        together(mfma16, repeat(4, add_8_bytes)), pyhip);
  for (uint32_t n = 1; n <= 4; ++n)
    r.add("MFMA16 and " + count(n) + " v_exp_f32", "clk", with_exponential[n - 1],
          one_wave(mfma16 + repeat(n, exponential)), pyhip);
  for (uint32_t n = 1; n <= 4; ++n)
    r.add("MFMA16 and " + count(n) + " v_pk_add_f32", "clk", with_packed[n - 1],
          one_wave(mfma16 + repeat(n, packed_add)), pyhip, n == 1);
  for (uint32_t n = 1; n <= 4; ++n)
    r.add("MFMA16 beside " + count(n) + " v_pk_add_f32 of another wave", "clk", beside_packed[n - 1],
          together(mfma16, repeat(n, packed_add)), pyhip);
  r.add("MFMA16, 3 v_add_f32, MFMA16, v_exp_f32", "clk", 36.05,
        one_wave(mfma16 + repeat(3, add) + mfma16 + exponential), pyhip);
  r.add("MFMA16, MFMA16, 3 v_add_f32, v_exp_f32", "clk", 48.05,
        one_wave(mfma16 + mfma16 + repeat(3, add) + exponential), pyhip);

  struct Type {
    const char *name;
    const char *instruction;
    double teraflops;
  };
  const Type types[] = {
      {"bf16", "v_mfma_f32_16x16x16_bf16 v[4:7], v[8:9], v[10:11], v[4:7]\n", 1252},
      {"fp16", "v_mfma_f32_16x16x16_f16 v[4:7], v[8:9], v[10:11], v[4:7]\n", 1246},
      {"fp8", "v_mfma_f32_16x16x32_fp8_fp8 v[4:7], v[8:9], v[10:11], v[4:7]\n", 2405},
      {"i8", "v_mfma_i32_16x16x32_i8 v[4:7], v[8:9], v[10:11], v[4:7]\n", 2456},
      {"tf32", "v_mfma_f32_16x16x8_xf32 v[4:7], v[8:9], v[10:11], v[4:7]\n", 625},
      {"f32", "v_mfma_f32_16x16x4_f32 v[4:7], v8, v9, v[4:7]\n", 159},
      {"f64", "v_mfma_f64_16x16x4_f64 v[4:11], v[12:13], v[14:15], v[4:11]\n", 158},
  };
  for (const Type &type : types) {
    // Enough of it that the launch is negligible.
    const TimingResult result =
        time_program("s_movk_i32 s8, 100\n" + aligned + "loop:\n" + repeat(32, type.instruction) +
                         "s_sub_i32 s8, s8, 1\n s_cmp_lg_u32 s8, 0\n s_cbranch_scc1 loop\n s_endpgm\n",
                     {.waves = 16, .workgroups = 304});
    r.add(std::string("MFMA loop on all compute units, ") + type.name, "TFLOPS", type.teraflops,
          result.tflops(), sc25);
  }
}

//===--- LDS --------------------------------------------------------------------------------------------===//

void add_lds_rows(Rows &r) {
  const std::string zero = "v_mov_b32_e32 v1, 0\n" + aligned;
  const TimedShape shape{.lds_bytes = 65536};
  const auto latency = [&](const std::string &read) {
    return clk_each(zero, read + "s_waitcnt lgkmcnt(0)\n", end_program, shape);
  };
  r.add("ds_read_b32, latency", "clk", 52, latency("ds_read_b32 v1, v1\n"), pyhip, true);
  r.add("ds_read_b128, latency", "clk", 64, latency("ds_read_b128 v[4:7], v1\n"), pyhip);
  const auto stride = [](uint32_t dwords) {
    return "v_and_b32_e32 v1, 0x3ff, v0\n v_and_b32_e32 v1, 63, v1\n v_mul_u32_u24_e32 v1, " +
           std::to_string(4 * dwords) + ", v1\n" + aligned;
  };
  r.add("ds_read_b32, throughput of 1 wave", "clk", 4,
        clk_each(stride(1), "ds_read_b32 v2, v1\n", end_program, shape), pyhip, true);
  const std::string b128 = "v_lshlrev_b32_e32 v1, 4, v0\n" + aligned;
  r.add("ds_read_b128, throughput of 1 wave", "clk", 16,
        clk_each(b128, "ds_read_b128 v[4:7], v1\n", end_program, shape), pyhip);
  // Relative to 32 ways, whose clk follow from the bank's rate of one dword a clk.
  const std::pair<uint32_t, double> strides[] = {{1, 358}, {2, 474}, {4, 907}, {8, 1806}, {16, 3601}};
  const auto read = [&](uint32_t dwords) {
    return clk_each(stride(dwords), "ds_read_b32 v2, v1\n", end_program, {.waves = 16, .lds_bytes = 65536});
  };
  const double most = read(32);
  for (const auto &[dwords, microseconds] : strides)
    r.add("ds_read_b32, 16 waves, stride of " + std::to_string(dwords) + " dwords, of 32 dwords' time", "%",
          100 * microseconds / 7196, 100 * read(dwords) / most, pyhip, false,
          dwords == 1 ? "the loop around the reads takes longer than the banks" : "");
}

//===--- Memory -----------------------------------------------------------------------------------------===//

/// Clk of a step of a chain through `lines` lines, over steps `from` to `to`.
double chase(uint32_t lines, uint32_t from, uint32_t to) {
  constexpr uint32_t line = timing::cache_line_bytes;
  constexpr uint32_t unroll = 100;
  Memory memory;
  auto *chain = static_cast<uint32_t *>(memory.allocate(uint64_t(lines) * line));
  for (uint32_t i = 0; i < lines; ++i)
    chain[i * (line / 4)] = (i + 1) % lines * line;
  const std::string source =
      "s_load_dwordx2 s[8:9], s[0:1], 0x0\n s_load_dword s10, s[0:1], 0x8\n v_mov_b32_e32 v1, 0\n"
      "s_waitcnt lgkmcnt(0)\n" +
      aligned + "loop:\n" + repeat(unroll, "global_load_dword v1, v1, s[8:9]\n s_waitcnt vmcnt(0)\n") +
      "s_sub_i32 s10, s10, 1\n s_cmp_lg_u32 s10, 0\n s_cbranch_scc1 loop\n s_endpgm\n";
  const auto run = [&](uint32_t steps) {
    return time_program(source, {}, {reinterpret_cast<uint64_t>(chain), steps / unroll}, {}, memory)
        .simulated_clk;
  };
  return double(run(to) - run(from)) / (to - from);
}

/// Terabytes per second that all compute units read if each reads `set` bytes again and again.
double read_again(uint32_t set) {
  Memory memory;
  const std::array<uint64_t, 8> arguments{reinterpret_cast<uint64_t>(memory.allocate(set)), 0, set - 1};
  const auto run = [&](uint32_t loops) {
    const std::string source =
        "s_load_dwordx2 s[8:9], s[0:1], 0x0\n s_load_dword s11, s[0:1], 0x10\n s_movk_i32 s10, " +
        std::to_string(loops) + "\n v_lshlrev_b32_e32 v1, 4, v0\n s_waitcnt lgkmcnt(0)\n" + aligned +
        "loop:\n" +
        repeat(16, "global_load_dwordx4 v[4:7], v1, s[8:9]\n v_add_u32_e32 v1, 0x4000, v1\n v_and_b32_e32 "
                   "v1, s11, v1\n") +
        "s_sub_i32 s10, s10, 1\n s_cmp_lg_u32 s10, 0\n s_cbranch_scc1 loop\n s_endpgm\n";
    return time_program(source, {.waves = 16}, arguments, {}, memory).simulated_clk;
  };
  const double clk = double(run(12) - run(4));
  const double bytes = 8.0 * 16 * 16 * 1024;
  return bytes / clk * timing::clock_mhz * timing::device_xcds * timing::xcd_compute_units * 1e-6;
}

/// Terabytes per second from HBM if each thread reads one double, with this many threads on a compute unit.
double stream(uint32_t threads) {
  constexpr uint32_t rounds = 24;
  const uint32_t in_workgroup = threads > 1024 ? threads / 2 : threads;
  const uint32_t resident = threads / in_workgroup;
  const uint32_t workgroups = 304 * rounds * resident;
  const uint64_t bytes = uint64_t(workgroups) * in_workgroup * 8;
  Memory memory;
  const auto array = reinterpret_cast<uint64_t>(memory.allocate(bytes));
  const TimingResult result = time_program(
      "s_load_dwordx2 s[8:9], s[0:1], 0x0\n s_mul_i32 s2, s2, " + std::to_string(in_workgroup * 8) +
          "\n v_lshlrev_b32_e32 v1, 3, v0\n v_add_u32_e32 v1, s2, v1\n s_waitcnt lgkmcnt(0)\n"
          "global_load_dwordx2 v[2:3], v1, s[8:9]\n s_waitcnt vmcnt(0)\n v_cmp_eq_f64_e32 vcc, 1.0, v[2:3]\n"
          "s_endpgm\n",
      {.workgroups = workgroups, .lds_bytes = 65536 / resident, .threads = in_workgroup}, {array}, {},
      memory);
  return double(bytes) / result.microseconds() * 1e-6;
}

void add_memory_rows(Rows &r) {
  r.add("pointer chase in the vector cache", "clk", 116, chase(64, 200, 1200), sc25, true);
  r.add("pointer chase in L2", "clk", 208, chase(1024, 1100, 2100), sc25, true);
  r.add("pointer chase in MALL", "clk", 467, chase(40960, 41000, 43000), sc25, true);
  r.add("pointer chase in HBM", "clk", 860, chase(40960, 200, 2200), sc25, true);
  r.add("read from the vector cache, all compute units", "TB/s", 39, read_again(16384), sc25);
  r.add("read from L2, all compute units", "TB/s", 28, read_again(131072), sc25, true);
  const std::pair<uint32_t, double> threads[] = {{64, .283},   {128, .557},   {256, 1.054}, {512, 1.971},
                                                 {1024, 3.09}, {1536, 3.705}, {2048, 4.141}};
  for (const auto &[count, terabytes] : threads)
    r.add("read from HBM, " + std::to_string(count) + " threads on a compute unit", "TB/s", terabytes,
          stream(count), sc25, count == 64 || count == 512 || count == 2048);
}

} // namespace

std::vector<CalibrationRow> calibration_rows(Streams streams) {
  Rows r;
  add_vector_rows(r);
  add_matrix_rows(r);
  add_lds_rows(r);
  if (streams == Streams::all) add_memory_rows(r);
  return std::move(r.rows);
}

} // namespace sluice::test

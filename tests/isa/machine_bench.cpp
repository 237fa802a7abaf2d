//===- machine_bench.cpp - how fast the machine runs loops of one kind ----------------------------------===//
//
// Prints millions of wave-instructions per second of processor time on one thread, with checks off and on.
//
//===----------------------------------------------------------------------------------------------------===//
#include <cstdio>
#include <ctime>

#include "isa/kernel_fixture.h"

namespace {

using namespace sluice;
using namespace sluice::test;

struct Loop {
  const char *name;
  const char *body; // repeated eight times
};

constexpr Loop loops[] = {
    {"f32 fma", "v_fma_f32 v4, v1, v2, v3\n v_fma_f32 v5, v1, v2, v3\n"},
    {"f32 and integer", "v_add_f32 v4, v1, v2\n v_mul_f32 v5, v1, v3\n v_add_u32 v7, v6, v6\n"},
    {"exp2", "v_exp_f32 v4, v1\n s_nop 0\n"},
    {"compare and select", "v_cmp_lt_f32 vcc, v1, v2\n s_nop 1\n v_cndmask_b32 v4, v1, v2, vcc\n"},
    {"permute and convert", "v_perm_b32 v4, v1, v2, v3\n v_cvt_pkrtz_f16_f32 v5, v1, v2\n"},
    {"packed f16 fma", "v_pk_fma_f16 v4, v1, v2, v3\n v_pk_fma_f16 v5, v1, v2, v3\n"},
    {"dpp", "v_add_f32_dpp v4, v1, v2 row_shr:1 row_mask:0xf bank_mask:0xf\n"},
    {"scalar", "s_add_u32 s10, s6, 3\n s_mul_i32 s11, s10, s6\n s_lshl_b64 s[12:13], s[10:11], 3\n"},
    {"ds_read_b128", "ds_read_b128 v[8:11], v6\n s_waitcnt lgkmcnt(0)\n"},
    {"global_load_dwordx4", "global_load_dwordx4 v[8:11], v6, s[8:9]\n s_waitcnt vmcnt(0)\n"},
    {"mfma 32x32x8 f16", "v_mfma_f32_32x32x8_f16 v[16:31], v[12:13], v[14:15], v[16:31]\n"},
};

std::string program_of(const Loop &loop) {
  std::string text = "s_load_dwordx2 s[8:9], s[0:1], 0x0\n s_movk_i32 s6, 0x2000\n v_lshlrev_b32 v6, 4, v0\n"
                     "v_and_b32 v6, 0x3ff, v6\n";
  for (uint32_t r = 1; r < 32; ++r)
    if (r != 6) text += "v_mov_b32 v" + std::to_string(r) + ", 1.0\n";
  text += "ds_write_b128 v6, v[8:11]\n s_waitcnt lgkmcnt(0)\n loop:\n";
  for (uint32_t i = 0; i < 8; ++i)
    text += loop.body;
  return text + "s_sub_i32 s6, s6, 1\n s_cmp_lg_u32 s6, 0\n s_cbranch_scc1 loop\n s_nop 15\n s_endpgm\n";
}

double million_per_second(const TestKernel &kernel, bool checked) {
  Memory memory;
  const std::array<uint64_t, 8> arguments{reinterpret_cast<uint64_t>(memory.allocate(65536))};
  Options options;
  if (!checked) {
    options.checks = Checks::none();
    options.completion = CompletionOrder::early;
  }
  const std::clock_t start = std::clock();
  const LaunchResult result = kernel.run(memory, arguments, {.waves = 1, .lds_bytes = 8192}, options);
  const double seconds = double(std::clock() - start) / CLOCKS_PER_SEC;
  if (!result.ok()) std::fputs(all_text(result).c_str(), stderr);
  return double(result.counters.wave_instructions) / seconds / 1e6;
}

} // namespace

int main() {
  std::printf("%-22s %10s %10s\n", "M instructions/s", "checks off", "checks on");
  for (const Loop &loop : loops) {
    const TestKernel kernel(program_of(loop));
    std::printf("%-22s %10.1f %10.1f\n", loop.name, million_per_second(kernel, false),
                million_per_second(kernel, true));
  }
  return 0;
}

//===- emulator_bench.cpp - how fast the emulator runs --------------------------------------------------===//
//
//   emulator_bench [PACK]
//   emulator_bench CODE-OBJECT KERNEL
//   emulator_bench --timing PACK
//
// Measures loops of one kind of instruction each, and with a pack its attention kernels, or one kernel alone,
// with checks off and on, on one thread and on two. --timing measures the kernels on the timing model, which
// has one thread.
//
//===----------------------------------------------------------------------------------------------------===//
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <span>

#include "emulator/timing/timing.h"
#include "isa/kernel_fixture.h"
#include "kernels/emulated_run.h"
#include "kernels/shipped_kernels.h"

namespace {

using namespace sluice;
using namespace sluice::test;

// 1024 tokens of two heads, no mask: the main loop takes nearly all of the time.
constexpr Problem long_problem{.name = "long",
                               .q_tiles = 4,
                               .q_rest = 0,
                               .kv_len = 1024,
                               .q_heads = 2,
                               .kv_heads = 2,
                               .mask = Problem::none,
                               .lse = true,
                               .values = Problem::usual,
                               .completion = CompletionOrder::late};

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

/// Minimum, median and maximum of five runs, in millions per second of wall-clock time.
struct Speed {
  std::array<double, 5> runs;

  /// `run` returns the number of wave-instructions it ran.
  template <class Run> explicit Speed(Run &&run) {
    for (double &speed : runs) {
      const auto start = std::chrono::steady_clock::now();
      const uint64_t instructions = run();
      const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
      speed = double(instructions) / seconds.count() / 1e6;
    }
    std::sort(runs.begin(), runs.end());
  }
  void print() const { std::printf(" | %.2f (%.2f-%.2f)", runs[2], runs[0], runs[4]); }
};

Options options_of(bool checked, uint32_t threads) {
  Options options;
  options.threads = threads;
  options.count_bank_conflicts = false;
  if (!checked) {
    options.checks = Checks::none();
    options.completion = CompletionOrder::early;
  }
  return options;
}

/// `run` takes options and returns the result of a launch.
template <class Run> void print_line(const std::string &name, Run &&run) {
  std::printf("| %s", name.c_str());
  for (uint32_t threads : {1u, 2u})
    for (bool checked : {false, true}) {
      const Speed speed([&] {
        const LaunchResult result = run(options_of(checked, threads));
        if (!result.ok()) throw std::runtime_error(all_text(result));
        return result.counters.wave_instructions;
      });
      speed.print();
    }
  std::printf(" |\n");
  std::fflush(stdout);
}

void print_timing_line(const ShippedKernel &kernel) {
  const emulator::Program program(kernel.elf);
  AttentionRun run(kernel.entry, long_problem);
  const package::AttentionLaunch call = run.call();
  std::printf("| %s", kernel.name.c_str());
  const Speed speed([&] {
    const auto result = emulator::timing::time_launch(program, call.kernel, call.grid, call.block, 0,
                                                      call.kernarg(), run.device_memory(), {.workgroups = 4});
    if (!result.reports.empty()) throw std::runtime_error(to_text(result.reports.front()));
    return result.wave_instructions;
  });
  speed.print();
  std::printf(" |\n");
  std::fflush(stdout);
}

std::string processor_name() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);)
    if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
  return "unknown processor";
}

void print_emulation(const std::vector<std::string> &files) {
  std::printf("| | 1 thread, checks off | 1 thread, on | 2 threads, off | 2 threads, on |\n"
              "| --- | --- | --- | --- | --- |\n");
  const bool one_kernel = files.size() == 2;
  for (const Loop &loop : std::span(loops).first(one_kernel ? 0 : std::size(loops))) {
    const TestKernel kernel(program_of(loop));
    Memory memory;
    const std::array<uint64_t, 8> arguments{reinterpret_cast<uint64_t>(memory.allocate(65536))};
    print_line(loop.name, [&](const Options &options) {
      return kernel.run(memory, arguments, {.waves = 1, .lds_bytes = 8192, .grid = {4, 1, 1}}, options);
    });
  }
  if (files.empty()) return;
  for (const ShippedKernel &kernel : read_arguments(files)) {
    const emulator::Program program(kernel.elf);
    AttentionRun run(kernel.entry, long_problem);
    print_line(kernel.name, [&](const Options &options) { return run.run(program, options); });
  }
}

void print_timing(const std::vector<std::string> &files) {
  std::printf("| | with the timing model |\n| --- | --- |\n");
  for (const ShippedKernel &kernel : read_arguments(files))
    print_timing_line(kernel);
}

} // namespace

int main(int argc, char **argv) try {
  std::vector<std::string> files(argv + 1, argv + argc);
  const bool timing = !files.empty() && files.front() == "--timing";
  if (timing) files.erase(files.begin());
  std::printf("%s: millions of wave-instructions per second, median (least-most) of five runs\n\n",
              processor_name().c_str());
  if (timing)
    print_timing(files);
  else
    print_emulation(files);
  return 0;
} catch (const std::exception &error) {
  std::fprintf(stderr, "emulator_bench: %s\n", error.what());
  return 1;
}

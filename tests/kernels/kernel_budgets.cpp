//===- kernel_budgets.cpp - limits of every shipped kernel, read off its machine code -------------------===//
//
//   kernel_budgets PACK | CODE-OBJECT KERNEL-NAME
//
//===----------------------------------------------------------------------------------------------------===//
#include "shipped_kernels.h"
#include "support/level.h"
#include "usual_way.h"

#include "emulator/machine/machine.h"
#include "package/dtypes.h"
#include "package/kernargs.h"
#include <sluice/emulator.h>

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <regex>
#include <sstream>
#include <stdexcept>

using namespace sluice;
using namespace sluice::test;
using nlohmann::json;

namespace {

json stats_of(const ShippedKernel &kernel) {
  const size_t size =
      sluice_emulator_kernel_stats(kernel.elf.data(), kernel.elf.size(), kernel.name.c_str(), nullptr, 0);
  std::string text(size, '\0');
  sluice_emulator_kernel_stats(kernel.elf.data(), kernel.elf.size(), kernel.name.c_str(), text.data(),
                               text.size());
  json stats = json::parse(text.c_str());
  if (stats.contains("error")) throw std::runtime_error(stats["error"]);
  return stats;
}

class Verdict {
public:
  explicit Verdict(std::string name) : kernel(std::move(name)) {}

  void require(bool held, const char *rule, const json &seen) {
    if (held) return;
    std::printf("FAILED %s: %s; it has %s\n", kernel.c_str(), rule, seen.dump().c_str());
    failed = true;
  }

  bool failed = false;

private:
  std::string kernel;
};

/// Limits of every kernel.
void check_any(const ShippedKernel &kernel, const json &stats, Verdict &verdict) {
  verdict.require(stats["target"] == "gfx942", "the target leaves xnack and sramecc unspecified",
                  stats["target"]);
  verdict.require(stats["code_object_version"] == 5, "code object version 5", stats["code_object_version"]);
  verdict.require(stats["vgpr_spills"] == 0, "no VGPR spills", stats["vgpr_spills"]);
  verdict.require(stats["instructions"]["SCRATCH"] == 0, "no scratch", stats["instructions"]);
  verdict.require(stats["lds_bytes"] == kernel.entry.lds_bytes, "the manifest knows the LDS",
                  stats["lds_bytes"]);
  verdict.require(stats["occupancy"]["workgroups_per_cu"] >= 1, "a workgroup fits a compute unit",
                  stats["occupancy"]);
  const emulator::Program program(kernel.elf);
  const size_t hazards = emulator::static_reports(program).size();
  verdict.require(hazards == 0, "wait states on every path through the code", hazards);
  const size_t nops = std::ranges::count_if(emulator::nop_states(program),
                                            [](const auto &nop) { return nop.needed != nop.given; });
  verdict.require(nops == 0, "no s_nop with more wait states than a path needs", nops);
}

/// Limits of kernels that neither look up pages nor need more registers than two waves of a SIMD share: other
/// kernels spill scalar registers to lanes of vector registers.
void check_plain(const json &stats, Verdict &verdict) {
  verdict.require(stats["sgpr_spills"] == 0, "no SGPR spills", stats["sgpr_spills"]);
  verdict.require(stats["scratch_bytes"] == 0, "no scratch", stats["scratch_bytes"]);
  verdict.require(stats["agprs"] == 0, "no AccVGPRs", stats["agprs"]);
}

/// Cache operations wait for memory; other waves hide the latency.
bool keeps_cache_op_budgets(const ShippedKernel &kernel) {
  const json stats = stats_of(kernel);
  Verdict verdict(kernel.name);
  check_any(kernel, stats, verdict);
  // Merges of 16-bit parts hold those parts and their conversions, merges to FP8 numbers and their limits,
  // steps two chunks in F32 and the factors of both, and those to FP8 also a division.
  const package::KernelName &name = kernel.entry.name;
  const bool is_step = name.operation == "append_step";
  const bool converts = name.dtype != "f32" || name.to_dtype == "e4m3fnuz";
  const int most = is_step && name.to_dtype != name.dtype                      ? 96
                   : is_step || (name.operation == "merge_states" && converts) ? 80
                                                                               : 72;
  verdict.require(stats["vgprs_allocated"] <= most, "5 to 7 waves per SIMD, so at most 96, 80 or 72 VGPRs",
                  stats["vgprs_allocated"]);
  verdict.require(stats["lds_bytes"] == 0, "no LDS", stats["lds_bytes"]);
  check_plain(stats, verdict);
  verdict.require(stats["kernarg_bytes"] == kernel.entry.kernarg_bytes, "the manifest knows the arguments",
                  stats["kernarg_bytes"]);
  return !verdict.failed;
}

/// Waves that divide the keys have K and V in registers, and use LDS only to join their results. Two of their
/// workgroups fit a compute unit up to head size 128; larger tiles take the registers of a SIMD for one wave.
void check_decode(const package::KernelName &name, const json &stats, Verdict &verdict) {
  verdict.require(stats["lds_bytes"] <= 16384, "at most 16 KiB of LDS to join waves", stats["lds_bytes"]);
  verdict.require(name.head_dim_qk > 128 || stats["vgprs_allocated"] <= 256,
                  "two waves of a SIMD, so at most 256 VGPRs", stats["vgprs_allocated"]);
}

/// Loads that no wave waits for, of the rows of Q of the next workgroup, use separate registers.
void check_rounds(const ShippedKernel &kernel, Verdict &verdict) {
  static const std::regex touch(R"(global_load_dword v255, )"), named(R"(\bv255\b|\bv\[\d+:255\])");
  size_t touches = 0, others = 0;
  std::istringstream lines(emulator::Program(kernel.elf).disassemble(kernel.name));
  for (std::string line; std::getline(lines, line);) {
    if (!std::regex_search(line, named)) continue;
    ++(std::regex_search(line, touch) ? touches : others);
  }
  verdict.require(touches != 0, "the next workgroup's rows of Q are asked for", touches);
  verdict.require(others == 0, "and come to a register that nothing else names", others);
}

bool keeps_budgets(const ShippedKernel &kernel) {
  const json stats = stats_of(kernel);
  Verdict verdict(kernel.name);
  check_any(kernel, stats, verdict);
  if (kernel.entry.name.form.empty() && kernel.entry.name.waves == 8) check_plain(stats, verdict);
  verdict.require(kernel.entry.name.waves < 8 || stats["vgprs_allocated"] <= 256,
                  "8 waves are two per SIMD, so at most 256 VGPRs", stats["vgprs_allocated"]);
  verdict.require(stats["lds_bytes"] <= 65536, "at most 64 KiB of LDS", stats["lds_bytes"]);
  verdict.require(stats["kernarg_bytes"] == sizeof(package::AttentionKernargs),
                  "the manifest knows the arguments", stats["kernarg_bytes"]);
  const UsualWayFigures usual_way = usual_way_figures(kernel);
  verdict.require(usual_way.scalar_spills == 0, "no scalar register saved or restored on the usual way",
                  usual_way.scalar_spills);
  // Heads of 512 leave LDS for one slot: tiles are copied alternately, and awaited alternately.
  const bool takes_turns = kernel.entry.name.head_dim_qk == 512;
  verdict.require(usual_way.waits_for_all_copies == 0 || takes_turns || !kernel.entry.name.is_prefill(),
                  "copies stay in flight on the usual way: no vmcnt(0)", usual_way.waits_for_all_copies);
  const package::KernelName &name = kernel.entry.name;
  if (package::kernel_has_rounds(name.tile_q, name.tile_q / name.waves)) check_rounds(kernel, verdict);
  if (kernel.entry.name.waves_dividing_keys() != 1) check_decode(kernel.entry.name, stats, verdict);
  verdict.require(!stats["loops"].empty(), "there is a loop with MFMAs", stats["loops"]);
  // Where elements are made of blocks, the vector unit has far more to do than the matrix cores.
  const bool unpacks = package::is_in_blocks(name.kv_dtype);
  for (const json &loop : stats["loops"]) {
    verdict.require(loop["instructions"]["PK32"] == 0 || unpacks,
                    "no packed f32, which cannot run beside an MFMA", loop["instructions"]["PK32"]);
    verdict.require(loop["instructions"]["SCRATCH"] == 0, "no scratch in the main loop",
                    loop["instructions"]);
  }
  return !verdict.failed;
}

} // namespace

int main(int argc, char **argv) try {
  int failures = 0;
  const std::vector<ShippedKernel> kernels =
      argc == 2 ? read_all_attention_kernels(argv[1]) : read_arguments({argv + 1, argv + argc});
  size_t checked = 0;
  for (size_t n = 0; n < kernels.size(); ++n) {
    if (!takes(n, 3)) continue;
    failures += !keeps_budgets(kernels[n]);
    ++checked;
  }
  std::vector<ShippedKernel> cache_ops;
  if (argc == 2) cache_ops = read_cache_op_kernels(argv[1]);
  for (const ShippedKernel &kernel : cache_ops)
    failures += !keeps_cache_op_budgets(kernel);
  std::printf("%zu attention kernels and %zu cache operations, %d over budget\n", checked, cache_ops.size(),
              failures);
  return failures == 0 ? 0 : 1;
} catch (const std::exception &error) {
  std::fprintf(stderr, "kernel_budgets: %s\n", error.what());
  return 1;
}

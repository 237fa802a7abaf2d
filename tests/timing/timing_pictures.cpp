//===- timing_pictures.cpp - the pictures of docs/concepts/timing.md ------------------------------------===//
//
//   timing_pictures PACK FOLDER            writes them
//   timing_pictures PACK FOLDER --check    fails unless the folder has the same pictures
//
// Kernels of the pack on 1024 tokens of 64 heads, without a mask.
//
//===----------------------------------------------------------------------------------------------------===//
#include <cstdio>
#include <fstream>
#include <utility>

#include "emulator/timing/timeline.h"
#include "kernels/emulated_run.h"
#include "kernels/shipped_kernels.h"
#include "timing_report/roofline.h"
#include "timing_report/timeline_picture.h"

namespace {

using namespace sluice;
using namespace sluice::test;
using emulator::timing::TimedLaunch;

constexpr const char *timeline_kernel = "attn_fwd_f16_d128_q256_kv64_w8";
constexpr std::string_view roofline_kernels[] = {timeline_kernel, "attn_fwd_f16_d128_q128_kv32_w4",
                                                 "attn_fwd_f16_d64_q128_kv32_w4"};

constexpr Problem problem{.name = "long",
                          .q_tiles = 8,
                          .q_rest = 0,
                          .kv_len = 1024,
                          .q_heads = 64,
                          .kv_heads = 8,
                          .mask = Problem::none,
                          .lse = false,
                          .values = Problem::usual,
                          .completion = emulator::CompletionOrder::late};
constexpr emulator::timing::TimingOptions options{.compute_units = 4};

const ShippedKernel &kernel_named(const std::vector<ShippedKernel> &kernels, std::string_view name) {
  for (const ShippedKernel &kernel : kernels)
    if (kernel.name == name) return kernel;
  throw std::runtime_error("the pack has no kernel " + std::string(name));
}

TimedLaunch time_kernel(const ShippedKernel &kernel, const emulator::Program &program) {
  AttentionRun run(kernel.entry, problem);
  const package::AttentionLaunch call = run.call();
  TimedLaunch launch = emulator::timing::time_launch_with_timeline(
      program, call.kernel, call.grid, call.block, 0, call.kernarg(), run.device_memory(), options, {});
  if (!launch.result.reports.empty()) throw std::runtime_error(to_text(launch.result.reports.front()));
  return launch;
}

struct Picture {
  std::string name;
  std::string svg;
};

std::vector<Picture> draw(const std::vector<ShippedKernel> &kernels) {
  std::vector<Picture> pictures;
  timing_report::Roofline roofline;
  roofline.title = "Attention without a mask, 1024 tokens, 64 heads";
  for (std::string_view name : roofline_kernels) {
    const ShippedKernel &kernel = kernel_named(kernels, name);
    const emulator::Program program(kernel.elf);
    const TimedLaunch launch = time_kernel(kernel, program);
    roofline.add(kernel.name, program, launch.result);
    if (name == timeline_kernel)
      pictures.push_back(
          {"timing_timeline.svg", timing_report::timeline_svg(program, launch.timeline, false)});
  }
  pictures.push_back({"timing_roofline.svg", timing_report::roofline_svg(roofline)});
  return pictures;
}

bool is_fresh(const std::string &path, const std::string &svg) {
  const std::vector<std::byte> bytes = read_file(path);
  return std::string_view(reinterpret_cast<const char *>(bytes.data()), bytes.size()) == svg;
}

} // namespace

int main(int argc, char **argv) try {
  const bool check = argc == 4 && std::string_view(argv[3]) == "--check";
  if (argc != 3 && !check) throw std::runtime_error("usage: timing_pictures PACK FOLDER [--check]");
  bool fresh = true;
  for (const Picture &picture : draw(read_kernels(argv[1]))) {
    const std::string path = std::string(argv[2]) + "/" + picture.name;
    if (!check) {
      if (!(std::ofstream(path, std::ios::binary) << picture.svg))
        throw std::runtime_error("cannot write " + path);
    } else if (!is_fresh(path, picture.svg)) {
      std::fprintf(stderr, "%s differs from the model today; timing_pictures PACK FOLDER writes it again\n",
                   path.c_str());
      fresh = false;
    }
  }
  return fresh ? 0 : 1;
} catch (const std::exception &error) {
  std::fprintf(stderr, "timing_pictures: %s\n", error.what());
  return 1;
}

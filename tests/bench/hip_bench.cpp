//===- hip_bench.cpp - what launches and graphs cost on the emulated HIP runtime ------------------------===//
//
// The kernel is empty, so that only the runtime and the start of a wave are measured. Prints the median
// and the spread of five runs; no test depends on them.
//
//===----------------------------------------------------------------------------------------------------===//
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <string>

#include "emulator/hip/functions.h"
#include "support/files.h"
#include <sluice/emulator.h>

using namespace sluice::emulator::hip;

namespace {

struct Hip {
#define SLUICE_FIELD(name, parameters)                                                                       \
  hipError_t(*name) parameters = reinterpret_cast<hipError_t(*) parameters>(sluice_emulator_symbol(#name));
  SLUICE_HIP_FUNCTIONS(SLUICE_FIELD)
#undef SLUICE_FIELD
};
const Hip hip;

void require(hipError_t error) {
  if (error == hipSuccess) return;
  std::fprintf(stderr, "HIP error %d\n", int(error));
  std::exit(1);
}

std::string cpu_name() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
  }
  return "unknown CPU";
}

/// Microseconds per round of `times` rounds: median, minimum and maximum of five runs.
void measure(const char *what, int times, int pieces, const std::function<void()> &round) {
  std::array<double, 5> microseconds;
  round(); // the first one loads and starts threads
  for (double &result : microseconds) {
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < times; ++i)
      round();
    const std::chrono::duration<double, std::micro> elapsed = std::chrono::steady_clock::now() - begin;
    result = elapsed.count() / times / pieces;
  }
  std::sort(microseconds.begin(), microseconds.end());
  std::printf("| %s | %.2f | %.2f | %.2f |\n", what, microseconds[2], microseconds.front(),
              microseconds.back());
}

/// A graph of kernels, one after the other or all at once.
hipGraphExec_t graph_of(hipFunction_t kernel, int nodes, bool chain) {
  hipGraph_t graph = nullptr;
  require(hip.hipGraphCreate(&graph, 0));
  hipKernelNodeParams parameters{};
  parameters.func = kernel;
  hipGraphNode_t last = nullptr;
  for (int i = 0; i < nodes; ++i) {
    const bool after = chain && i > 0;
    hipGraphNode_t node = nullptr;
    require(hip.hipGraphAddKernelNode(&node, graph, after ? &last : nullptr, after, &parameters));
    last = node;
  }
  hipGraphExec_t exec = nullptr;
  require(hip.hipGraphInstantiate(&exec, graph, nullptr, nullptr, 0));
  require(hip.hipGraphDestroy(graph));
  return exec;
}

void measure_all(hipFunction_t kernel, hipStream_t stream) {
  const auto launch = [&] {
    require(hip.hipModuleLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, stream, nullptr, nullptr));
  };
  const auto wait = [&] { require(hip.hipStreamSynchronize(stream)); };
  measure("launch and synchronise", 2000, 1, [&] { launch(), wait(); });
  measure("launch, of 100 before one synchronisation", 20, 100, [&] {
    for (int i = 0; i < 100; ++i)
      launch();
    wait();
  });
  for (const bool chain : {true, false})
    for (const int nodes : {1, 10, 100, 1000}) {
      if (!chain && nodes == 1) continue;
      const hipGraphExec_t exec = graph_of(kernel, nodes, chain);
      const std::string what =
          "node, of a graph of " + std::to_string(nodes) + (chain ? " in a chain" : " side by side");
      measure(what.c_str(), std::max(2, 1000 / nodes), nodes, [&] {
        require(hip.hipGraphLaunch(exec, stream));
        wait();
      });
      require(hip.hipGraphExecDestroy(exec));
    }
}

} // namespace

int main() {
  const std::vector<std::byte> code = sluice::test::read_file(SLUICE_CODE_OBJECT_HIP_KERNELS);
  hipModule_t module = nullptr;
  hipFunction_t kernel = nullptr;
  hipStream_t stream = nullptr;
  require(hip.hipModuleLoadData(&module, code.data()));
  require(hip.hipModuleGetFunction(&kernel, module, "nothing"));
  require(hip.hipStreamCreate(&stream));
  std::printf("%s; microseconds\n", cpu_name().c_str());
  for (const char *checks : {"all", "none"}) {
    if (sluice_emulator_configure("checks", checks) != SLUICE_EMULATOR_OK) return 1;
    std::printf("\n| checks: %s | median | least | most |\n| --- | ---: | ---: | ---: |\n", checks);
    measure_all(kernel, stream);
  }
  return 0;
}

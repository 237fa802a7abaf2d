//===- run_cost.cpp - what sluice_attention_run costs on the host, without the driver's part ------------===//
//
// The launch goes to a HIP table whose functions return at once. Prints the median and the spread of five
// runs of a million calls each; tests/abi/run_counts_test.cpp asserts the counts.
//
//===----------------------------------------------------------------------------------------------------===//
#include "calls/values.h"
#include "support/test_pack.h"

#include <sluice/sluice.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>

namespace {

constexpr int calls_per_run = 1000000;

int nothing() {
  return 0;
}
int one_device(int *count) {
  *count = 1;
  return 0;
}
int device_attribute(int *value, int attribute, int) {
  *value = attribute == 63   ? 304
           : attribute == 74 ? 65536
                             : 64; // compute units, bytes of LDS, lanes of a wave
  return 0;
}
int properties(void *out, int) {
  std::strcpy(static_cast<char *>(out) + 1160, "gfx942:sramecc+:xnack-");
  return 0;
}
int some_handle(void **out, const void *, const char *) {
  *out = out;
  return 0;
}

void *resolve(const char *name, void *) {
  const std::string wanted = name;
  if (wanted == "hipGetDeviceCount") return reinterpret_cast<void *>(&one_device);
  if (wanted == "hipDeviceGetAttribute") return reinterpret_cast<void *>(&device_attribute);
  if (wanted == "hipGetDevicePropertiesR0600") return reinterpret_cast<void *>(&properties);
  if (wanted == "hipModuleLoadData" || wanted == "hipModuleGetFunction")
    return reinterpret_cast<void *>(&some_handle);
  if (wanted == "hipGetErrorName") return nullptr;
  return reinterpret_cast<void *>(&nothing);
}

std::string cpu_name() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
  }
  return "unknown CPU";
}

void require(sluice_status status, const sluice_error &error) {
  if (status == SLUICE_OK) return;
  std::fprintf(stderr, "%s: %s\n", sluice_status_name(status), error.message);
  std::exit(1);
}

} // namespace

int main() {
  sluice_error error;
  sluice_error_init(&error, sizeof error);
  const std::vector<std::byte> pack = sluice::test::test_pack();
  sluice_context_desc desc;
  sluice_context_desc_init(&desc, sizeof desc);
  desc.kind = SLUICE_DEVICE_HIP;
  desc.hip_resolver = resolve;
  desc.pack = pack.data();
  desc.pack_bytes = pack.size();
  sluice_context *context = nullptr;
  require(sluice_context_create(&desc, &context, &error), error);

  sluice::calls::Problem problem;
  problem.flags = sluice::calls::causal | sluice::calls::write_lse;
  problem.q_type = problem.k_type = problem.v_type = problem.o_type = SLUICE_F16;
  problem.q_heads = 32;
  problem.kv_heads = 8;
  problem.head_dim_qk = problem.head_dim_v = 128;
  sluice_plan *plan = nullptr;
  require(sluice_attention_plan(context, sluice::calls::ProblemValues(problem), &plan, &error), error);

  alignas(16) static unsigned char memory[16];
  sluice::calls::Args args;
  args.scale = sluice::calls::usual_scale(problem);
  args.batch = 4;
  args.q_len = args.kv_len = 2048;
  args.q = args.o = {memory, {2048 * 32 * 128, 32 * 128, 128, 1}};
  args.k = args.v = {memory, {2048 * 8 * 128, 8 * 128, 128, 1}};
  args.lse = {memory, {32 * 2048, 1, 2048, 0}};
  const sluice::calls::ArgsValues values(problem, args);
  sluice_launch launch;
  sluice_launch_init(&launch, sizeof launch);

  std::array<double, 5> nanoseconds;
  for (double &result : nanoseconds) {
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < calls_per_run; ++i)
      require(sluice_attention_run(plan, values, &launch, &error), error);
    const std::chrono::duration<double, std::nano> elapsed = std::chrono::steady_clock::now() - begin;
    result = elapsed.count() / calls_per_run;
  }
  std::sort(nanoseconds.begin(), nanoseconds.end());
  std::printf("sluice_attention_run without the driver: median %.1f ns, from %.1f to %.1f ns, 5 runs of %d "
              "calls, %s\n",
              nanoseconds[2], nanoseconds.front(), nanoseconds.back(), calls_per_run, cpu_name().c_str());
  sluice_plan_destroy(plan);
  sluice_context_destroy(context);
  return 0;
}

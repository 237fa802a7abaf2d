//===- threads_test.cpp - one context and its plans used by many threads --------------------------------===//
//
// Under the thread sanitizer it proves the absence of races; without it, only that the numbers add up.
//
//===----------------------------------------------------------------------------------------------------===//
#include "fixture.h"

#include <atomic>
#include <cstring>
#include <thread>

using namespace sluice::test;

namespace {

std::atomic<int> loads = 0, unloads = 0, launches = 0;

int hip_count(int *count) {
  *count = 1;
  return 0;
}
int hip_device(int *device) {
  *device = 0;
  return 0;
}
int hip_attribute(int *value, int attribute, int) {
  *value = attribute == 87 ? 64 : 65536; // lanes of a wave; compute units and bytes of LDS
  return 0;
}
int hip_properties(void *properties, int) {
  std::strcpy(static_cast<char *>(properties) + 1160, "gfx942");
  return 0;
}
int hip_load(void **module, const void *) {
  *module = FakeHip::handle(size_t(++loads));
  return 0;
}
int hip_unload(void *) {
  ++unloads;
  return 0;
}
int hip_function(void **function, void *module, const char *) {
  *function = module;
  return 0;
}
int hip_launch(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **,
               void **) {
  ++launches;
  return 0;
}
int hip_nothing() {
  return 0;
}

void *resolve(const char *name, void *) {
  const std::string wanted = name;
  if (wanted == "hipGetDeviceCount") return reinterpret_cast<void *>(&hip_count);
  if (wanted == "hipGetDevice") return reinterpret_cast<void *>(&hip_device);
  if (wanted == "hipDeviceGetAttribute") return reinterpret_cast<void *>(&hip_attribute);
  if (wanted == "hipGetDevicePropertiesR0600") return reinterpret_cast<void *>(&hip_properties);
  if (wanted == "hipModuleLoadData") return reinterpret_cast<void *>(&hip_load);
  if (wanted == "hipModuleUnload") return reinterpret_cast<void *>(&hip_unload);
  if (wanted == "hipModuleGetFunction") return reinterpret_cast<void *>(&hip_function);
  if (wanted == "hipModuleLaunchKernel") return reinterpret_cast<void *>(&hip_launch);
  const bool is_required = wanted == "hipInit" || wanted == "hipSetDevice" ||
                           wanted.find("Stream") != wanted.npos || wanted.find("Event") != wanted.npos;
  return is_required ? reinterpret_cast<void *>(&hip_nothing) : nullptr;
}

} // namespace

TEST_CASE("threads share a context and a plan, and each kernel is loaded once", "[threads]") {
  constexpr int thread_count = 8, rounds = 20, runs = 50;
  sluice_context_desc desc = context_desc(SLUICE_DEVICE_HIP);
  desc.hip_resolver = resolve;
  std::atomic<int> messages = 0;
  {
    const ContextHandle context = make_context(desc);
    const PlanHandle shared = make_plan(context, good_call());
    std::atomic<int> failures = 0;
    std::vector<std::thread> threads;
    for (int thread = 0; thread < thread_count; ++thread) {
      threads.emplace_back([&, thread] {
        const AttentionCall call = good_call();
        for (int round = 0; round < rounds; ++round) {
          sluice_set_log([](uint32_t, const char *, void *user) { ++*static_cast<std::atomic<int> *>(user); },
                         &messages, SLUICE_LOG_INFO);
          AttentionCall other = good_call();
          other.attention.q.type = other.attention.o.type = other.format.k.type = other.format.v.type =
              thread % 2 ? SLUICE_F16 : SLUICE_BF16;
          other.attention.bounds.q_len = round % 2 ? 1 : 0;
          sluice_plan *own = nullptr;
          failures += sluice_attention_plan(context.get(), &other.attention, &own, nullptr) != SLUICE_OK;
          for (int i = 0; i < runs; ++i)
            failures += run(shared, call) != SLUICE_OK;
          sluice_plan_destroy(own);
        }
      });
    }
    for (std::thread &thread : threads)
      thread.join();
    CHECK(failures == 0);
    CHECK(loads == 4);
    CHECK(unloads == 0);
    CHECK(launches == thread_count * rounds * runs);
  }
  CHECK(unloads == 4);
  CHECK(messages > 0);
  sluice_set_log(nullptr, nullptr, 0);
}

//===- recorded_plan.cpp - the launches of a plan or an append, without a device ------------------------===//
#include "tools/bench/recorded_plan.h"

#include "calls/values.h"
#include "emulator/hip/types.h"
#include "package/rounds.h"

#include <cassert>
#include <cstdio>
#include <cstring>
#include <stdexcept>
#include <utility>

namespace sluice::tools {

namespace {

namespace hip = emulator::hip;

// Of hipDeviceAttribute_t.
constexpr int attribute_compute_units = 63, attribute_lds_bytes = 74, attribute_wave_size = 87;
// The `extra` array of hipModuleLaunchKernel.
constexpr uintptr_t launch_buffer_pointer = 1, launch_buffer_size = 2, launch_end = 3;

// HIP's functions have no parameter for a caller's pointer.
thread_local RecordedContext *current = nullptr;

void *handle(size_t number) {
  return reinterpret_cast<void *>(number);
}

/// The kernarg block of a launch; the library always passes it in this way.
std::vector<std::byte> kernarg_of(void **extra) {
  const std::byte *from = nullptr;
  size_t bytes = 0;
  for (; extra && *extra != handle(launch_end); extra += 2) {
    if (extra[0] == handle(launch_buffer_pointer)) from = static_cast<const std::byte *>(extra[1]);
    if (extra[0] == handle(launch_buffer_size)) bytes = *static_cast<const size_t *>(extra[1]);
  }
  assert(from || bytes == 0);
  return {from, from + bytes};
}

} // namespace

std::optional<package::AttentionKernargs> RecordedLaunch::attention_arguments() const {
  package::AttentionKernargs arguments{};
  if (kernarg.size() != sizeof arguments) return std::nullopt;
  std::memcpy(&arguments, kernarg.data(), sizeof arguments);
  return arguments;
}

RecordedLaunch RecordedLaunch::without_rounds() const {
  RecordedLaunch plain = *this;
  if (std::optional<package::AttentionKernargs> arguments = attention_arguments()) {
    package::forget_rounds(*arguments, plain.grid);
    std::memcpy(plain.kernarg.data(), &*arguments, sizeof *arguments);
  }
  return plain;
}

/// The entry points for which the library asks.
struct RecordingHip {
  static int hipInit(unsigned) { return hip::hipSuccess; }
  static int hipGetDeviceCount(int *count) {
    *count = 1;
    return hip::hipSuccess;
  }
  static int hipGetDevice(int *device) {
    *device = 0;
    return hip::hipSuccess;
  }
  static int hipSetDevice(int) { return hip::hipSuccess; }
  static int hipDeviceGetAttribute(int *value, int attribute, int) {
    if (attribute == attribute_compute_units)
      *value = int(current->compute_units);
    else if (attribute == attribute_lds_bytes)
      *value = 65536;
    else if (attribute == attribute_wave_size)
      *value = 64;
    else
      return hip::hipErrorInvalidValue;
    return hip::hipSuccess;
  }
  static int hipGetDevicePropertiesR0600(hip::hipDeviceProp_t *properties, int) {
    std::snprintf(properties->gcnArchName, sizeof properties->gcnArchName, "gfx942:sramecc+:xnack-");
    return hip::hipSuccess;
  }
  static int hipModuleLoadData(void **module, const void *) {
    *module = handle(1);
    return hip::hipSuccess;
  }
  static int hipModuleUnload(void *) { return hip::hipSuccess; }
  static int hipModuleGetFunction(void **function, void *, const char *name) {
    current->functions.emplace_back(name);
    *function = handle(current->functions.size());
    return hip::hipSuccess;
  }
  static int hipModuleLaunchKernel(void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                                   unsigned block_x, unsigned block_y, unsigned block_z,
                                   unsigned dynamic_lds_bytes, void *, void **, void **extra) {
    current->launches.push_back({current->functions.at(reinterpret_cast<size_t>(function) - 1),
                                 {grid_x, grid_y, grid_z},
                                 {block_x, block_y, block_z},
                                 dynamic_lds_bytes,
                                 kernarg_of(extra)});
    return hip::hipSuccess;
  }
  static int hipStreamWaitEvent(void *, void *, unsigned) { return hip::hipErrorNotSupported; }
  static int hipStreamIsCapturing(void *, int *status) {
    *status = 0;
    return hip::hipSuccess;
  }
  static int hipEventRecord(void *, void *) { return hip::hipErrorNotSupported; }

  static void *resolve(const char *name, void *) {
#define SLUICE_ENTRY(function)                                                                               \
  if (std::strcmp(name, #function) == 0) return reinterpret_cast<void *>(&function)
    SLUICE_ENTRY(hipInit);
    SLUICE_ENTRY(hipGetDeviceCount);
    SLUICE_ENTRY(hipGetDevice);
    SLUICE_ENTRY(hipSetDevice);
    SLUICE_ENTRY(hipDeviceGetAttribute);
    SLUICE_ENTRY(hipGetDevicePropertiesR0600);
    SLUICE_ENTRY(hipModuleLoadData);
    SLUICE_ENTRY(hipModuleUnload);
    SLUICE_ENTRY(hipModuleGetFunction);
    SLUICE_ENTRY(hipModuleLaunchKernel);
    SLUICE_ENTRY(hipStreamWaitEvent);
    SLUICE_ENTRY(hipStreamIsCapturing);
    SLUICE_ENTRY(hipEventRecord);
#undef SLUICE_ENTRY
    return nullptr;
  }
};

RecordedContext::RecordedContext(const PackFile &pack, uint32_t compute_units)
    : compute_units(compute_units) {
  if (current) throw std::logic_error("this thread has a RecordedContext already");
  current = this;
  try {
    sluice_context_desc desc = {};
    sluice_context_desc_init(&desc, sizeof desc);
    desc.kind = SLUICE_DEVICE_HIP;
    desc.hip_resolver = RecordingHip::resolve;
    desc.pack = pack.content().data();
    desc.pack_bytes = pack.content().size();
    sluice_error error = make_error();
    sluice_context *made = nullptr;
    check(sluice_context_create(&desc, &made, &error), error);
    context.reset(made);
  } catch (...) {
    current = nullptr;
    throw;
  }
}

RecordedContext::~RecordedContext() {
  // The library unloads its modules here.
  context.reset();
  current = nullptr;
}

std::vector<RecordedLaunch> RecordedContext::take_launches() {
  return std::exchange(launches, {});
}

RecordedPlan::RecordedPlan(const PackFile &pack, uint32_t compute_units, const calls::Problem &of)
    : problem(of), context(pack, compute_units) {
  sluice_error error = make_error();
  sluice_plan *made = nullptr;
  check(sluice_attention_plan(context.get(), calls::ProblemValues(problem), &made, &error), error);
  plan.reset(made);
  sluice_plan_info_init(&described, sizeof described);
  check(sluice_plan_describe(made, &described, &error), error);
}

std::vector<RecordedLaunch> RecordedPlan::run(const calls::Args &args, void *workspace) {
  sluice_launch launch;
  sluice_launch_init(&launch, sizeof launch);
  launch.workspace = workspace;
  launch.workspace_bytes = described.workspace_bytes;
  sluice_error error = make_error();
  check(sluice_attention_run(plan.get(), calls::ArgsValues(problem, args), &launch, &error), error);
  return context.take_launches();
}

} // namespace sluice::tools

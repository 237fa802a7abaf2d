//===- LaunchRuntime.cpp - the runtime that lowered host programs call ----------------------------------===//
#include "kernels/launches/LaunchRuntime.h"

#include <limits>

namespace sluice {

using namespace runtime;
using support::Failure;
using support::Status;
using support::text;

namespace {

constexpr unsigned streamNonBlocking = 1, eventDisableTiming = 2;
constexpr HipError injectedError = 999; // hipErrorUnknown

LaunchRuntime *theRuntime = nullptr;

} // namespace

LaunchRuntime::LaunchRuntime(Device opened, const HipSource &source, std::optional<uint64_t> failing)
    : device(std::move(opened)), current(device), failingCall(failing) {
#define SLUICE_BIND(name)                                                                                    \
  name = reinterpret_cast<decltype(name)>(source.resolver(#name, source.user));                              \
  if (!name)                                                                                                 \
  throw Failure(Status::no_device, #name,                                                                    \
                text("the HIP runtime ", source.origin, " has no entry point " #name))
  SLUICE_BIND(hipStreamCreateWithFlags);
  SLUICE_BIND(hipStreamSynchronize);
  SLUICE_BIND(hipStreamDestroy);
  SLUICE_BIND(hipEventCreateWithFlags);
  SLUICE_BIND(hipEventSynchronize);
  SLUICE_BIND(hipEventDestroy);
  SLUICE_BIND(hipHostRegister);
  SLUICE_BIND(hipHostUnregister);
#undef SLUICE_BIND
  theRuntime = this;
}

LaunchRuntime::~LaunchRuntime() {
  finish();
  theRuntime = nullptr;
}

void LaunchRuntime::fail(std::string message) {
  if (firstFailure.empty()) firstFailure = std::move(message);
}

void LaunchRuntime::note(const char *name, HipError error) {
  try {
    check_hip(*device.hip, error, name);
  } catch (const Failure &failure) {
    fail(failure.message());
  }
}

/// True if HIP was called and succeeded.
template <typename Function, typename... Arguments>
bool LaunchRuntime::call(const char *name, Function function, Arguments... arguments) {
  if (!firstFailure.empty()) return false;
  const HipError error = injected() ? injectedError : function(arguments...);
  note(name, error);
  return error == hip_success;
}

/// Calls HIP even after a failure. An injected failure reports an error of a call that took effect, as
/// failures to release do in HIP.
template <typename Function, typename... Arguments>
void LaunchRuntime::release(const char *name, Function function, Arguments... arguments) {
  const HipError error = function(arguments...);
  note(name, injected() ? injectedError : error);
}

void LaunchRuntime::finish() {
  if (firstFailure.empty() && !(streams.empty() && events.empty() && registered.empty()))
    fail(text("the program has left ", uint64_t(streams.size()), " streams, ", uint64_t(events.size()),
              " events and ", uint64_t(registered.size()), " registered memories"));
  while (!events.empty())
    destroyEvent(events.back());
  while (!streams.empty())
    destroyStream(streams.back());
  while (!registered.empty())
    unregisterHost(registered.back());
  for (const auto &[codeObject, module] : modules)
    release("hipModuleUnload", device.hip->hipModuleUnload, module);
  modules.clear();
  kernels.clear();
}

void *LaunchRuntime::createStream() {
  void *stream = nullptr;
  if (!call("hipStreamCreateWithFlags", hipStreamCreateWithFlags, &stream, streamNonBlocking)) return nullptr;
  streams.insert(stream);
  return stream;
}

void LaunchRuntime::synchronizeStream(void *stream) {
  call("hipStreamSynchronize", hipStreamSynchronize, stream);
}

void LaunchRuntime::destroyStream(void *stream) {
  if (!streams.remove(stream)) return fail("the program destroys a stream that is not alive");
  // HIP does not define what happens to the work of a stream that is destroyed.
  release("hipStreamSynchronize", hipStreamSynchronize, stream);
  release("hipStreamDestroy", hipStreamDestroy, stream);
}

void *LaunchRuntime::createEvent() {
  void *event = nullptr;
  if (!call("hipEventCreateWithFlags", hipEventCreateWithFlags, &event, eventDisableTiming)) return nullptr;
  events.insert(event);
  return event;
}

void LaunchRuntime::recordEvent(void *event, void *stream) {
  call("hipEventRecord", device.hip->hipEventRecord, event, stream);
}

void LaunchRuntime::waitForEvent(void *stream, void *event) {
  call("hipStreamWaitEvent", device.hip->hipStreamWaitEvent, stream, event, 0u);
}

void LaunchRuntime::synchronizeEvent(void *event) {
  call("hipEventSynchronize", hipEventSynchronize, event);
}

void LaunchRuntime::destroyEvent(void *event) {
  if (!events.remove(event)) return fail("the program destroys an event that is not alive");
  release("hipEventDestroy", hipEventDestroy, event);
}

/// Modules are loaded at their first launch. Null after a failure.
void *LaunchRuntime::kernelOf(const void *codeObject, const char *kernel) {
  const auto known = kernels.find({codeObject, kernel});
  if (known != kernels.end()) return known->second;
  auto module = modules.find(codeObject);
  if (module == modules.end()) {
    void *loaded = nullptr;
    if (!call("hipModuleLoadData", device.hip->hipModuleLoadData, &loaded, codeObject)) return nullptr;
    module = modules.emplace(codeObject, loaded).first;
  }
  void *function = nullptr;
  if (!call("hipModuleGetFunction", device.hip->hipModuleGetFunction, &function, module->second, kernel))
    return nullptr;
  kernels.emplace(std::pair(codeObject, std::string(kernel)), function);
  return function;
}

void LaunchRuntime::launch(const void *codeObject, const char *kernel, const uint64_t (&grid)[3],
                           const uint64_t (&block)[3], uint32_t ldsBytes, void *stream, void **parameters) {
  for (const auto &extents : {grid, block})
    for (int axis = 0; axis < 3; ++axis)
      if (extents[axis] > std::numeric_limits<unsigned>::max())
        return fail(text("the launch of ", kernel, " has an extent of ", extents[axis]));
  void *function = kernelOf(codeObject, kernel);
  call("hipModuleLaunchKernel", device.hip->hipModuleLaunchKernel, function, unsigned(grid[0]),
       unsigned(grid[1]), unsigned(grid[2]), unsigned(block[0]), unsigned(block[1]), unsigned(block[2]),
       ldsBytes, stream, parameters, nullptr);
}

void LaunchRuntime::registerHost(void *memory, size_t bytes) {
  if (call("hipHostRegister", hipHostRegister, memory, bytes, 0u)) registered.insert(memory);
}

void LaunchRuntime::unregisterHost(void *memory) {
  if (!registered.remove(memory)) return fail("the program unregisters memory that is not registered");
  release("hipHostUnregister", hipHostUnregister, memory);
}

//===-- The functions by name ---------------------------------------------------------------------------===//

namespace {

/// The head of the descriptor of an unranked memref's contents, followed by `rank` sizes and as many strides.
struct MemRef {
  char *allocated;
  char *aligned;
  int64_t offset;
  int64_t sizes[];
};

extern "C" {

void *sluiceRtStreamCreate() {
  return theRuntime->createStream();
}
void sluiceRtStreamSynchronize(void *stream) {
  theRuntime->synchronizeStream(stream);
}
void sluiceRtStreamDestroy(void *stream) {
  if (stream) theRuntime->destroyStream(stream);
}
void *sluiceRtEventCreate() {
  return theRuntime->createEvent();
}
void sluiceRtEventRecord(void *event, void *stream) {
  theRuntime->recordEvent(event, stream);
}
void sluiceRtStreamWaitEvent(void *stream, void *event) {
  theRuntime->waitForEvent(stream, event);
}
void sluiceRtEventSynchronize(void *event) {
  theRuntime->synchronizeEvent(event);
}
void sluiceRtEventDestroy(void *event) {
  if (event) theRuntime->destroyEvent(event);
}
void sluiceRtLaunch(const void *codeObject, const char *kernel, uint64_t gridX, uint64_t gridY,
                    uint64_t gridZ, uint64_t blockX, uint64_t blockY, uint64_t blockZ, uint32_t ldsBytes,
                    void *stream, void **parameters) {
  theRuntime->launch(codeObject, kernel, {gridX, gridY, gridZ}, {blockX, blockY, blockZ}, ldsBytes, stream,
                     parameters);
}

// Upstream's lowering of gpu.host_register and gpu.host_unregister calls these.
void mgpuMemHostRegisterMemRef(int64_t rank, const MemRef *memory, int64_t elementBytes) {
  int64_t bytes = elementBytes;
  for (int64_t axis = 0; axis < rank; ++axis)
    bytes *= memory->sizes[axis];
  theRuntime->registerHost(memory->aligned + memory->offset * elementBytes, size_t(bytes));
}
void mgpuMemHostUnregisterMemRef(int64_t, const MemRef *memory, int64_t elementBytes) {
  theRuntime->unregisterHost(memory->aligned + memory->offset * elementBytes);
}

} // extern "C"

} // namespace

llvm::StringMap<void *> LaunchRuntime::symbols() {
  llvm::StringMap<void *> table;
#define SLUICE_SYMBOL(name) table[#name] = reinterpret_cast<void *>(&name)
  SLUICE_SYMBOL(sluiceRtStreamCreate);
  SLUICE_SYMBOL(sluiceRtStreamSynchronize);
  SLUICE_SYMBOL(sluiceRtStreamDestroy);
  SLUICE_SYMBOL(sluiceRtEventCreate);
  SLUICE_SYMBOL(sluiceRtEventRecord);
  SLUICE_SYMBOL(sluiceRtStreamWaitEvent);
  SLUICE_SYMBOL(sluiceRtEventSynchronize);
  SLUICE_SYMBOL(sluiceRtEventDestroy);
  SLUICE_SYMBOL(sluiceRtLaunch);
  SLUICE_SYMBOL(mgpuMemHostRegisterMemRef);
  SLUICE_SYMBOL(mgpuMemHostUnregisterMemRef);
#undef SLUICE_SYMBOL
  return table;
}

} // namespace sluice

//===- registration.cpp - the code objects, kernels and variables in a program --------------------------===//
#include "emulator/hip/registration.h"

#include <cstring>

#include "emulator/hip/device.h"
#include "emulator/hip/error.h"
#include "emulator/hip/functions.h"

namespace sluice::emulator::hip {

struct ManagedVariable {
  std::string device_name;
  void *memory;
};

struct FatBinary {
  hipError_t failure = hipSuccess; // returned by every use
  const void *image = nullptr;
  hipModule_t module = nullptr; // null until first used
  std::vector<ManagedVariable> managed;
};

namespace {

/// The compiler's entry in .hipFatBinSegment.
struct Wrapper {
  uint32_t magic;
  uint32_t version;
  const void *image;
  void *unused;
};
constexpr uint32_t wrapper_magic = 0x48495046; // "HIPF"
constexpr uint32_t wrapper_version = 1;

void check(hipError_t error) {
  require(error == hipSuccess, error);
}

} // namespace

Registry &Registry::get() {
  static Registry *const instance = new Registry;
  return *instance;
}

FatBinary *Registry::add(const void *wrapper) {
  auto binary = std::make_unique<FatBinary>();
  const auto *const given = static_cast<const Wrapper *>(wrapper);
  if (given == nullptr || given->magic != wrapper_magic || given->version != wrapper_version)
    binary->failure = hipErrorInvalidImage;
  else
    binary->image = given->image;
  const std::lock_guard lock(mutex);
  FatBinary *const handle = binary.get();
  binaries.emplace(handle, std::move(binary));
  return handle;
}

void Registry::remove(FatBinary *handle) {
  std::unique_ptr<FatBinary> binary;
  {
    const std::lock_guard lock(mutex);
    const auto at = binaries.find(handle);
    if (at == binaries.end()) return;
    binary = std::move(at->second);
    binaries.erase(at);
    const auto is_in_binary = [&](const auto &entry) { return entry.second.binary == handle; };
    std::erase_if(kernels, is_in_binary);
    std::erase_if(variables, is_in_binary);
  }
  if (binary->module != nullptr) hipModuleUnload(binary->module);
  for (const ManagedVariable &variable : binary->managed)
    hipHostFree(variable.memory);
}

void Registry::add_kernel(FatBinary *binary, const void *kernel, const char *device_name) {
  const std::lock_guard lock(mutex);
  if (binaries.contains(binary)) kernels[kernel] = {binary, device_name};
}

void Registry::add_variable(FatBinary *binary, const void *variable, const char *device_name) {
  const std::lock_guard lock(mutex);
  if (binaries.contains(binary)) variables[variable] = {binary, device_name};
}

void Registry::add_managed(FatBinary *binary, void **pointer, const void *initial, const char *device_name,
                           size_t size) {
  const std::lock_guard lock(mutex);
  if (!binaries.contains(binary)) return;
  void *memory = nullptr;
  binary->failure = hipHostMalloc(&memory, size, 0);
  if (binary->failure != hipSuccess) return;
  std::memcpy(memory, initial, size);
  *pointer = memory;
  binary->managed.push_back({device_name, memory});
}

/// Device code accesses a managed variable through a pointer that has its name.
hipModule_t Registry::load(FatBinary &binary) {
  check(binary.failure);
  if (binary.module != nullptr) return binary.module;
  hipModule_t module = nullptr;
  check(hipModuleLoadData(&module, binary.image));
  for (const ManagedVariable &variable : binary.managed) {
    hipDeviceptr_t pointer = nullptr;
    size_t size = 0;
    // Optimisation drops the pointer of a variable that no kernel uses.
    if (hipModuleGetGlobal(&pointer, &size, module, variable.device_name.c_str()) != hipSuccess) continue;
    if (size != sizeof variable.memory) {
      hipModuleUnload(module);
      throw Failure(hipErrorInvalidImage);
    }
    std::memcpy(pointer, &variable.memory, size);
    Device::get().memory().mark_written(pointer, size);
  }
  return binary.module = module;
}

bool Registry::has_kernel(const void *kernel) {
  const std::lock_guard lock(mutex);
  return kernels.contains(kernel);
}

hipFunction_t Registry::function(const void *kernel) {
  const std::lock_guard lock(mutex);
  const auto at = kernels.find(kernel);
  require(at != kernels.end(), hipErrorInvalidDeviceFunction);
  hipFunction_t function = nullptr;
  const hipError_t error =
      hipModuleGetFunction(&function, load(*at->second.binary), at->second.device_name.c_str());
  check(error == hipErrorNotFound ? hipErrorInvalidDeviceFunction : error);
  return function;
}

Registry::Variable Registry::variable(const void *symbol) {
  const std::lock_guard lock(mutex);
  const auto at = variables.find(symbol);
  require(at != variables.end(), hipErrorInvalidSymbol);
  hipDeviceptr_t address = nullptr;
  size_t size = 0;
  const hipError_t error =
      hipModuleGetGlobal(&address, &size, load(*at->second.binary), at->second.device_name.c_str());
  check(error == hipErrorNotFound ? hipErrorInvalidSymbol : error);
  return {static_cast<std::byte *>(address), size};
}

} // namespace sluice::emulator::hip

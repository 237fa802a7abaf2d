//===- hip_dropin_check.cpp - libamdhip64 over the emulator, as the dynamic linker sees it --------------===//
//
// usage: hip_dropin_check LIBRARY MAJOR. Checks that every function exists, those of HIP's own libraries with
// the versions that programs linked with them ask for; and that the device is the emulated one.
//
//===----------------------------------------------------------------------------------------------------===//
#include "emulator/hip/functions.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>

using namespace sluice::emulator::hip;

namespace {

void *library = nullptr;
bool failed = false;

void expect(bool condition, const char *what) {
  if (condition) return;
  std::printf("not so: %s\n", what);
  failed = true;
}

#define EXPECT(condition) expect((condition), #condition)

template <typename Function> Function *function(const char *name) {
  return reinterpret_cast<Function *>(dlsym(library, name));
}

struct Versioned {
  const char *name;
  const char *node;
};
constexpr Versioned versions[] = {
    {"hipMalloc", "hip_4.2"},
    {"hipLaunchKernel", "hip_4.2"},
    {"__hipRegisterFatBinary", "hip_4.2"},
    {"hipGetDeviceProperties", "hip_4.2"},
    {"hipStreamIsCapturing", "hip_4.3"},
    {"hipMallocAsync", "hip_5.1"},
    {"hipLaunchHostFunc", "hip_5.3"},
    {"hipGetDevicePropertiesR0600", "hip_6.0"},
    {"hipGetProcAddress", "hip_6.1"},
    {"hipGetFuncBySymbol", "hip_6.2"},
    {"hipExtHostAlloc", "hip_6.3"},
    {"hipEventRecordWithFlags", "hip_6.4"},
    {"hipLaunchKernelExC", "hip_6.5"},
    {"hipModuleGetFunctionCount", "hip_7.1"},
};

} // namespace

int main(int count, char **arguments) {
  if (count != 3) return 2;
  library = dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    std::printf("%s\n", dlerror());
    return 1;
  }
  // Under the name that programs ask for, it is this library.
  char soname[32];
  std::snprintf(soname, sizeof soname, "libamdhip64.so.%s", arguments[2]);
  EXPECT(dlopen(soname, RTLD_NOLOAD | RTLD_NOW) == library);

#define SLUICE_EXPECT(name, parameters) expect(dlsym(library, #name) != nullptr, "there is " #name);
#define SLUICE_EXPECT_REGISTRATION(result, name, parameters) SLUICE_EXPECT(name, parameters)
  SLUICE_HIP_FUNCTIONS(SLUICE_EXPECT)
  SLUICE_HIP_REGISTRATION_FUNCTIONS(SLUICE_EXPECT_REGISTRATION)
  SLUICE_EXPECT(hipGetErrorName, )
  SLUICE_EXPECT(hipGetErrorString, )
  for (const Versioned &version : versions)
    expect(dlvsym(library, version.name, version.node) != nullptr, version.name);
  EXPECT(dlsym(library, "sluice_slot_hipMalloc") == nullptr);
  if (failed) return 1;

  char name[64];
  EXPECT(function<decltype(hipDeviceGetName)>("hipDeviceGetName")(name, sizeof name, 0) == hipSuccess);
  EXPECT(std::strstr(name, "(emulated)") != nullptr);
  void *device = nullptr, *host = nullptr;
  EXPECT(function<decltype(hipMalloc)>("hipMalloc")(&device, 64) == hipSuccess);
  EXPECT(function<decltype(hipHostMalloc)>("hipHostMalloc")(&host, 64, 0) == hipSuccess);
  // HIP 6 inserted "unregistered" before host memory.
  const bool old = std::strcmp(arguments[2], "5") == 0;
  const auto get = function<decltype(hipPointerGetAttributes)>("hipPointerGetAttributes");
  hipPointerAttribute_t attributes;
  EXPECT(get(&attributes, host) == hipSuccess && attributes.type == (old ? 0 : 1));
  EXPECT(get(&attributes, device) == hipSuccess && attributes.type == (old ? 1 : 2));
  EXPECT(get(&attributes, &library) == (old ? hipErrorInvalidValue : hipSuccess));
  EXPECT(get(nullptr, device) == hipErrorInvalidValue);
  return failed ? 1 : 0;
}

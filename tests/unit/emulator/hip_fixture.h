//===- hip_fixture.h - shared by the tests of the HIP functions -----------------------------------------===//
//
// Every function as a pointer of the right type, looked up by name as a program would, and a module with a
// kernel to launch.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include "emulator/hip/functions.h"
#include "support/files.h"
#include <sluice/emulator.h>

#include <catch2/catch.hpp>
#include <string>
#include <vector>

namespace sluice::test {

using namespace sluice::emulator::hip;

// Every HIP function as a pointer of the right type, by its own name.
struct Hip {
#define SLUICE_FIELD(name, parameters)                                                                       \
  hipError_t(*name) parameters = reinterpret_cast<hipError_t(*) parameters>(sluice_emulator_symbol(#name));
  SLUICE_HIP_FUNCTIONS(SLUICE_FIELD)
#undef SLUICE_FIELD
  const char *(*hipGetErrorName)(hipError_t) =
      reinterpret_cast<const char *(*)(hipError_t)>(sluice_emulator_symbol("hipGetErrorName"));
  const char *(*hipGetErrorString)(hipError_t) =
      reinterpret_cast<const char *(*)(hipError_t)>(sluice_emulator_symbol("hipGetErrorString"));
};

inline const Hip hip;

inline const std::vector<std::byte> &two_kernels() {
  static const std::vector<std::byte> bytes = read_file(SLUICE_CODE_OBJECT_HIP_KERNELS);
  return bytes;
}

inline std::string take_reports() {
  std::string text(1 << 20, '\0');
  const size_t size = sluice_emulator_take_reports(text.data(), text.size());
  REQUIRE(size <= text.size());
  text.resize(size - 1);
  return text;
}

inline sluice_emulator_counters_t counters() {
  sluice_emulator_counters_t result;
  REQUIRE(sluice_emulator_counters(&result, sizeof result) == SLUICE_EMULATOR_OK);
  return result;
}

/// The module of two_kernels.s, and a buffer for its kernel `fill`.
struct Fixture {
  hipModule_t module = nullptr;
  hipFunction_t fill = nullptr;
  hipFunction_t nothing = nullptr;
  int *buffer = nullptr;
  static constexpr int elements = 1000;

  Fixture() {
    REQUIRE(hip.hipModuleLoadData(&module, two_kernels().data()) == hipSuccess);
    REQUIRE(hip.hipModuleGetFunction(&fill, module, "fill") == hipSuccess);
    REQUIRE(hip.hipModuleGetFunction(&nothing, module, "nothing") == hipSuccess);
    REQUIRE(hip.hipMalloc(reinterpret_cast<void **>(&buffer), elements * sizeof(int)) == hipSuccess);
    REQUIRE(hip.hipMemset(buffer, 0, elements * sizeof(int)) == hipSuccess);
  }
  ~Fixture() {
    sluice_emulator_configure("clear_fault", "1");
    sluice_emulator_configure("defaults", "1");
    take_reports();
    CHECK(hip.hipFree(buffer) == hipSuccess);
    CHECK(hip.hipModuleUnload(module) == hipSuccess);
    hip.hipGetLastError();
  }

  hipError_t launch(int value, int count, hipStream_t stream = nullptr, void *out = nullptr) const {
    void *target = out ? out : buffer;
    void *parameters[] = {&target, &value, &count};
    return hip.hipModuleLaunchKernel(fill, unsigned(count + 63) / 64, 1, 1, 64, 1, 1, 0, stream, parameters,
                                     nullptr);
  }
  std::vector<int> contents() const {
    std::vector<int> values(elements);
    REQUIRE(hip.hipMemcpy(values.data(), buffer, elements * sizeof(int), hipMemcpyDeviceToHost) ==
            hipSuccess);
    return values;
  }
};

} // namespace sluice::test

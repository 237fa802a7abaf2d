//===- hip_registration_test.cpp - functions that the start-up code of compiled programs calls ----------===//
//
// Called as in clang's code for a program with a kernel and a variable, written by hand.
//
//===----------------------------------------------------------------------------------------------------===//
#include "unit/emulator/hip_fixture.h"

#include <cstring>

using namespace sluice::test;

namespace {

#define SLUICE_POINTER(result, name, parameters)                                                             \
  const auto name = reinterpret_cast<result(*) parameters>(sluice_emulator_symbol(#name));
namespace registration {
SLUICE_HIP_REGISTRATION_FUNCTIONS(SLUICE_POINTER)
} // namespace registration

struct Wrapper {
  uint32_t magic = 0x48495046;
  uint32_t version = 1;
  const void *image = nullptr;
  void *unused = nullptr;
};

// Their addresses identify the kernels and variables.
char fill_stub, missing_stub, unknown_stub;

struct Binary {
  Wrapper wrapper;
  void **handle;

  explicit Binary(const void *image, uint32_t magic = 0x48495046, uint32_t version = 1)
      : wrapper{magic, version, image, nullptr}, handle(registration::__hipRegisterFatBinary(&wrapper)) {
    char name[] = "fill", missing[] = "no_such_kernel";
    registration::__hipRegisterFunction(handle, &fill_stub, name, name, 0, nullptr, nullptr, nullptr, nullptr,
                                        nullptr);
    registration::__hipRegisterFunction(handle, &missing_stub, missing, missing, 0, nullptr, nullptr, nullptr,
                                        nullptr, nullptr);
    registration::__hipRegisterVar(handle, &missing_stub, missing, missing, 0, 4, 0, 0);
  }
  ~Binary() {
    registration::__hipUnregisterFatBinary(handle);
    hip.hipGetLastError();
  }
};

hipError_t launch(const void *stub, int *out, int value) {
  int count = 64;
  void *parameters[] = {&out, &value, &count};
  return hip.hipLaunchKernel(stub, {1, 1, 1}, {64, 1, 1}, parameters, 0, nullptr);
}

} // namespace

TEST_CASE("registered kernels launch until they are unregistered", "[hip]") {
  Fixture fixture;
  {
    const Binary binary(two_kernels().data());
    REQUIRE(launch(&fill_stub, fixture.buffer, 100) == hipSuccess);
    CHECK(fixture.contents()[63] == 163);

    int value = 7, count = 10;
    void *parameters[] = {&fixture.buffer, &value, &count};
    hipLaunchConfig_t config = {{1, 1, 1}, {64, 1, 1}, 0, nullptr, nullptr, 0};
    CHECK(hip.hipLaunchKernelExC(&config, &fill_stub, parameters) == hipSuccess);
    CHECK(fixture.contents()[9] == 16);
    config.numAttrs = 1;
    CHECK(hip.hipLaunchKernelExC(&config, &fill_stub, parameters) == hipErrorNotSupported);
    CHECK(hip.hipLaunchKernelExC(nullptr, &fill_stub, parameters) == hipErrorInvalidValue);

    hipFunction_t function = nullptr;
    CHECK(hip.hipGetFuncBySymbol(&function, &fill_stub) == hipSuccess);
    CHECK(hip.hipModuleLaunchKernel(function, 1, 1, 1, 64, 1, 1, 0, nullptr, parameters, nullptr) ==
          hipSuccess);
    CHECK(hip.hipExtLaunchKernel(&fill_stub, {1, 1, 1}, {64, 1, 1}, parameters, 0, nullptr, nullptr, nullptr,
                                 2) == hipErrorInvalidValue);
    CHECK(hip.hipFuncSetCacheConfig(&fill_stub, 1) == hipSuccess);
    CHECK(hip.hipFuncSetCacheConfig(&fill_stub, 4) == hipErrorInvalidValue);
    CHECK(hip.hipFuncSetSharedMemConfig(&fill_stub, 2) == hipSuccess);
    CHECK(hip.hipFuncSetSharedMemConfig(&fill_stub, 3) == hipErrorInvalidValue);

    CHECK(launch(&unknown_stub, fixture.buffer, 1) == hipErrorInvalidDeviceFunction);
    CHECK(launch(&missing_stub, fixture.buffer, 1) == hipErrorInvalidDeviceFunction);
    size_t size = 0;
    CHECK(hip.hipGetSymbolSize(&size, &missing_stub) == hipErrorInvalidSymbol);
    CHECK(hip.hipGetSymbolSize(&size, &fill_stub) == hipErrorInvalidSymbol);
  }
  CHECK(launch(&fill_stub, fixture.buffer, 1) == hipErrorInvalidDeviceFunction);
  registration::__hipUnregisterFatBinary(nullptr); // which is not a handle
}

TEST_CASE("a fat binary's fault is the error of its first use", "[hip]") {
  std::vector<std::byte> other = two_kernels();
  other[48] = std::byte{0x3f}; // gfx90a
  {
    const Binary binary(other.data());
    CHECK(launch(&fill_stub, nullptr, 1) == hipErrorNoBinaryForGpu);
  }
  {
    const Binary binary(two_kernels().data(), 0x48495047);
    CHECK(launch(&fill_stub, nullptr, 1) == hipErrorInvalidImage);
  }
  {
    const Binary binary(two_kernels().data(), 0x48495046, 2);
    CHECK(launch(&fill_stub, nullptr, 1) == hipErrorInvalidImage);
  }
}

TEST_CASE("call configurations are a stack", "[hip]") {
  dim3 grid, block;
  size_t lds = 0;
  hipStream_t stream = nullptr;
  CHECK(hip.__hipPopCallConfiguration(&grid, &block, &lds, &stream) == hipErrorMissingConfiguration);
  const auto mark = reinterpret_cast<hipStream_t>(uintptr_t{2});
  CHECK(hip.__hipPushCallConfiguration({1, 2, 3}, {4, 5, 6}, 7, mark) == hipSuccess);
  CHECK(hip.__hipPushCallConfiguration({9, 9, 9}, {8, 8, 8}, 0, nullptr) == hipSuccess);
  CHECK(hip.__hipPopCallConfiguration(&grid, &block, &lds, &stream) == hipSuccess);
  CHECK((grid.x == 9 && block.z == 8 && lds == 0 && stream == nullptr));
  CHECK(hip.__hipPopCallConfiguration(&grid, &block, &lds, &stream) == hipSuccess);
  CHECK((grid.x == 1 && grid.y == 2 && grid.z == 3 && block.x == 4 && block.y == 5 && block.z == 6));
  CHECK((lds == 7 && stream == mark));
  CHECK(hip.__hipPopCallConfiguration(&grid, &block, &lds, &stream) == hipErrorMissingConfiguration);
  hip.hipGetLastError();
}

TEST_CASE("the properties of the device in the layout of HIP 5", "[hip]") {
  // Offsets of HIP 5's header.
  std::vector<char> old(792 + 64, '\x5a');
  auto *const properties = reinterpret_cast<hipDeviceProp_tR0000 *>(old.data());
  const auto number = [&](size_t offset) {
    int value;
    std::memcpy(&value, old.data() + offset, sizeof value);
    return value;
  };
  for (const auto get : {hip.hipGetDeviceProperties, hip.hipGetDevicePropertiesR0000}) {
    std::fill(old.begin(), old.end(), '\x5a');
    REQUIRE(get(properties, 0) == hipSuccess);
    CHECK(std::string(old.data() + 396).starts_with("gfx942"));
    CHECK(number(276) == 64);    // warpSize
    CHECK(number(336) == 304);   // multiProcessorCount
    CHECK(number(392) == 942);   // gcnArch
    CHECK(number(264) == 65536); // sharedMemPerBlock
    CHECK(number(768) == 1);     // asicRevision
    CHECK(std::count(old.begin() + 792, old.end(), '\x5a') == 64);
    CHECK(get(properties, 99) == hipErrorInvalidDevice);
    CHECK(get(nullptr, 0) == hipErrorInvalidValue);
  }
  hip.hipGetLastError();
}

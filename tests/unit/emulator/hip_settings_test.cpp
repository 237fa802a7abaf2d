//===- hip_settings_test.cpp - what a device answers, its settings, and its reset -----------------------===//

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <cstring>

#include "unit/emulator/hip_fixture.h"
#include <sluice/emulator.h>

using namespace sluice::test;

namespace {

int attribute(int number) {
  // As many bytes as the widest answer has: the addresses of registers.
  std::array<int, 2> value{-12345, -12345};
  INFO(number);
  CHECK(hip.hipDeviceGetAttribute(value.data(), number, 0) == hipSuccess);
  CHECK(value[0] != -12345);
  return value[0];
}

} // namespace

TEST_CASE("every attribute of HIP 6 and 7 has a value, and no other number does", "[hip]") {
  // hipDeviceAttributeUnused1 to 5, which HIP 5 had for names and identifiers.
  const std::vector<int> unused{64, 86, 10001, 10003, 10004};
  const auto is_unused = [&](int number) { return std::ranges::find(unused, number) != unused.end(); };
  for (const auto &[first, end] : {std::pair{0, 100}, std::pair{10000, 10023}})
    for (int number = first; number < end; ++number)
      if (!is_unused(number)) attribute(number);
  std::vector<int> none = unused;
  none.insert(none.end(), {-1, 100, 9999, 10023, 19999, 20000});
  for (int number : none) {
    INFO(number);
    int value = 77;
    CHECK(hip.hipDeviceGetAttribute(&value, number, 0) == hipErrorInvalidValue);
    CHECK(value == 77);
  }
  hip.hipGetLastError();
}

TEST_CASE("attributes are the properties of the same name, and those of an MI300X", "[hip]") {
  hipDeviceProp_t p;
  REQUIRE(hip.hipGetDevicePropertiesR0600(&p, 0) == hipSuccess);
  CHECK(attribute(15) == p.hostNativeAtomicSupported);
  CHECK(attribute(70) == p.persistingL2CacheMaxSize);
  CHECK(attribute(75) == int(p.sharedMemPerBlockOptin));
  CHECK(attribute(81) == int(p.textureAlignment));
  CHECK(attribute(55) == p.maxThreadsDim[0]);
  CHECK(attribute(10015) == p.multiProcessorCount);
  CHECK(attribute(84) == 0x7fffffff); // TotalGlobalMem, as much of it as an int holds
  CHECK(attribute(10017) == 100000);  // WallClockRate
  CHECK(attribute(10018) == 8);       // NumberOfXccs
  CHECK(attribute(10019) == 512);     // MaxAvailableVgprsPerThread
  CHECK(attribute(10014) == 0);       // ImageSupport
  CHECK(attribute(48) == 0);          // MaxTexture2DMipmap
  CHECK(attribute(92) == -1);         // HostNumaId
  for (int number : {10005, 10006}) { // HdpMemFlushCntl, HdpRegFlushCntl: pointers
    unsigned *flush = reinterpret_cast<unsigned *>(~uintptr_t(0));
    CHECK(hip.hipDeviceGetAttribute(reinterpret_cast<int *>(&flush), number, 0) == hipSuccess);
    CHECK(flush == nullptr);
  }
}

TEST_CASE("the driver's functions give the same texts of errors", "[hip]") {
  const char *text = nullptr;
  CHECK(hip.hipDrvGetErrorName(hipErrorFileNotFound, &text) == hipSuccess);
  CHECK(std::string(text) == "hipErrorFileNotFound");
  CHECK(hip.hipDrvGetErrorString(hipErrorFileNotFound, &text) == hipSuccess);
  CHECK(std::string(text) == hip.hipGetErrorString(hipErrorFileNotFound));
  CHECK(hip.hipDrvGetErrorName(hipError_t(12345), &text) == hipErrorInvalidValue);
  CHECK(text == nullptr);
  CHECK(hip.hipDrvGetErrorString(hipSuccess, nullptr) == hipErrorInvalidValue);
  hip.hipGetLastError();
}

TEST_CASE("limits are kept for each device, within the chip's bounds", "[hip]") {
  size_t value = 0;
  CHECK(hip.hipDeviceGetLimit(&value, hipLimitStackSize) == hipSuccess);
  CHECK(value == 1024);
  CHECK(hip.hipDeviceSetLimit(hipLimitStackSize, 8192) == hipSuccess);
  CHECK(hip.hipDeviceGetLimit(&value, hipLimitStackSize) == hipSuccess);
  CHECK(value == 8192);
  CHECK(hip.hipDeviceSetLimit(hipLimitStackSize, 131057) == hipErrorInvalidValue);
  CHECK(hip.hipDeviceSetLimit(hipLimitMallocHeapSize, 1 << 20) == hipSuccess);
  CHECK(hip.hipDeviceGetLimit(&value, hipLimitMallocHeapSize) == hipSuccess);
  CHECK(value == 1 << 20);
  CHECK(hip.hipDeviceGetLimit(&value, hipLimitPrintfFifoSize) == hipErrorUnsupportedLimit);
  CHECK(hip.hipDeviceSetLimit(hipLimitPrintfFifoSize, 1) == hipErrorUnsupportedLimit);
  CHECK(hip.hipDeviceGetLimit(&value, hipLimit_t(3)) == hipErrorInvalidValue);
  CHECK(hip.hipDeviceGetLimit(nullptr, hipLimitStackSize) == hipErrorInvalidValue);
  CHECK(std::string(hip.hipGetErrorName(hipErrorUnsupportedLimit)) == "hipErrorUnsupportedLimit");
  CHECK(hip.hipDeviceReset() == hipSuccess);
  CHECK(hip.hipDeviceGetLimit(&value, hipLimitStackSize) == hipSuccess);
  CHECK(value == 1024);
  hip.hipGetLastError();
}

TEST_CASE("settings without effect are checked, and flags are kept", "[hip]") {
  int config = -1;
  CHECK(hip.hipDeviceSetCacheConfig(3) == hipSuccess);
  CHECK(hip.hipDeviceSetCacheConfig(4) == hipErrorInvalidValue);
  CHECK(hip.hipDeviceGetCacheConfig(&config) == hipSuccess);
  CHECK(config == 0);
  CHECK(hip.hipDeviceSetSharedMemConfig(2) == hipSuccess);
  CHECK(hip.hipDeviceSetSharedMemConfig(3) == hipErrorInvalidValue);
  CHECK(hip.hipDeviceGetSharedMemConfig(&config) == hipSuccess);
  CHECK(config == 1);
  unsigned flags = 77;
  CHECK(hip.hipSetDeviceFlags(4 | 8) == hipSuccess);
  CHECK(hip.hipGetDeviceFlags(&flags) == hipSuccess);
  CHECK(flags == 12);
  CHECK(hip.hipSetDeviceFlags(3) == hipErrorInvalidValue); // two ways to wait
  CHECK(hip.hipSetDeviceFlags(32) == hipErrorInvalidValue);
  CHECK(hip.hipGetDeviceFlags(nullptr) == hipErrorInvalidValue);
  CHECK(hip.hipSetDeviceFlags(1) == hipSuccess);
  hip.hipGetLastError();
}

TEST_CASE("devices have names of their own", "[hip]") {
  REQUIRE(sluice_emulator_configure("devices", "2") == SLUICE_EMULATOR_OK);
  char id[16], small[12];
  int device = -1;
  CHECK(hip.hipDeviceGetPCIBusId(id, sizeof id, 1) == hipSuccess);
  CHECK(std::string(id) == "0000:01:00.0");
  CHECK(hip.hipDeviceGetPCIBusId(small, sizeof small, 1) == hipErrorInvalidValue);
  CHECK(hip.hipDeviceGetPCIBusId(id, sizeof id, 2) == hipErrorInvalidDevice);
  CHECK(hip.hipDeviceGetByPCIBusId(&device, id) == hipSuccess);
  CHECK(device == 1);
  CHECK(hip.hipDeviceGetByPCIBusId(&device, "0000:02:00.0") == hipErrorInvalidValue);
  hipUUID first, second;
  CHECK(hip.hipDeviceGetUuid(&first, 0) == hipSuccess);
  CHECK(hip.hipDeviceGetUuid(&second, 1) == hipSuccess);
  CHECK(std::memcmp(&first, &second, sizeof first) != 0);
  hipDeviceProp_t properties;
  CHECK(hip.hipGetDevicePropertiesR0600(&properties, 1) == hipSuccess);
  CHECK(std::memcmp(properties.uuid, &second, sizeof second) == 0);
  int major = 0, minor = 0;
  CHECK(hip.hipDeviceComputeCapability(&major, &minor, 1) == hipSuccess);
  CHECK((major == 9 && minor == 4));
  CHECK(hip.hipDeviceComputeCapability(nullptr, &minor, 0) == hipErrorInvalidValue);
  CHECK(sluice_emulator_configure("devices", "1") == SLUICE_EMULATOR_OK);
  CHECK(hip.hipExtGetLastError() == hipErrorInvalidValue);
  CHECK(hip.hipExtGetLastError() == hipSuccess);
}

TEST_CASE("a reset frees a device's memory and closes its streams, and no other's", "[hip]") {
  REQUIRE(sluice_emulator_configure("devices", "2") == SLUICE_EMULATOR_OK);
  void *kept = nullptr, *freed = nullptr, *from_pool = nullptr;
  hipStream_t kept_stream = nullptr, closed = nullptr;
  REQUIRE(hip.hipMalloc(&kept, 64) == hipSuccess);
  REQUIRE(hip.hipStreamCreate(&kept_stream) == hipSuccess);
  REQUIRE(hip.hipSetDevice(1) == hipSuccess);
  REQUIRE(hip.hipMalloc(&freed, 64) == hipSuccess);
  REQUIRE(hip.hipStreamCreate(&closed) == hipSuccess);
  REQUIRE(hip.hipMallocAsync(&from_pool, 64, closed) == hipSuccess);
  REQUIRE(hip.hipDeviceEnablePeerAccess(0, 0) == hipSuccess);

  CHECK(hip.hipDeviceReset() == hipSuccess);
  CHECK(hip.hipFree(freed) == hipErrorInvalidValue);
  CHECK(hip.hipFree(from_pool) == hipErrorInvalidValue);
  CHECK(hip.hipStreamSynchronize(closed) == hipErrorInvalidHandle);
  CHECK(hip.hipDeviceDisablePeerAccess(0) == hipErrorPeerAccessNotEnabled);
  hipMemPool_t pool = nullptr;
  uint64_t used = 77;
  CHECK(hip.hipDeviceGetMemPool(&pool, 1) == hipSuccess);
  CHECK(hip.hipMemPoolGetAttribute(pool, hipMemPoolAttrUsedMemCurrent, &used) == hipSuccess);
  CHECK(used == 0);
  CHECK(hip.hipMalloc(&freed, 64) == hipSuccess); // the device can be used again
  CHECK(hip.hipFree(freed) == hipSuccess);

  REQUIRE(hip.hipSetDevice(0) == hipSuccess);
  CHECK(hip.hipStreamDestroy(kept_stream) == hipSuccess);
  CHECK(hip.hipFree(kept) == hipSuccess);
  CHECK(sluice_emulator_configure("devices", "1") == SLUICE_EMULATOR_OK);
  hip.hipGetLastError();
}

//===- hip_device_test.cpp - the device, its errors and its settings ------------------------------------===//

#include <array>
#include <catch2/catch.hpp>
#include <cstring>
#include <thread>
#include <utility>

#include "unit/emulator/hip_fixture.h"
#include <sluice/emulator.h>

using namespace sluice::test;

TEST_CASE("every function is found by its name, and nothing else is", "[hip]") {
#define SLUICE_CHECK(name, parameters) CHECK(sluice_emulator_symbol(#name) != nullptr);
  SLUICE_HIP_FUNCTIONS(SLUICE_CHECK)
#undef SLUICE_CHECK
  CHECK(hip.hipGetErrorName != nullptr);
  CHECK(hip.hipGetErrorString != nullptr);
  for (const char *name :
       {"sluice_emulator_symbol", "sluice_emulator_configure", "sluice_emulator_counters",
        "sluice_emulator_take_reports", "sluice_emulator_kernel_stats", "sluice_emulator_disassemble",
        "sluice_emulator_mfma_count", "sluice_emulator_watch", "sluice_emulator_unwatch"})
    CHECK(sluice_emulator_symbol(name) != nullptr);
#define SLUICE_CHECK(result, name, parameters) CHECK(sluice_emulator_symbol(#name) != nullptr);
  SLUICE_HIP_REGISTRATION_FUNCTIONS(SLUICE_CHECK)
#undef SLUICE_CHECK
  for (const char *name : {"hipNoSuchFunction", "", "malloc"})
    CHECK(sluice_emulator_symbol(name) == nullptr);
  CHECK(sluice_emulator_symbol(nullptr) == nullptr);
}

TEST_CASE("the device describes itself as an MI300X", "[hip]") {
  int value = -1;
  CHECK(hip.hipInit(0) == hipSuccess);
  CHECK(hip.hipInit(1) == hipErrorInvalidValue);
  CHECK(hip.hipGetDeviceCount(&value) == hipSuccess);
  CHECK(value == 1);
  CHECK(hip.hipRuntimeGetVersion(&value) == hipSuccess);
  CHECK(value / 10000000 == 7);
  CHECK(hip.hipDriverGetVersion(&value) == hipSuccess);
  CHECK(hip.hipSetDevice(0) == hipSuccess);
  CHECK(hip.hipSetDevice(1) == hipErrorInvalidDevice);
  CHECK(hip.hipGetDevice(&value) == hipSuccess);
  CHECK(value == 0);
  CHECK(hip.hipDeviceGet(&value, 0) == hipSuccess);
  CHECK(hip.hipDeviceGet(&value, -1) == hipErrorInvalidDevice);
  auto attribute = [](int number) {
    int result = -1;
    CHECK(hip.hipDeviceGetAttribute(&result, number, 0) == hipSuccess);
    return result;
  };
  CHECK(attribute(87) == 64);
  CHECK(attribute(63) == 304);
  CHECK(attribute(74) == 65536);
  CHECK(attribute(5) == 2100000);
  CHECK(attribute(19) == 4 << 20);
  CHECK(attribute(23) == 9);
  CHECK(attribute(61) == 4);
  CHECK(hip.hipDeviceGetAttribute(&value, 12345, 0) == hipErrorInvalidValue);
  CHECK(hip.hipDeviceGetAttribute(nullptr, 87, 0) == hipErrorInvalidValue);
  CHECK(hip.hipDeviceGetAttribute(&value, 87, 1) == hipErrorInvalidDevice);

  char name[256];
  CHECK(hip.hipDeviceGetName(name, sizeof name, 0) == hipSuccess);
  CHECK(std::string(name).find("MI300X") != std::string::npos);
  char small[4] = {1, 1, 1, 1};
  CHECK(hip.hipDeviceGetName(small, 3, 0) == hipSuccess);
  CHECK(small[2] == 0);
  CHECK(small[3] == 1);
  CHECK(hip.hipDeviceGetName(nullptr, 3, 0) == hipErrorInvalidValue);

  // Read by offset, like a caller without HIP's headers.
  std::array<unsigned char, 1472 + 16> raw;
  raw.fill(0xee);
  CHECK(hip.hipGetDevicePropertiesR0600(reinterpret_cast<hipDeviceProp_t *>(raw.data()), 0) == hipSuccess);
  auto word = [&raw](size_t offset) {
    int result;
    std::memcpy(&result, raw.data() + offset, sizeof result);
    return result;
  };
  CHECK(std::string(reinterpret_cast<const char *>(raw.data() + 1160)) == "gfx942:sramecc+:xnack-");
  CHECK(word(308) == 64);
  CHECK(word(388) == 304);
  CHECK(word(296) == 65536);
  CHECK(word(616) == 4 << 20);
  CHECK(raw[1472] == 0xee);
  size_t memory = 0;
  std::memcpy(&memory, raw.data() + 288, sizeof memory);
  size_t free_bytes = 0;
  size_t total = 0;
  CHECK(hip.hipMemGetInfo(&free_bytes, &total) == hipSuccess);
  CHECK(total == memory);
  CHECK(hip.hipDeviceTotalMem(&total, 0) == hipSuccess);
  CHECK(total == memory);
  CHECK(hip.hipGetDevicePropertiesR0600(nullptr, 0) == hipErrorInvalidValue);
  hip.hipGetLastError();
}

TEST_CASE("the last error is each thread's own and only reading it clears it", "[hip]") {
  hip.hipGetLastError();
  CHECK(hip.hipSetDevice(7) == hipErrorInvalidDevice);
  CHECK(hip.hipSetDevice(0) == hipSuccess);
  CHECK(hip.hipPeekAtLastError() == hipErrorInvalidDevice);
  std::thread([] { CHECK(hip.hipPeekAtLastError() == hipSuccess); }).join();
  CHECK(hip.hipGetLastError() == hipErrorInvalidDevice);
  CHECK(hip.hipGetLastError() == hipSuccess);
  CHECK(std::string(hip.hipGetErrorName(hipErrorNoBinaryForGpu)) == "hipErrorNoBinaryForGpu");
  CHECK(std::string(hip.hipGetErrorName(hipError_t(12345))) == "hipErrorUnknown");
  CHECK(std::string(hip.hipGetErrorString(hipErrorOutOfMemory)) == "out of memory");
  CHECK(std::string(hip.hipGetErrorString(hipError_t(-3))) == "unknown error");
}

TEST_CASE("settings are taken by name, and refused by name", "[hip]") {
  for (const auto &[key, value] :
       std::vector<std::pair<const char *, const char *>>{{"checks", "all"},
                                                          {"checks", "none"},
                                                          {"checks", "lds_races,pending"},
                                                          {"lds_races", "off"},
                                                          {"completion", "random"},
                                                          {"completion", "early"},
                                                          {"completion", "late"},
                                                          {"seed", "17"},
                                                          {"threads", "2"},
                                                          {"instruction_budget", "1000000"},
                                                          {"max_reports", "5"},
                                                          {"count_bank_conflicts", "off"},
                                                          {"perturb_transcendentals", "on"},
                                                          {"preload_kernargs", "off"},
                                                          {"scramble_nans", "on"},
                                                          {"reset_counters", "1"},
                                                          {"defaults", "1"}}) {
    INFO(key << " = " << value);
    CHECK(sluice_emulator_configure(key, value) == SLUICE_EMULATOR_OK);
  }
  CHECK(sluice_emulator_configure("no such key", "1") == SLUICE_EMULATOR_UNKNOWN_KEY);
  CHECK(sluice_emulator_configure(nullptr, "1") == SLUICE_EMULATOR_UNKNOWN_KEY);
  for (const auto &[key, value] :
       std::vector<std::pair<const char *, const char *>>{{"checks", "lds_races,typo"},
                                                          {"lds_races", "maybe"},
                                                          {"completion", "never"},
                                                          {"seed", "1x"},
                                                          {"seed", ""},
                                                          {"threads", "-1"},
                                                          {"max_reports", "99999999999"},
                                                          {"clear_fault", "0"}}) {
    INFO(key << " = " << value);
    CHECK(sluice_emulator_configure(key, value) == SLUICE_EMULATOR_BAD_VALUE);
  }
  CHECK(sluice_emulator_configure("seed", nullptr) == SLUICE_EMULATOR_BAD_VALUE);
  sluice_emulator_counters_t counters;
  CHECK(sluice_emulator_counters(nullptr, sizeof counters) == SLUICE_EMULATOR_BAD_VALUE);
  CHECK(sluice_emulator_counters(&counters, sizeof counters + 1) == SLUICE_EMULATOR_BAD_VALUE);
  // A caller that knows fewer counters gets only those.
  counters.launches = 12345;
  CHECK(sluice_emulator_counters(&counters, offsetof(sluice_emulator_counters_t, launches)) ==
        SLUICE_EMULATOR_OK);
  CHECK(counters.launches == 12345);
}

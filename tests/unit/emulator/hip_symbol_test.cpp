//===- hip_symbol_test.cpp - functions by name and version ----------------------------------------------===//

#include <catch2/catch.hpp>
#include <dlfcn.h>
#include <set>

#include "unit/emulator/hip_fixture.h"

using namespace sluice::test;

namespace {

struct Found {
  hipError_t error;
  void *function;
  hipDriverProcAddressQueryResult status;
};

Found find(const char *name, int version = 702, uint64_t flags = 0) {
  Found found{hipSuccess, &found, HIP_GET_PROC_ADDRESS_SUCCESS};
  found.error = hip.hipGetProcAddress(name, &found.function, version, flags, &found.status);
  hip.hipGetLastError();
  return found;
}

} // namespace

TEST_CASE("the library's own functions have its generation as their version", "[hip][symbol]") {
  void *const library = dlopen("libsluice_emulator.so.1", RTLD_NOW | RTLD_NOLOAD);
  REQUIRE(library != nullptr);
  for (const char *name :
       {"sluice_emulator_configure", "sluice_emulator_counters", "sluice_emulator_disassemble",
        "sluice_emulator_kernel_stats", "sluice_emulator_mfma_count", "sluice_emulator_symbol",
        "sluice_emulator_take_reports", "sluice_emulator_unwatch", "sluice_emulator_watch"}) {
    INFO(name);
    CHECK(dlvsym(library, name, "SLUICE_EMULATOR_1") == sluice_emulator_symbol(name));
    CHECK(sluice_emulator_symbol(name) != nullptr);
  }
  dlclose(library);
}

TEST_CASE("every function is found by its name", "[hip][symbol]") {
  std::set<std::string> names{"hipGetErrorName", "hipGetErrorString"};
#define SLUICE_NAME(name, parameters) names.insert(#name);
  SLUICE_HIP_FUNCTIONS(SLUICE_NAME)
#undef SLUICE_NAME
  names.erase("hipGetDeviceProperties"); // an alias of another one
  for (const std::string &name : names) {
    INFO(name);
    const Found found = find(name.c_str());
    CHECK(found.error == hipSuccess);
    CHECK(found.status == HIP_GET_PROC_ADDRESS_SUCCESS);
    CHECK(found.function == sluice_emulator_symbol(name.c_str()));
  }
}

TEST_CASE("a caller finds the functions of its version of HIP", "[hip][symbol]") {
  for (const auto &[name, since] : std::vector<std::pair<const char *, int>>{{"hipMalloc", 402},
                                                                             {"hipStreamBeginCapture", 403},
                                                                             {"hipMallocAsync", 501},
                                                                             {"hipLaunchHostFunc", 503},
                                                                             {"hipGetProcAddress", 601},
                                                                             {"hipLaunchKernelExC", 605}}) {
    INFO(name);
    const Found before = find(name, since - 1);
    CHECK(before.error == hipErrorInvalidValue);
    CHECK(before.status == HIP_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
    CHECK(before.function == nullptr);
    CHECK(find(name, since).function == sluice_emulator_symbol(name));
  }
  // The layout of the properties changed with HIP 6.
  CHECK(find("hipGetDeviceProperties", 507).function == sluice_emulator_symbol("hipGetDeviceProperties"));
  CHECK(find("hipGetDeviceProperties", 599).function == sluice_emulator_symbol("hipGetDeviceProperties"));
  CHECK(find("hipGetDeviceProperties", 600).function ==
        sluice_emulator_symbol("hipGetDevicePropertiesR0600"));
  CHECK(find("hipGetDevicePropertiesR0600", 599).status == HIP_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
}

TEST_CASE("unknown functions of HIP and of the emulator are not found", "[hip][symbol]") {
  for (const char *name :
       {"hipNoSuchFunction", "hipmalloc", "hipTexObjectCreate", "sluice_emulator_configure"}) {
    INFO(name);
    const Found found = find(name);
    CHECK(found.error == hipErrorInvalidValue);
    CHECK(found.status == HIP_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
    CHECK(found.function == nullptr);
  }
  void *function = nullptr;
  CHECK(hip.hipGetProcAddress("hipMalloc", &function, 601, 0, nullptr) ==
        hipSuccess); // the status is optional
  CHECK(function == sluice_emulator_symbol("hipMalloc"));
  CHECK(hip.hipGetProcAddress(nullptr, &function, 601, 0, nullptr) == hipErrorInvalidValue);
  CHECK(hip.hipGetProcAddress("", &function, 601, 0, nullptr) == hipErrorInvalidValue);
  CHECK(hip.hipGetProcAddress("hipMalloc", nullptr, 601, 0, nullptr) == hipErrorInvalidValue);
  CHECK(find("hipMalloc", 0).error == hipErrorInvalidValue);
  CHECK(find("hipMalloc", 601, 1).error == hipErrorInvalidValue);
  hip.hipGetLastError();
}

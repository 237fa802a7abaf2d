//===- hip_test.cpp - HIP's functions on the emulated device, reached by name ---------------------------===//

#include "emulator/emulator.h"
#include "emulator/hip/functions.h"

#include <array>
#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "package/offload_bundle.h"

using namespace sluice::emulator::hip;

namespace {

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

const Hip hip;

std::vector<std::byte> read_file(const char *path) {
  std::ifstream file(path, std::ios::binary);
  REQUIRE(file);
  const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  const auto *start = reinterpret_cast<const std::byte *>(text.data());
  return {start, start + text.size()};
}

const std::vector<std::byte> &two_kernels() {
  static const std::vector<std::byte> bytes = read_file(SLUICE_CODE_OBJECT_HIP_KERNELS);
  return bytes;
}

std::string take_reports() {
  std::string text(1 << 20, '\0');
  const size_t size = sluice_emulator_take_reports(text.data(), text.size());
  REQUIRE(size <= text.size());
  text.resize(size - 1);
  return text;
}

sluice_emulator_counters_t counters() {
  sluice_emulator_counters_t result;
  REQUIRE(sluice_emulator_counters(&result) == SLUICE_EMULATOR_OK);
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

} // namespace

TEST_CASE("every function is found by its name, and nothing else is", "[hip]") {
#define SLUICE_CHECK(name, parameters) CHECK(sluice_emulator_symbol(#name) != nullptr);
  SLUICE_HIP_FUNCTIONS(SLUICE_CHECK)
#undef SLUICE_CHECK
  CHECK(hip.hipGetErrorName != nullptr);
  CHECK(hip.hipGetErrorString != nullptr);
  for (const char *name :
       {"sluice_emulator_symbol", "sluice_emulator_configure", "sluice_emulator_counters",
        "sluice_emulator_take_reports", "sluice_emulator_kernel_stats", "sluice_emulator_disassemble"})
    CHECK(sluice_emulator_symbol(name) != nullptr);
  // The plain name has another layout in HIP, so it must not be served with this one.
  for (const char *name :
       {"hipGetDeviceProperties", "hipGetDevicePropertiesR0000", "hipNoSuchFunction", "", "malloc"})
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

  // As a caller without HIP's headers reads it: by offset.
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

TEST_CASE("memory is allocated, copied, set and freed", "[hip]") {
  size_t before = 0;
  size_t total = 0;
  REQUIRE(hip.hipMemGetInfo(&before, &total) == hipSuccess);
  char *device = nullptr;
  REQUIRE(hip.hipMalloc(reinterpret_cast<void **>(&device), 4096) == hipSuccess);
  REQUIRE(device != nullptr);
  size_t during = 0;
  hip.hipMemGetInfo(&during, &total);
  CHECK(before - during >= 4096);

  std::vector<char> host(4096, 'a');
  std::vector<char> back(4096);
  CHECK(hip.hipMemcpy(device, host.data(), 4096, hipMemcpyHostToDevice) == hipSuccess);
  CHECK(hip.hipMemset(device + 100, 'b', 50) == hipSuccess);
  CHECK(hip.hipMemsetD32(device + 200, 0x64636261, 2) == hipSuccess);
  CHECK(hip.hipMemsetD16(device + 300, 0x6665, 1) == hipSuccess);
  CHECK(hip.hipMemsetD8(device + 400, 'z', 1) == hipSuccess);
  CHECK(hip.hipMemcpyDtoH(back.data(), device, 4096) == hipSuccess);
  CHECK(std::string(back.data() + 99, 3) == "abb");
  CHECK(std::string(back.data() + 149, 2) == "ba");
  CHECK(std::string(back.data() + 199, 10) == "aabcdabcda");
  CHECK(std::string(back.data() + 299, 4) == "aefa");
  CHECK(std::string(back.data() + 399, 3) == "aza");
  CHECK(hip.hipMemcpyDtoD(device + 1000, device + 99, 3) == hipSuccess);
  CHECK(hip.hipMemcpy(back.data(), device + 1000, 3, hipMemcpyDefault) == hipSuccess);
  CHECK(std::string(back.data(), 3) == "abb");
  CHECK(hip.hipMemcpyHtoD(device, back.data(), 3) == hipSuccess);
  CHECK(hip.hipMemcpy(nullptr, nullptr, 0, hipMemcpyHostToHost) == hipSuccess);

  SECTION("an overrun is refused, and nothing is written") {
    CHECK(hip.hipMemcpy(device + 1, host.data(), 4096, hipMemcpyHostToDevice) == hipErrorInvalidValue);
    CHECK(hip.hipMemcpy(host.data(), device + 4000, 97, hipMemcpyDeviceToHost) == hipErrorInvalidValue);
    CHECK(hip.hipMemcpy(device, device + 4000, 97, hipMemcpyDefault) == hipErrorInvalidValue);
    CHECK(hip.hipMemset(device + 4096, 0, 1) == hipErrorInvalidValue);
    CHECK(hip.hipMemsetD32(device, 0, ~size_t(0)) == hipErrorInvalidValue);
    CHECK(hip.hipMemcpyHtoDAsync(device + 4095, host.data(), 2, nullptr) == hipErrorInvalidValue);
  }
  SECTION("wrong pointers and directions are refused") {
    CHECK(hip.hipMemcpy(host.data(), back.data(), 10, hipMemcpyHostToDevice) == hipErrorInvalidValue);
    CHECK(hip.hipMemcpy(device, host.data(), 10, hipMemcpyKind(9)) == hipErrorInvalidMemcpyDirection);
    CHECK(hip.hipMemcpy(nullptr, host.data(), 10, hipMemcpyHostToDevice) == hipErrorInvalidValue);
    CHECK(hip.hipMemset(nullptr, 0, 10) == hipErrorInvalidValue);
    CHECK(hip.hipFree(device + 1) == hipErrorInvalidValue);
    CHECK(hip.hipFree(host.data()) == hipErrorInvalidValue);
    CHECK(hip.hipHostFree(device) == hipErrorInvalidValue);
    CHECK(hip.hipMalloc(nullptr, 10) == hipErrorInvalidValue);
    void *huge = &huge;
    CHECK(hip.hipMalloc(&huge, size_t(1) << 60) == hipErrorOutOfMemory);
  }
  CHECK(hip.hipFree(device) == hipSuccess);
  CHECK(hip.hipFree(device) == hipErrorInvalidValue);
  CHECK(hip.hipMemset(device, 0, 1) == hipErrorInvalidValue);
  CHECK(hip.hipFree(nullptr) == hipSuccess);
  void *empty = &empty;
  CHECK(hip.hipMalloc(&empty, 0) == hipSuccess);
  CHECK(empty == nullptr);
  hip.hipMemGetInfo(&during, &total);
  CHECK(during == before);
  hip.hipGetLastError();
}

TEST_CASE("host memory is pinned, registered and told from device memory", "[hip]") {
  void *pinned = nullptr;
  void *device = nullptr;
  REQUIRE(hip.hipHostMalloc(&pinned, 8192, 0) == hipSuccess);
  REQUIRE(hip.hipMalloc(&device, 64) == hipSuccess);
  std::memset(pinned, 1, 8192);
  hipPointerAttribute_t attributes;
  CHECK(hip.hipPointerGetAttributes(&attributes, static_cast<char *>(pinned) + 8191) == hipSuccess);
  CHECK(attributes.type == hipMemoryTypeHost);
  CHECK(hip.hipPointerGetAttributes(&attributes, device) == hipSuccess);
  CHECK(attributes.type == hipMemoryTypeDevice);
  CHECK(attributes.devicePointer == device);
  CHECK(hip.hipPointerGetAttributes(&attributes, &attributes) == hipSuccess);
  CHECK(attributes.type == hipMemoryTypeUnregistered);
  void *alias = nullptr;
  CHECK(hip.hipHostGetDevicePointer(&alias, pinned, 0) == hipSuccess);
  CHECK(alias == pinned);
  CHECK(hip.hipFree(pinned) == hipErrorInvalidValue);
  CHECK(hip.hipHostUnregister(pinned) == hipErrorHostMemoryNotRegistered);
  CHECK(hip.hipHostFree(pinned) == hipSuccess);
  CHECK(hip.hipHostFree(pinned) == hipErrorInvalidValue);

  std::vector<char> own(10000);
  CHECK(hip.hipHostRegister(own.data(), own.size(), 0) == hipSuccess);
  CHECK(hip.hipHostRegister(own.data() + 10, 10, 0) == hipErrorHostMemoryAlreadyRegistered);
  CHECK(hip.hipPointerGetAttributes(&attributes, own.data() + 5000) == hipSuccess);
  CHECK(attributes.type == hipMemoryTypeHost);
  CHECK(hip.hipHostFree(own.data()) == hipErrorInvalidValue);
  CHECK(hip.hipHostUnregister(own.data()) == hipSuccess);
  CHECK(hip.hipHostUnregister(own.data()) == hipErrorHostMemoryNotRegistered);
  CHECK(hip.hipFree(device) == hipSuccess);
  hip.hipGetLastError();
}

TEST_CASE("a kernel runs, its arguments given either way", "[hip]") {
  Fixture fixture;
  sluice_emulator_configure("reset_counters", "1");
  CHECK(fixture.launch(5, 100) == hipSuccess);
  CHECK(hip.hipDeviceSynchronize() == hipSuccess);
  std::vector<int> values = fixture.contents();
  for (int i = 0; i < Fixture::elements; ++i)
    REQUIRE(values[size_t(i)] == (i < 100 ? 5 + i : 0));

  struct {
    int *out;
    int value;
    int count;
  } packed{fixture.buffer, 1000, 70};
  size_t size = sizeof packed;
  void *extra[] = {reinterpret_cast<void *>(1), &packed, reinterpret_cast<void *>(2), &size,
                   reinterpret_cast<void *>(3)};
  CHECK(hip.hipModuleLaunchKernel(fixture.fill, 2, 1, 1, 64, 1, 1, 0, nullptr, nullptr, extra) == hipSuccess);
  packed.value = -1; // copied already
  values = fixture.contents();
  CHECK(values[0] == 1000);
  CHECK(values[69] == 1069);
  CHECK(values[70] == 75);
  CHECK(counters().launches == 2);
  CHECK(counters().workgroups == 4);
  CHECK(counters().waves == 4);
  CHECK(counters().wave_instructions > 20);
  CHECK(take_reports() == "[]");

  CHECK(hip.hipModuleLaunchKernel(fixture.nothing, 3, 2, 1, 16, 4, 2, 0, nullptr, nullptr, nullptr) ==
        hipSuccess);
  CHECK(hip.hipStreamSynchronize(nullptr) == hipSuccess);
  CHECK(counters().workgroups == 10);
  CHECK(counters().waves == 16);
}

TEST_CASE("arguments that runtimes add are added, whatever the caller put there", "[hip]") {
  const std::vector<std::byte> elf = read_file(SLUICE_CODE_OBJECT_HIDDEN_ARGUMENTS);
  hipModule_t module = nullptr;
  hipFunction_t hidden = nullptr;
  unsigned *out = nullptr;
  REQUIRE(hip.hipModuleLoadData(&module, elf.data()) == hipSuccess);
  REQUIRE(hip.hipModuleGetFunction(&hidden, module, "hidden") == hipSuccess);
  REQUIRE(hip.hipMalloc(reinterpret_cast<void **>(&out), 12) == hipSuccess);
  unsigned back[3] = {};
  SECTION("from parameters") {
    void *parameters[] = {&out};
    CHECK(hip.hipModuleLaunchKernel(hidden, 3, 1, 1, 128, 2, 1, 256, nullptr, parameters, nullptr) ==
          hipSuccess);
  }
  SECTION("from a packed block that covers them") {
    struct {
      unsigned *out;
      unsigned rubbish[3];
    } packed{out, {77, 77, 77}};
    size_t size = 20;
    void *extra[] = {reinterpret_cast<void *>(1), &packed, reinterpret_cast<void *>(2), &size,
                     reinterpret_cast<void *>(3)};
    CHECK(hip.hipModuleLaunchKernel(hidden, 3, 1, 1, 128, 2, 1, 256, nullptr, nullptr, extra) == hipSuccess);
  }
  CHECK(hip.hipMemcpyDtoH(back, out, 12) == hipSuccess);
  CHECK(back[0] == 3);
  CHECK(back[1] == 128);
  CHECK(back[2] == 256);
  INFO(take_reports());
  CHECK(hip.hipFree(out) == hipSuccess);
  CHECK(hip.hipModuleUnload(module) == hipSuccess);
}

TEST_CASE("launches that HIP refuses are refused with HIP's codes", "[hip]") {
  Fixture fixture;
  void *out = fixture.buffer;
  int value = 1;
  int count = 64;
  void *parameters[] = {&out, &value, &count};
  auto launch = [&](std::array<unsigned, 3> grid, std::array<unsigned, 3> block, unsigned lds, void **given,
                    void **extra) {
    return hip.hipModuleLaunchKernel(fixture.fill, grid[0], grid[1], grid[2], block[0], block[1], block[2],
                                     lds, nullptr, given, extra);
  };
  size_t size = 16;
  char packed[24] = {};
  void *extra[] = {reinterpret_cast<void *>(1), packed, reinterpret_cast<void *>(2), &size,
                   reinterpret_cast<void *>(3)};
  CHECK(launch({1, 1, 1}, {64, 1, 1}, 0, parameters, extra) == hipErrorInvalidValue);
  CHECK(launch({1, 1, 1}, {64, 1, 1}, 0, nullptr, nullptr) == hipErrorInvalidValue);
  CHECK(launch({0, 1, 1}, {64, 1, 1}, 0, parameters, nullptr) == hipErrorInvalidValue);
  CHECK(launch({1, 1, 0}, {64, 1, 1}, 0, parameters, nullptr) == hipErrorInvalidValue);
  CHECK(launch({1, 1, 1}, {0, 1, 1}, 0, parameters, nullptr) == hipErrorInvalidConfiguration);
  CHECK(launch({1, 1, 1}, {64, 1, 0}, 0, parameters, nullptr) == hipErrorInvalidConfiguration);
  CHECK(launch({1, 1, 1}, {64, 17, 1}, 0, parameters, nullptr) == hipErrorInvalidValue);
  CHECK(launch({1, 1, 1}, {0x10000, 0x10000, 1}, 0, parameters, nullptr) == hipErrorInvalidValue);
  CHECK(launch({1, 1, 1}, {257, 1, 1}, 0, parameters, nullptr) == hipErrorLaunchFailure);
  CHECK(launch({0x4000001, 1, 1}, {64, 1, 1}, 0, parameters, nullptr) == hipErrorInvalidConfiguration);
  CHECK(launch({1, 1, 1}, {64, 1, 1}, 65536 - 1023, parameters, nullptr) == hipErrorInvalidValue);
  size = 15;
  CHECK(launch({1, 1, 1}, {64, 1, 1}, 0, nullptr, extra) == hipErrorInvalidValue);
  size = 16;
  extra[0] = reinterpret_cast<void *>(2);
  CHECK(launch({1, 1, 1}, {64, 1, 1}, 0, nullptr, extra) == hipErrorInvalidValue);
  extra[0] = reinterpret_cast<void *>(1);
  extra[4] = nullptr;
  CHECK(launch({1, 1, 1}, {64, 1, 1}, 0, nullptr, extra) == hipErrorInvalidValue);
  extra[4] = reinterpret_cast<void *>(3);
  extra[1] = nullptr;
  CHECK(launch({1, 1, 1}, {64, 1, 1}, 0, nullptr, extra) == hipErrorInvalidValue);
  parameters[1] = nullptr;
  CHECK(launch({1, 1, 1}, {64, 1, 1}, 0, parameters, nullptr) == hipErrorInvalidValue);
  CHECK(hip.hipModuleLaunchKernel(nullptr, 1, 1, 1, 64, 1, 1, 0, nullptr, parameters, nullptr) ==
        hipErrorInvalidImage);
  CHECK(hip.hipModuleLaunchKernel(reinterpret_cast<hipFunction_t>(&value), 1, 1, 1, 64, 1, 1, 0, nullptr,
                                  parameters, nullptr) == hipErrorInvalidHandle);
  CHECK(hip.hipDeviceSynchronize() == hipSuccess);
  CHECK(fixture.contents() == std::vector<int>(Fixture::elements, 0));
}

TEST_CASE("what a kernel does wrong sticks to the device until it is cleared", "[hip]") {
  Fixture fixture;
  hipStream_t stream = nullptr;
  REQUIRE(hip.hipStreamCreateWithFlags(&stream, hipStreamNonBlocking) == hipSuccess);
  // 1,001 elements into 1,000: the launch is accepted, the fault comes with the next synchronisation.
  CHECK(fixture.launch(1, Fixture::elements + 1, stream) == hipSuccess);
  CHECK(hip.hipStreamSynchronize(stream) == hipErrorIllegalAddress);
  CHECK(hip.hipGetLastError() == hipErrorIllegalAddress);
  CHECK(hip.hipDeviceSynchronize() == hipErrorIllegalAddress);
  CHECK(fixture.launch(1, 10) == hipErrorIllegalAddress);
  CHECK(hip.hipStreamQuery(stream) == hipErrorIllegalAddress);
  int word = 0;
  CHECK(hip.hipMemcpy(&word, fixture.buffer, 4, hipMemcpyDeviceToHost) == hipErrorIllegalAddress);
  void *more = nullptr;
  CHECK(hip.hipMalloc(&more, 16) == hipErrorIllegalAddress);
  hipEvent_t event = nullptr;
  CHECK(hip.hipEventCreate(&event) == hipSuccess);
  CHECK(hip.hipEventRecord(event, stream) == hipErrorIllegalAddress);
  CHECK(hip.hipEventDestroy(event) == hipSuccess);

  // Too small a buffer leaves the reports where they are.
  char small[8] = "xxxxxxx";
  const size_t needed = sluice_emulator_take_reports(small, sizeof small);
  CHECK(needed > sizeof small);
  CHECK(small[0] == 0);
  CHECK(sluice_emulator_take_reports(nullptr, 0) == needed);
  const std::string reports = take_reports();
  INFO(reports);
  CHECK(reports.size() + 1 == needed);
  CHECK(reports.find("global_out_of_bounds") != std::string::npos);
  CHECK(reports.find("fill") != std::string::npos);
  CHECK(take_reports() == "[]");

  CHECK(sluice_emulator_configure("clear_fault", "1") == SLUICE_EMULATOR_OK);
  CHECK(hip.hipDeviceSynchronize() == hipSuccess);
  CHECK(fixture.launch(7, 10, stream) == hipSuccess);
  CHECK(hip.hipStreamSynchronize(stream) == hipSuccess);
  CHECK(fixture.contents()[9] == 16);
  CHECK(hip.hipStreamDestroy(stream) == hipSuccess);
}

TEST_CASE("work behind a fault is passed over, but waits still end", "[hip]") {
  Fixture fixture;
  hipStream_t stream = nullptr;
  REQUIRE(hip.hipStreamCreate(&stream) == hipSuccess);
  std::atomic<bool> go{false};
  std::atomic<int> calls{0};
  auto hold = [](void *user) {
    while (!static_cast<std::atomic<bool> *>(user)->load())
      std::this_thread::yield();
  };
  auto count = [](void *user) { ++*static_cast<std::atomic<int> *>(user); };
  CHECK(hip.hipLaunchHostFunc(stream, hold, &go) == hipSuccess);
  CHECK(hip.hipLaunchHostFunc(stream, count, &calls) == hipSuccess);
  CHECK(fixture.launch(1, Fixture::elements + 64, stream) == hipSuccess);
  CHECK(hip.hipLaunchHostFunc(stream, count, &calls) == hipSuccess);
  CHECK(hip.hipMemsetAsync(fixture.buffer, 0x55, 4, stream) == hipSuccess);
  hipEvent_t event = nullptr;
  REQUIRE(hip.hipEventCreate(&event) == hipSuccess);
  CHECK(hip.hipEventRecord(event, stream) == hipSuccess);
  CHECK(hip.hipEventQuery(event) == hipErrorNotReady);
  go = true;
  CHECK(hip.hipEventSynchronize(event) == hipErrorIllegalAddress);
  CHECK(calls == 1);
  sluice_emulator_configure("clear_fault", "1");
  CHECK(hip.hipEventQuery(event) == hipSuccess);
  CHECK(fixture.contents()[0] != 0x55555555);
  CHECK(hip.hipEventDestroy(event) == hipSuccess);
  CHECK(hip.hipStreamDestroy(stream) == hipSuccess);
}

TEST_CASE("streams run in order each, beside one another, and wait for events", "[hip]") {
  Fixture fixture;
  hipStream_t first = nullptr;
  hipStream_t second = nullptr;
  REQUIRE(hip.hipStreamCreateWithFlags(&first, hipStreamNonBlocking) == hipSuccess);
  REQUIRE(hip.hipStreamCreateWithFlags(&second, hipStreamNonBlocking) == hipSuccess);
  hipEvent_t event = nullptr;
  REQUIRE(hip.hipEventCreateWithFlags(&event, hipEventDisableTiming) == hipSuccess);

  struct Meeting {
    std::atomic<bool> here{false}, there{false};
  } meeting;
  // Each waits for the other: this ends only if the streams run at the same time.
  auto one = [](void *user) {
    auto &m = *static_cast<Meeting *>(user);
    m.here = true;
    while (!m.there)
      std::this_thread::yield();
  };
  auto other = [](void *user) {
    auto &m = *static_cast<Meeting *>(user);
    m.there = true;
    while (!m.here)
      std::this_thread::yield();
  };
  CHECK(hip.hipLaunchHostFunc(first, one, &meeting) == hipSuccess);
  CHECK(hip.hipLaunchHostFunc(second, other, &meeting) == hipSuccess);

  // The second stream's copy waits for the first stream's launch.
  std::atomic<bool> go{false};
  auto hold = [](void *user) {
    while (!static_cast<std::atomic<bool> *>(user)->load())
      std::this_thread::yield();
  };
  void *pinned = nullptr;
  REQUIRE(hip.hipHostMalloc(&pinned, 400, 0) == hipSuccess);
  std::memset(pinned, 0, 400);
  CHECK(hip.hipLaunchHostFunc(first, hold, &go) == hipSuccess);
  CHECK(fixture.launch(42, 100, first) == hipSuccess);
  CHECK(hip.hipEventRecord(event, first) == hipSuccess);
  CHECK(hip.hipStreamWaitEvent(second, event, 0) == hipSuccess);
  CHECK(hip.hipMemcpyAsync(pinned, fixture.buffer, 400, hipMemcpyDeviceToHost, second) == hipSuccess);
  CHECK(hip.hipStreamQuery(second) == hipErrorNotReady);
  CHECK(hip.hipEventQuery(event) == hipErrorNotReady);
  go = true;
  CHECK(hip.hipStreamSynchronize(second) == hipSuccess);
  CHECK(static_cast<int *>(pinned)[99] == 141);
  CHECK(hip.hipEventQuery(event) == hipSuccess);
  CHECK(hip.hipStreamQuery(first) == hipSuccess);

  int device = -1;
  CHECK(hip.hipStreamGetDevice(first, &device) == hipSuccess);
  CHECK(device == 0);
  unsigned flags = 0;
  CHECK(hip.hipStreamGetFlags(first, &flags) == hipSuccess);
  CHECK(flags == hipStreamNonBlocking);
  hipStreamCaptureStatus status = hipStreamCaptureStatus(9);
  CHECK(hip.hipStreamIsCapturing(first, &status) == hipSuccess);
  CHECK(status == hipStreamCaptureStatusNone);
  CHECK(hip.hipEventDestroy(event) == hipSuccess);
  CHECK(hip.hipEventDestroy(event) == hipErrorInvalidHandle);
  CHECK(hip.hipEventRecord(event, first) == hipErrorInvalidHandle);
  CHECK(hip.hipStreamDestroy(first) == hipSuccess);
  CHECK(hip.hipStreamDestroy(first) == hipErrorInvalidHandle);
  CHECK(hip.hipStreamSynchronize(first) == hipErrorInvalidHandle);
  CHECK(hip.hipStreamDestroy(nullptr) == hipErrorInvalidHandle);
  CHECK(hip.hipStreamDestroy(second) == hipSuccess);
  CHECK(hip.hipStreamCreateWithFlags(&first, 2) == hipErrorInvalidValue);
  CHECK(hip.hipStreamCreate(nullptr) == hipErrorInvalidValue);
  CHECK(hip.hipHostFree(pinned) == hipSuccess);
}

TEST_CASE("the null stream waits for blocking streams and they for it", "[hip]") {
  Fixture fixture;
  hipStream_t blocking = nullptr;
  REQUIRE(hip.hipStreamCreate(&blocking) == hipSuccess);
  std::string order;
  struct Step {
    std::string *order;
    char letter;
    int milliseconds;
  };
  auto step = [](void *user) {
    const auto &s = *static_cast<Step *>(user);
    std::this_thread::sleep_for(std::chrono::milliseconds(s.milliseconds));
    *s.order += s.letter; // in order, so never two at once
  };
  Step a{&order, 'a', 20}, b{&order, 'b', 10}, c{&order, 'c', 0}, d{&order, 'd', 0};
  CHECK(hip.hipLaunchHostFunc(blocking, step, &a) == hipSuccess);
  CHECK(hip.hipLaunchHostFunc(nullptr, step, &b) == hipSuccess);
  CHECK(hip.hipLaunchHostFunc(blocking, step, &c) == hipSuccess);
  CHECK(hip.hipLaunchHostFunc(reinterpret_cast<hipStream_t>(1), step, &d) ==
        hipSuccess); // the null stream's other name
  CHECK(hip.hipStreamSynchronize(nullptr) == hipSuccess);
  CHECK(order == "abcd");

  // Each thread has a stream of its own behind one handle.
  const auto own = reinterpret_cast<hipStream_t>(2);
  CHECK(fixture.launch(3, 10, own) == hipSuccess);
  CHECK(hip.hipStreamSynchronize(own) == hipSuccess);
  std::thread([&] {
    CHECK(fixture.launch(4, 10, own) == hipSuccess);
    CHECK(hip.hipStreamSynchronize(own) == hipSuccess);
  }).join();
  CHECK(fixture.contents()[0] == 4);
  CHECK(hip.hipStreamDestroy(blocking) == hipSuccess);
}

TEST_CASE("a host function that waits for its own device is refused, not stuck", "[hip]") {
  struct Seen {
    hipError_t wait, copy;
    int configure;
  } seen{};
  auto function = [](void *user) {
    auto &s = *static_cast<Seen *>(user);
    s.wait = hip.hipDeviceSynchronize();
    char a = 0, b = 0;
    s.copy = hip.hipMemcpy(&a, &b, 1, hipMemcpyHostToHost);
    s.configure = sluice_emulator_configure("clear_fault", "1");
  };
  CHECK(hip.hipLaunchHostFunc(nullptr, function, &seen) == hipSuccess);
  CHECK(hip.hipDeviceSynchronize() == hipSuccess);
  CHECK(seen.wait == hipErrorIllegalState);
  CHECK(seen.copy == hipErrorIllegalState);
  CHECK(seen.configure == SLUICE_EMULATOR_BAD_VALUE);
  CHECK(hip.hipLaunchHostFunc(nullptr, nullptr, nullptr) == hipErrorInvalidValue);
  hip.hipGetLastError();
}

TEST_CASE("copies from memory that is not pinned leave it free at once", "[hip]") {
  Fixture fixture;
  hipStream_t stream = nullptr;
  REQUIRE(hip.hipStreamCreateWithFlags(&stream, hipStreamNonBlocking) == hipSuccess);
  std::atomic<bool> go{false};
  auto hold = [](void *user) {
    while (!static_cast<std::atomic<bool> *>(user)->load())
      std::this_thread::yield();
  };
  CHECK(hip.hipLaunchHostFunc(stream, hold, &go) == hipSuccess);
  std::vector<int> values(10, 8);
  CHECK(hip.hipMemcpyHtoDAsync(fixture.buffer, values.data(), 40, stream) == hipSuccess);
  std::fill(values.begin(), values.end(), 9); // the copy has not run yet, and must not see this
  CHECK(hip.hipMemsetD32Async(fixture.buffer + 5, 77, 2, stream) == hipSuccess);
  CHECK(hip.hipMemcpyDtoDAsync(fixture.buffer + 20, fixture.buffer, 40, stream) == hipSuccess);
  std::thread release([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    go = true;
  });
  std::vector<int> back(10);
  CHECK(hip.hipMemcpyDtoHAsync(back.data(), fixture.buffer + 20, 40, stream) == hipSuccess);
  CHECK(back == std::vector<int>({8, 8, 8, 8, 8, 77, 77, 8, 8, 8})); // there when the call returns
  release.join();
  void *temporary = nullptr;
  CHECK(hip.hipMallocAsync(&temporary, 256, stream) == hipSuccess);
  CHECK(hip.hipMemsetAsync(temporary, 1, 256, stream) == hipSuccess);
  CHECK(hip.hipFreeAsync(temporary, stream) == hipSuccess);
  CHECK(hip.hipStreamSynchronize(stream) == hipSuccess);
  CHECK(hip.hipFree(temporary) == hipErrorInvalidValue);
  CHECK(hip.hipStreamDestroy(stream) == hipSuccess);
}

TEST_CASE("events measure time", "[hip]") {
  hipEvent_t start = nullptr;
  hipEvent_t stop = nullptr;
  hipEvent_t silent = nullptr;
  REQUIRE(hip.hipEventCreate(&start) == hipSuccess);
  REQUIRE(hip.hipEventCreate(&stop) == hipSuccess);
  REQUIRE(hip.hipEventCreateWithFlags(&silent, hipEventDisableTiming) == hipSuccess);
  float milliseconds = -1;
  CHECK(hip.hipEventQuery(start) == hipSuccess); // never recorded
  CHECK(hip.hipEventElapsedTime(&milliseconds, start, stop) == hipErrorInvalidHandle);
  CHECK(hip.hipEventRecord(start, nullptr) == hipSuccess);
  CHECK(hip.hipLaunchHostFunc(
            nullptr, [](void *) { std::this_thread::sleep_for(std::chrono::milliseconds(20)); }, nullptr) ==
        hipSuccess);
  CHECK(hip.hipEventRecord(stop, nullptr) == hipSuccess);
  CHECK(hip.hipEventElapsedTime(&milliseconds, start, stop) == hipErrorNotReady);
  CHECK(hip.hipEventSynchronize(stop) == hipSuccess);
  CHECK(hip.hipEventElapsedTime(&milliseconds, start, stop) == hipSuccess);
  CHECK(milliseconds >= 20);
  CHECK(hip.hipEventRecord(silent, nullptr) == hipSuccess);
  CHECK(hip.hipEventSynchronize(silent) == hipSuccess);
  CHECK(hip.hipEventElapsedTime(&milliseconds, start, silent) == hipErrorInvalidHandle);
  CHECK(hip.hipEventCreateWithFlags(&silent, 0x100) == hipErrorInvalidValue);
  for (hipEvent_t event : {start, stop, silent})
    CHECK(hip.hipEventDestroy(event) == hipSuccess);
  hip.hipGetLastError();
}

TEST_CASE("modules load from ELF and bundle, and refuse what is not for this device", "[hip]") {
  using sluice::package::BundleEntry;
  hipModule_t module = nullptr;
  const std::vector<std::byte> &elf = two_kernels();
  auto bundle_of = [&](const std::string &id) {
    const BundleEntry entry{id, elf};
    return sluice::package::write_bundle({&entry, 1});
  };
  for (const char *id : {"hipv4-amdgcn-amd-amdhsa--gfx942", "hip-amdgcn-amd-amdhsa--gfx942",
                         "hipv4-amdgcn-amd-amdhsa--gfx942:sramecc+:xnack-"}) {
    INFO(id);
    const std::vector<std::byte> bundle = bundle_of(id);
    REQUIRE(hip.hipModuleLoadData(&module, bundle.data()) == hipSuccess);
    hipFunction_t function = nullptr;
    CHECK(hip.hipModuleGetFunction(&function, module, "fill") == hipSuccess);
    CHECK(hip.hipModuleUnload(module) == hipSuccess);
  }
  for (const char *id : {"hipv4-amdgcn-amd-amdhsa--gfx90a", "hipv4-amdgcn-amd-amdhsa--gfx942:xnack+",
                         "hipv4-amdgcn-amd-amdhsa--gfx9420", "amdgcn-amd-amdhsa--gfx942"}) {
    INFO(id);
    const std::vector<std::byte> bundle = bundle_of(id);
    CHECK(hip.hipModuleLoadData(&module, bundle.data()) == hipErrorNoBinaryForGpu);
  }
  std::vector<std::byte> other = elf;
  other[48] = std::byte{0x3f}; // gfx90a
  CHECK(hip.hipModuleLoadData(&module, other.data()) == hipErrorNoBinaryForGpu);
  other = elf;
  other[49] = std::byte{0x07}; // xnack+
  CHECK(hip.hipModuleLoadData(&module, other.data()) == hipErrorNoBinaryForGpu);
  other = elf;
  other[16] = std::byte{1}; // an object file
  CHECK(hip.hipModuleLoadData(&module, other.data()) == hipErrorInvalidImage);
  const char text[64] = "this is no image of any kind";
  CHECK(hip.hipModuleLoadData(&module, text) == hipErrorInvalidImage);
  CHECK(hip.hipModuleLoadData(&module, "CCOB and what follows, compressed") == hipErrorNotSupported);
  CHECK(hip.hipModuleLoadData(&module, nullptr) == hipErrorInvalidValue);
  CHECK(hip.hipModuleLoadData(nullptr, elf.data()) == hipErrorInvalidValue);
  CHECK(hip.hipModuleUnload(nullptr) == hipErrorInvalidHandle);
  hip.hipGetLastError();
}

TEST_CASE("modules give their kernels and variables", "[hip]") {
  Fixture fixture;
  hipFunction_t again = nullptr;
  CHECK(hip.hipModuleGetFunction(&again, fixture.module, "fill") == hipSuccess);
  CHECK(again == fixture.fill);
  CHECK(hip.hipModuleGetFunction(&again, fixture.module, "empty") == hipErrorNotFound);
  CHECK(hip.hipModuleGetFunction(&again, nullptr, "fill") == hipErrorInvalidHandle);
  void *counter = nullptr;
  size_t size = 0;
  CHECK(hip.hipModuleGetGlobal(&counter, &size, fixture.module, "counter") == hipSuccess);
  CHECK(size == 4);
  unsigned value = 0;
  CHECK(hip.hipMemcpy(&value, counter, 4, hipMemcpyDeviceToHost) == hipSuccess);
  CHECK(value == 0x12345678);
  value = 99;
  CHECK(hip.hipMemcpyHtoD(counter, &value, 4) == hipSuccess);
  value = 0;
  CHECK(hip.hipMemcpyDtoH(&value, counter, 4) == hipSuccess);
  CHECK(value == 99);
  CHECK(hip.hipModuleGetGlobal(&counter, &size, fixture.module, "no variable") == hipErrorNotFound);

  auto attribute = [&](hipFunction_attribute which) {
    int result = -1;
    CHECK(hip.hipFuncGetAttribute(&result, which, fixture.fill) == hipSuccess);
    return result;
  };
  CHECK(attribute(HIP_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK) == 256);
  CHECK(attribute(HIP_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES) == 1024);
  CHECK(attribute(HIP_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES) == 0);
  CHECK(attribute(HIP_FUNC_ATTRIBUTE_NUM_REGS) == 3);
  CHECK(attribute(HIP_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES) == 65536 - 1024);
  int result = 0;
  CHECK(hip.hipFuncGetAttribute(&result, hipFunction_attribute(77), fixture.fill) == hipErrorInvalidValue);

  auto blocks = [&](hipFunction_t function, int threads, size_t lds) {
    int count = -1;
    CHECK(hip.hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(&count, function, threads, lds) ==
          hipSuccess);
    return count;
  };
  CHECK(blocks(fixture.fill, 256, 0) == 8);        // 32 waves
  CHECK(blocks(fixture.fill, 256, 15 << 10) == 4); // 16 KiB each
  CHECK(blocks(fixture.fill, 257, 0) == 0);        // more than it was compiled for
  CHECK(blocks(fixture.nothing, 256, 0) == 2);     // 200 registers: two waves a SIMD
  CHECK(blocks(fixture.fill, 64, 64 << 10) == 0);
}

TEST_CASE("an unloaded module's functions are gone, its queued launches are not", "[hip]") {
  hipModule_t module = nullptr;
  hipFunction_t fill = nullptr;
  int *buffer = nullptr;
  REQUIRE(hip.hipModuleLoadData(&module, two_kernels().data()) == hipSuccess);
  REQUIRE(hip.hipModuleGetFunction(&fill, module, "fill") == hipSuccess);
  REQUIRE(hip.hipMalloc(reinterpret_cast<void **>(&buffer), 400) == hipSuccess);
  int value = 6;
  int count = 100;
  void *parameters[] = {&buffer, &value, &count};
  CHECK(hip.hipModuleLaunchKernel(fill, 2, 1, 1, 64, 1, 1, 0, nullptr, parameters, nullptr) == hipSuccess);
  CHECK(hip.hipModuleUnload(module) == hipSuccess);
  CHECK(hip.hipModuleUnload(module) == hipErrorInvalidHandle);
  CHECK(hip.hipModuleLaunchKernel(fill, 2, 1, 1, 64, 1, 1, 0, nullptr, parameters, nullptr) ==
        hipErrorInvalidHandle);
  int last = 0;
  CHECK(hip.hipMemcpy(&last, buffer + 99, 4, hipMemcpyDeviceToHost) == hipSuccess);
  CHECK(last == 105);
  CHECK(hip.hipFree(buffer) == hipSuccess);
  hip.hipGetLastError();
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
  CHECK(sluice_emulator_counters(nullptr) == SLUICE_EMULATOR_BAD_VALUE);
}

TEST_CASE("a setting holds for the launches after it", "[hip]") {
  Fixture fixture;
  CHECK(sluice_emulator_configure("instruction_budget", "3") == SLUICE_EMULATOR_OK);
  CHECK(fixture.launch(1, 64) == hipSuccess);
  CHECK(sluice_emulator_configure("defaults", "1") == SLUICE_EMULATOR_OK);
  CHECK(hip.hipDeviceSynchronize() == hipErrorLaunchFailure);
  CHECK(take_reports().find("budget_exhausted") != std::string::npos);
  CHECK(sluice_emulator_configure("clear_fault", "1") == SLUICE_EMULATOR_OK);
  CHECK(fixture.launch(1, 64) == hipSuccess);
  CHECK(hip.hipDeviceSynchronize() == hipSuccess);
}

TEST_CASE("many threads use the device at once", "[hip]") {
  Fixture fixture;
  std::vector<std::thread> threads;
  std::atomic<int> failures{0};
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      hipStream_t stream = nullptr;
      void *own = nullptr;
      if (hip.hipStreamCreateWithFlags(&stream, t % 2 ? hipStreamNonBlocking : 0) != hipSuccess) ++failures;
      if (hip.hipMalloc(&own, 4000) != hipSuccess) ++failures;
      for (int i = 0; i < 20; ++i) {
        std::vector<int> back(1000);
        if (fixture.launch(t * 1000 + i, 1000, stream, own) != hipSuccess) ++failures;
        if (hip.hipMemcpyAsync(back.data(), own, 4000, hipMemcpyDeviceToHost, stream) != hipSuccess)
          ++failures;
        for (int k = 0; k < 1000; ++k)
          if (back[size_t(k)] != t * 1000 + i + k) ++failures;
      }
      if (hip.hipStreamDestroy(stream) != hipSuccess) ++failures;
      if (hip.hipFree(own) != hipSuccess) ++failures;
    });
  for (std::thread &thread : threads)
    thread.join();
  CHECK(failures == 0);
}

//===- hip_peer_test.cpp - several devices --------------------------------------------------------------===//

#include <catch2/catch.hpp>
#include <thread>

#include "unit/emulator/hip_fixture.h"

using namespace sluice::test;

namespace {

/// This many devices, with a module, a stream and a buffer on each.
struct Devices {
  static constexpr int count = 3;
  static constexpr size_t bytes = 4000;
  hipModule_t module[count]{};
  hipFunction_t fill[count]{};
  hipStream_t stream[count]{};
  int *buffer[count]{};

  Devices() {
    REQUIRE(sluice_emulator_configure("devices", "3") == SLUICE_EMULATOR_OK);
    for (int device = 0; device < count; ++device) {
      REQUIRE(hip.hipSetDevice(device) == hipSuccess);
      REQUIRE(hip.hipModuleLoadData(&module[device], two_kernels().data()) == hipSuccess);
      REQUIRE(hip.hipModuleGetFunction(&fill[device], module[device], "fill") == hipSuccess);
      REQUIRE(hip.hipStreamCreate(&stream[device]) == hipSuccess);
      REQUIRE(hip.hipMalloc(reinterpret_cast<void **>(&buffer[device]), bytes + size_t(device)) ==
              hipSuccess);
    }
    REQUIRE(hip.hipSetDevice(0) == hipSuccess);
  }
  ~Devices() {
    sluice_emulator_configure("clear_fault", "1");
    sluice_emulator_configure("defaults", "1");
    for (int device = 0; device < count; ++device) {
      CHECK(hip.hipFree(buffer[device]) == hipSuccess);
      CHECK(hip.hipStreamDestroy(stream[device]) == hipSuccess);
      CHECK(hip.hipModuleUnload(module[device]) == hipSuccess);
    }
    CHECK(hip.hipSetDevice(0) == hipSuccess);
    CHECK(sluice_emulator_configure("devices", "1") == SLUICE_EMULATOR_OK);
    hip.hipGetLastError();
    take_reports();
  }
  hipError_t launch(int device, int *out, hipStream_t in, int value = 1) const {
    int count = 64;
    void *parameters[] = {&out, &value, &count};
    return hip.hipModuleLaunchKernel(fill[device], 1, 1, 1, 64, 1, 1, 0, in, parameters, nullptr);
  }
};

} // namespace

TEST_CASE("the number of devices is set while nothing is alive", "[hip][peer]") {
  for (const char *wrong : {"0", "9", "-1", "two"})
    CHECK(sluice_emulator_configure("devices", wrong) == SLUICE_EMULATOR_BAD_VALUE);
  void *memory = nullptr;
  REQUIRE(hip.hipMalloc(&memory, 1) == hipSuccess);
  CHECK(sluice_emulator_configure("devices", "2") == SLUICE_EMULATOR_BAD_VALUE);
  CHECK(hip.hipFree(memory) == hipSuccess);
  hipStream_t stream = nullptr;
  REQUIRE(hip.hipStreamCreate(&stream) == hipSuccess);
  CHECK(sluice_emulator_configure("devices", "2") == SLUICE_EMULATOR_BAD_VALUE);
  CHECK(hip.hipStreamDestroy(stream) == hipSuccess);
  CHECK(sluice_emulator_configure("devices", "8") == SLUICE_EMULATOR_OK);
  int value = 0;
  CHECK(hip.hipGetDeviceCount(&value) == hipSuccess);
  CHECK(value == 8);
  CHECK(hip.hipSetDevice(8) == hipErrorInvalidDevice);
  CHECK(hip.hipSetDevice(7) == hipSuccess);
  std::thread([] { // each thread's own
    int device = -1;
    CHECK(hip.hipGetDevice(&device) == hipSuccess);
    CHECK(device == 0);
  })
      .join();
  CHECK(hip.hipGetDevice(&value) == hipSuccess);
  CHECK(value == 7);
  CHECK(hip.hipDeviceGetAttribute(&value, 67, 5) == hipSuccess);
  CHECK(value == 5);
  CHECK(sluice_emulator_configure("devices", "1") == SLUICE_EMULATOR_OK);
  CHECK(hip.hipGetDevice(&value) == hipSuccess);
  CHECK(value == 0);
  hip.hipGetLastError();
}

TEST_CASE("memory, streams, pools and modules belong to a device", "[hip][peer]") {
  Devices d;
  for (int device = 0; device < Devices::count; ++device) {
    REQUIRE(hip.hipSetDevice(device) == hipSuccess);
    int found = -1;
    CHECK(hip.hipStreamGetDevice(d.stream[device], &found) == hipSuccess);
    CHECK(found == device);
    CHECK(hip.hipStreamGetDevice(nullptr, &found) == hipSuccess);
    CHECK(found == device);
    hipPointerAttribute_t attributes;
    CHECK(hip.hipPointerGetAttributes(&attributes, d.buffer[device]) == hipSuccess);
    CHECK(attributes.device == device);
    size_t free_bytes = 0, total = 0;
    CHECK(hip.hipMemGetInfo(&free_bytes, &total) == hipSuccess);
    CHECK(total - free_bytes == Devices::bytes + size_t(device));
  }
  // Memory of a stream is on its device, not the current one.
  void *pooled = nullptr;
  hipPointerAttribute_t attributes;
  CHECK(hip.hipMallocAsync(&pooled, 64, d.stream[1]) == hipSuccess);
  CHECK(hip.hipPointerGetAttributes(&attributes, pooled) == hipSuccess);
  CHECK(attributes.device == 1);
  CHECK(hip.hipFree(pooled) == hipSuccess);
  hipMemPool_t pool = nullptr;
  CHECK(hip.hipDeviceGetDefaultMemPool(&pool, 1) == hipSuccess);
  CHECK(hip.hipDeviceSetMemPool(2, pool) == hipErrorInvalidDevice);

  // A kernel runs on the device that its module was loaded on; an event is recorded on its own device.
  CHECK(d.launch(0, d.buffer[0], d.stream[1]) == hipErrorInvalidHandle);
  CHECK(d.launch(0, d.buffer[0], nullptr) == hipErrorInvalidHandle); // the current device's null stream
  CHECK(d.launch(2, d.buffer[2], nullptr) == hipSuccess);
  hipEvent_t event = nullptr;
  REQUIRE(hip.hipEventCreate(&event) == hipSuccess);
  CHECK(hip.hipEventRecord(event, d.stream[0]) == hipErrorInvalidHandle);
  CHECK(hip.hipEventRecord(event, d.stream[2]) == hipSuccess);
  CHECK(hip.hipStreamWaitEvent(d.stream[0], event, 0) == hipSuccess); // all wait
  CHECK(hip.hipStreamSynchronize(d.stream[0]) == hipSuccess);
  CHECK(hip.hipEventDestroy(event) == hipSuccess);
}

TEST_CASE("a kernel reaches another device's memory only with peer access", "[hip][peer]") {
  Devices d;
  int can = -1;
  CHECK(hip.hipDeviceCanAccessPeer(&can, 0, 1) == hipSuccess);
  CHECK(can == 1);
  CHECK(hip.hipDeviceCanAccessPeer(&can, 1, 1) == hipSuccess);
  CHECK(can == 0);
  CHECK(hip.hipDeviceCanAccessPeer(&can, 0, 3) == hipErrorInvalidDevice);
  CHECK(hip.hipDeviceEnablePeerAccess(1, 0) == hipSuccess);
  CHECK(hip.hipDeviceEnablePeerAccess(1, 0) == hipErrorPeerAccessAlreadyEnabled);
  CHECK(hip.hipDeviceEnablePeerAccess(0, 0) == hipErrorInvalidDevice);
  CHECK(hip.hipDeviceEnablePeerAccess(1, 1) == hipErrorInvalidValue);
  CHECK(d.launch(0, d.buffer[1], d.stream[0], 30) == hipSuccess);
  CHECK(hip.hipStreamSynchronize(d.stream[0]) == hipSuccess);
  std::vector<int> back(64);
  CHECK(hip.hipMemcpy(back.data(), d.buffer[1], 256, hipMemcpyDeviceToHost) == hipSuccess);
  CHECK(back[63] == 93);
  CHECK(take_reports() == "[]");

  // Copies do not need access.
  CHECK(hip.hipMemcpyPeer(d.buffer[2], 2, d.buffer[1], 1, 256) == hipSuccess);
  CHECK(hip.hipMemcpyPeerAsync(d.buffer[0], 0, d.buffer[2], 2, 256, d.stream[0]) == hipSuccess);
  CHECK(hip.hipMemcpyPeer(d.buffer[2], 3, d.buffer[1], 1, 256) == hipErrorInvalidDevice);
  CHECK(hip.hipMemcpyAsync(back.data(), d.buffer[0], 256, hipMemcpyDeviceToHost, d.stream[0]) == hipSuccess);
  CHECK(back[0] == 30);

  // The other direction, and after access is disabled again, it is a fault.
  const bool closed = GENERATE(true, false);
  if (closed) CHECK(hip.hipDeviceDisablePeerAccess(1) == hipSuccess);
  if (closed) CHECK(hip.hipDeviceDisablePeerAccess(1) == hipErrorPeerAccessNotEnabled);
  const int from = closed ? 0 : 1;
  REQUIRE(hip.hipSetDevice(from) == hipSuccess);
  CHECK(d.launch(from, d.buffer[1 - from], d.stream[from]) == hipSuccess);
  CHECK(hip.hipStreamSynchronize(d.stream[from]) == hipErrorIllegalAddress);
  const std::string reports = take_reports();
  CHECK(reports.find("\"no_peer_access\"") != std::string::npos);
  CHECK(reports.find("memory of a device without peer access") != std::string::npos);
}

TEST_CASE("a fault sticks to the device it happened on", "[hip][peer]") {
  Devices d;
  hipEvent_t event = nullptr;
  REQUIRE(hip.hipSetDevice(1) == hipSuccess);
  REQUIRE(hip.hipEventCreate(&event) == hipSuccess);
  REQUIRE(sluice_emulator_configure("stream_order", "1") == SLUICE_EMULATOR_OK); // nothing runs before a wait
  int local = 0;
  hipError_t told[2]{};
  const auto tell = [](hipStream_t, hipError_t status, void *user) {
    *static_cast<hipError_t *>(user) = status;
  };
  CHECK(d.launch(1, &local, d.stream[1]) == hipSuccess);
  CHECK(hip.hipStreamAddCallback(d.stream[1], tell, &told[1], 0) == hipSuccess);
  CHECK(hip.hipStreamSynchronize(d.stream[1]) == hipErrorIllegalAddress);
  CHECK(told[1] == hipErrorIllegalAddress);
  void *memory = nullptr;
  CHECK(hip.hipMalloc(&memory, 64) == hipErrorIllegalAddress);
  CHECK(hip.hipMallocAsync(&memory, 64, d.stream[1]) == hipErrorIllegalAddress);
  CHECK(hip.hipDeviceSynchronize() == hipErrorIllegalAddress);
  CHECK(hip.hipEventRecord(event, d.stream[1]) == hipErrorIllegalAddress);
  CHECK(hip.hipEventQuery(event) == hipErrorIllegalAddress);
  CHECK(hip.hipMemset(d.buffer[1], 0, 4) == hipErrorIllegalAddress);
  CHECK(d.launch(1, d.buffer[1], d.stream[1]) == hipErrorIllegalAddress);
  CHECK(hip.hipStreamQuery(d.stream[1]) == hipErrorIllegalAddress);

  // The other devices work, and are not affected.
  for (int device : {0, 2}) {
    REQUIRE(hip.hipSetDevice(device) == hipSuccess);
    CHECK(d.launch(device, d.buffer[device], d.stream[device], 40) == hipSuccess);
    CHECK(hip.hipStreamAddCallback(d.stream[device], tell, &told[0], 0) == hipSuccess);
    CHECK(hip.hipStreamSynchronize(d.stream[device]) == hipSuccess);
    CHECK(told[0] == hipSuccess);
    CHECK(hip.hipMalloc(&memory, 64) == hipSuccess);
    CHECK(hip.hipFree(memory) == hipSuccess);
    CHECK(hip.hipDeviceSynchronize() == hipSuccess);
    int first = 0;
    CHECK(hip.hipMemcpy(&first, d.buffer[device], 4, hipMemcpyDeviceToHost) == hipSuccess);
    CHECK(first == 40);
  }
  CHECK(hip.hipStreamSynchronize(d.stream[1]) == hipErrorIllegalAddress); // still
  CHECK(sluice_emulator_configure("clear_fault", "1") == SLUICE_EMULATOR_OK);
  CHECK(hip.hipStreamSynchronize(d.stream[1]) == hipSuccess);
  CHECK(hip.hipEventDestroy(event) == hipSuccess);
}

TEST_CASE("a null stream orders only the streams of its device", "[hip][peer][races]") {
  Devices d;
  void *pinned = nullptr;
  REQUIRE(hip.hipHostMalloc(&pinned, 256, 0) == hipSuccess);
  const int device = GENERATE(0, 1);
  CHECK(d.launch(0, d.buffer[0], d.stream[0]) == hipSuccess);
  REQUIRE(hip.hipSetDevice(device) == hipSuccess);
  CHECK(hip.hipMemcpyAsync(pinned, d.buffer[0], 256, hipMemcpyDeviceToHost, nullptr) == hipSuccess);
  CHECK(hip.hipStreamSynchronize(d.stream[0]) == hipSuccess);
  CHECK(hip.hipStreamSynchronize(nullptr) == hipSuccess);
  CHECK((take_reports().find("\"stream_race\"") != std::string::npos) == (device == 1));
  CHECK(hip.hipHostFree(pinned) == hipSuccess);
}

TEST_CASE("each device has a null stream and waits for itself", "[hip][peer]") {
  Devices d;
  REQUIRE(sluice_emulator_configure("stream_order", "1") == SLUICE_EMULATOR_OK);
  std::string order;
  auto write = [](void *user) { *static_cast<std::string *>(user) += 'a'; };
  CHECK(hip.hipLaunchHostFunc(d.stream[1], write, &order) == hipSuccess);
  CHECK(hip.hipDeviceSynchronize() == hipSuccess);
  CHECK(hip.hipStreamSynchronize(nullptr) == hipSuccess);
  CHECK(order.empty());
  REQUIRE(hip.hipSetDevice(1) == hipSuccess);
  CHECK(hip.hipStreamSynchronize(nullptr) == hipSuccess);
  CHECK(order == "a");
}

TEST_CASE("events of two devices have no common timer", "[hip][peer]") {
  Devices d;
  hipEvent_t events[2] = {};
  for (int device : {0, 1}) {
    REQUIRE(hip.hipSetDevice(device) == hipSuccess);
    REQUIRE(hip.hipEventCreate(&events[device]) == hipSuccess);
    CHECK(hip.hipEventRecord(events[device], d.stream[device]) == hipSuccess);
    CHECK(hip.hipEventSynchronize(events[device]) == hipSuccess);
  }
  float milliseconds = -1;
  CHECK(hip.hipEventElapsedTime(&milliseconds, events[0], events[1]) == hipErrorInvalidHandle);
  CHECK(milliseconds == -1);
  CHECK(hip.hipEventElapsedTime(&milliseconds, events[1], events[1]) == hipSuccess);
  for (hipEvent_t event : events)
    CHECK(hip.hipEventDestroy(event) == hipSuccess);
}

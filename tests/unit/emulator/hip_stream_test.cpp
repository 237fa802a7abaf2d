//===- hip_stream_test.cpp - streams, events and threads ------------------------------------------------===//

#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <cstring>
#include <thread>

#include "unit/emulator/hip_fixture.h"
#include <sluice/emulator.h>

using namespace sluice::test;

TEST_CASE("work after a fault is skipped, but waits still end", "[hip]") {
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

  // Each thread has its own stream under one handle.
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

TEST_CASE("a host function that waits for its own device is refused and does not hang", "[hip]") {
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

TEST_CASE("callbacks get the fault before them", "[hip]") {
  Fixture fixture;
  struct Told {
    hipStream_t stream = nullptr;
    hipError_t status = hipErrorUnknown;
  } good, bad;
  auto callback = [](hipStream_t stream, hipError_t status, void *user) {
    *static_cast<Told *>(user) = {stream, status};
  };
  hipStream_t stream = nullptr;
  REQUIRE(hip.hipStreamCreate(&stream) == hipSuccess);
  REQUIRE(sluice_emulator_configure("stream_order", "1") == SLUICE_EMULATOR_OK); // all before the fault
  CHECK(hip.hipStreamAddCallback(stream, callback, &good, 0) == hipSuccess);
  CHECK(fixture.launch(1, Fixture::elements + 64, stream) == hipSuccess);
  CHECK(hip.hipStreamAddCallback(stream, callback, &bad, 0) == hipSuccess);
  CHECK(hip.hipStreamSynchronize(stream) == hipErrorIllegalAddress);
  CHECK(good.stream == stream);
  CHECK(good.status == hipSuccess);
  CHECK(bad.status == hipErrorIllegalAddress);
  CHECK(hip.hipStreamAddCallback(stream, nullptr, &bad, 0) == hipErrorInvalidValue);
  CHECK(hip.hipStreamAddCallback(stream, callback, &bad, 1) == hipErrorInvalidValue);
  CHECK(hip.hipStreamDestroy(stream) == hipSuccess);
}

TEST_CASE("priorities are brought into their range", "[hip]") {
  int least = 99;
  int greatest = 99;
  CHECK(hip.hipDeviceGetStreamPriorityRange(&least, &greatest) == hipSuccess);
  CHECK(least == 1);
  CHECK(greatest == -1);
  CHECK(hip.hipDeviceGetStreamPriorityRange(nullptr, nullptr) == hipSuccess);
  for (const auto &[asked, given] : {std::pair{-7, -1}, {-1, -1}, {0, 0}, {1, 1}, {5, 1}}) {
    hipStream_t stream = nullptr;
    int priority = 99;
    REQUIRE(hip.hipStreamCreateWithPriority(&stream, hipStreamNonBlocking, asked) == hipSuccess);
    CHECK(hip.hipStreamGetPriority(stream, &priority) == hipSuccess);
    CHECK(priority == given);
    CHECK(hip.hipStreamDestroy(stream) == hipSuccess);
  }
}

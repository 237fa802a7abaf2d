//===- hip_external_event_test.cpp - events that a graph shares with the streams around it
//---------------===//
//
// And the ends of captures that HIP allows beyond joining: dependencies taken away, streams destroyed.
//
//===----------------------------------------------------------------------------------------------------===//

#include <catch2/catch.hpp>

#include "unit/emulator/hip_fixture.h"

using namespace sluice::test;

namespace {

struct Streams : Fixture {
  hipStream_t first = nullptr, second = nullptr;
  hipEvent_t event = nullptr, other = nullptr;
  hipGraph_t graph = nullptr;

  Streams() {
    REQUIRE(hip.hipStreamCreateWithFlags(&first, hipStreamNonBlocking) == hipSuccess);
    REQUIRE(hip.hipStreamCreateWithFlags(&second, hipStreamNonBlocking) == hipSuccess);
    REQUIRE(hip.hipEventCreate(&event) == hipSuccess);
    REQUIRE(hip.hipEventCreate(&other) == hipSuccess);
  }
  ~Streams() {
    if (graph) CHECK(hip.hipGraphDestroy(graph) == hipSuccess);
    for (hipEvent_t each : {event, other})
      CHECK(hip.hipEventDestroy(each) == hipSuccess);
    for (hipStream_t stream : {first, second})
      if (stream) CHECK(hip.hipStreamDestroy(stream) == hipSuccess);
  }
  void begin() const { REQUIRE(hip.hipStreamBeginCapture(first, hipStreamCaptureModeGlobal) == hipSuccess); }
  size_t nodes() const {
    size_t count = 0;
    CHECK(hip.hipGraphGetNodes(graph, nullptr, &count) == hipSuccess);
    return count;
  }
  static hipStreamCaptureStatus status(hipStream_t stream) {
    hipStreamCaptureStatus value{};
    CHECK(hip.hipStreamIsCapturing(stream, &value) == hipSuccess);
    return value;
  }
};

} // namespace

TEST_CASE("external waits and records are nodes in a capture", "[hip][capture]") {
  Streams s;
  CHECK(hip.hipEventRecord(s.event, s.second) == hipSuccess);
  s.begin();
  CHECK(hip.hipStreamWaitEvent(s.first, s.event, 1) == hipSuccess);
  CHECK(s.launch(3, 64, s.first) == hipSuccess);
  CHECK(hip.hipEventRecordWithFlags(s.other, s.first, 1) == hipSuccess);
  REQUIRE(hip.hipStreamEndCapture(s.first, &s.graph) == hipSuccess);
  CHECK(s.nodes() == 3);
  hipGraphExec_t exec = nullptr;
  REQUIRE(hip.hipGraphInstantiateWithFlags(&exec, s.graph, 0) == hipSuccess);
  float milliseconds = 0;
  CHECK(hip.hipEventElapsedTime(&milliseconds, s.event, s.other) ==
        hipErrorInvalidHandle); // not recorded yet
  CHECK(hip.hipGraphLaunch(exec, s.first) == hipSuccess);
  CHECK(hip.hipEventSynchronize(s.other) == hipSuccess);
  CHECK(hip.hipEventElapsedTime(&milliseconds, s.event, s.other) == hipSuccess);
  CHECK(s.contents()[63] == 3 + 63);
  CHECK(hip.hipGraphExecDestroy(exec) == hipSuccess);
}

TEST_CASE("outside of captures external waits and records are ordinary ones", "[hip]") {
  Streams s;
  CHECK(hip.hipEventRecordWithFlags(s.event, s.first, 1) == hipSuccess);
  CHECK(hip.hipStreamWaitEvent(s.second, s.event, 1) == hipSuccess);
  CHECK(hip.hipEventSynchronize(s.event) == hipSuccess);
  CHECK(hip.hipStreamWaitEvent(s.second, s.event, 2) == hipErrorInvalidValue);
  CHECK(hip.hipEventRecordWithFlags(s.event, s.first, 2) == hipErrorInvalidValue);
  CHECK(hip.hipEventRecordWithFlags(nullptr, s.first, 0) == hipErrorInvalidHandle);
}

TEST_CASE("an event may have one release scope at most", "[hip]") {
  constexpr unsigned no_fence = 0x20000000, device = 0x40000000, system = 0x80000000;
  for (unsigned flags : {no_fence, device, system, device | hipEventDisableTiming | hipEventBlockingSync}) {
    hipEvent_t event = nullptr;
    INFO(flags);
    CHECK(hip.hipEventCreateWithFlags(&event, flags) == hipSuccess);
    CHECK(hip.hipEventDestroy(event) == hipSuccess);
  }
  for (unsigned flags :
       {device | system, no_fence | device, no_fence | system, no_fence | device | system, 8u}) {
    hipEvent_t event = nullptr;
    INFO(flags);
    CHECK(hip.hipEventCreateWithFlags(&event, flags) == hipErrorInvalidValue);
  }
  hip.hipGetLastError();
}

TEST_CASE("work that a program takes out of a stream's dependencies need not be joined", "[hip][capture]") {
  Streams s;
  s.begin();
  CHECK(s.launch(1, 64, s.first) == hipSuccess);
  hipStreamCaptureStatus status{};
  hipGraph_t captured = nullptr;
  const hipGraphNode_t *last = nullptr;
  size_t count = 0;
  CHECK(hip.hipStreamGetCaptureInfo_v2(s.first, &status, nullptr, &captured, &last, &count) == hipSuccess);
  REQUIRE(count == 1);
  hipGraphNode_t by_hand = nullptr;
  CHECK(hip.hipGraphAddEmptyNode(&by_hand, captured, nullptr, 0) == hipSuccess);
  SECTION("replaced") {
    CHECK(hip.hipStreamUpdateCaptureDependencies(s.first, &by_hand, 1, hipStreamSetCaptureDependencies) ==
          hipSuccess);
    CHECK(s.launch(2, 64, s.first) == hipSuccess);
    CHECK(hip.hipStreamEndCapture(s.first, &s.graph) == hipSuccess);
    CHECK(s.nodes() == 3);
    hipGraphNode_t roots[3] = {};
    size_t root_count = 3;
    CHECK(hip.hipGraphGetRootNodes(s.graph, roots, &root_count) == hipSuccess);
    CHECK(root_count == 2); // the launches are not ordered
  }
  SECTION("emptied") {
    CHECK(hip.hipStreamUpdateCaptureDependencies(s.first, &by_hand, 1, hipStreamAddCaptureDependencies) ==
          hipSuccess);
    CHECK(hip.hipStreamUpdateCaptureDependencies(s.first, nullptr, 0, hipStreamSetCaptureDependencies) ==
          hipSuccess);
    CHECK(hip.hipStreamEndCapture(s.first, &s.graph) == hipSuccess);
    CHECK(s.nodes() == 2);
  }
  SECTION("but a node that never was a dependency must be") {
    CHECK(s.launch(2, 64, s.first) == hipSuccess);
    CHECK(hip.hipStreamEndCapture(s.first, &s.graph) == hipErrorStreamCaptureUnjoined);
  }
}

TEST_CASE("a stream can be destroyed while it captures", "[hip][capture]") {
  Streams s;
  s.begin();
  CHECK(s.launch(1, 64, s.first) == hipSuccess);
  CHECK(hip.hipEventRecord(s.event, s.first) == hipSuccess);
  CHECK(hip.hipStreamWaitEvent(s.second, s.event, 0) == hipSuccess);
  CHECK(s.launch(2, 64, s.second) == hipSuccess);
  SECTION("the one that began: the capture ends for all") {
    hipStreamCaptureStatus status{};
    hipGraph_t captured = nullptr;
    CHECK(hip.hipStreamGetCaptureInfo_v2(s.first, &status, nullptr, &captured, nullptr, nullptr) ==
          hipSuccess);
    CHECK(hip.hipStreamDestroy(s.first) == hipSuccess);
    s.first = nullptr;
    CHECK(Streams::status(s.second) == hipStreamCaptureStatusNone);
    CHECK(hip.hipGraphDestroy(captured) == hipErrorInvalidValue); // it is gone
    CHECK(s.launch(4, 64, s.second) == hipSuccess);               // runs
    CHECK(hip.hipDeviceSynchronize() == hipSuccess);
    CHECK(s.contents()[0] == 4);
  }
  SECTION("another one, whose work is joined") {
    CHECK(hip.hipEventRecord(s.other, s.second) == hipSuccess);
    CHECK(hip.hipStreamWaitEvent(s.first, s.other, 0) == hipSuccess);
    CHECK(hip.hipStreamDestroy(s.second) == hipSuccess);
    s.second = nullptr;
    CHECK(hip.hipStreamEndCapture(s.first, &s.graph) == hipSuccess);
    CHECK(s.nodes() == 2);
  }
  SECTION("another one, whose work is not") {
    CHECK(hip.hipStreamDestroy(s.second) == hipSuccess);
    s.second = nullptr;
    CHECK(hip.hipStreamEndCapture(s.first, &s.graph) == hipErrorStreamCaptureUnjoined);
  }
}

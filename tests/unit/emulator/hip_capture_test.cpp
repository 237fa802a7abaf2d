//===- hip_capture_test.cpp - streams that capture, and calls that are illegal meanwhile ----------------===//

#include <catch2/catch.hpp>
#include <thread>

#include "unit/emulator/hip_fixture.h"

using namespace sluice::test;

namespace {

constexpr auto global = hipStreamCaptureModeGlobal;
constexpr auto thread_local_mode = hipStreamCaptureModeThreadLocal;
constexpr auto relaxed = hipStreamCaptureModeRelaxed;

struct Capturing {
  hipStream_t first = nullptr, second = nullptr;
  hipEvent_t fork = nullptr, join = nullptr;

  explicit Capturing(hipStreamCaptureMode mode, unsigned flags = hipStreamNonBlocking) {
    REQUIRE(hip.hipStreamCreateWithFlags(&first, flags) == hipSuccess);
    REQUIRE(hip.hipStreamCreateWithFlags(&second, flags) == hipSuccess);
    REQUIRE(hip.hipEventCreate(&fork) == hipSuccess);
    REQUIRE(hip.hipEventCreate(&join) == hipSuccess);
    REQUIRE(hip.hipStreamBeginCapture(first, mode) == hipSuccess);
  }
  ~Capturing() {
    end();
    CHECK(hip.hipEventDestroy(join) == hipSuccess);
    CHECK(hip.hipEventDestroy(fork) == hipSuccess);
    CHECK(hip.hipStreamDestroy(second) == hipSuccess);
    CHECK(hip.hipStreamDestroy(first) == hipSuccess);
    hip.hipGetLastError();
  }
  hipStreamCaptureStatus status(hipStream_t stream) const {
    hipStreamCaptureStatus value{};
    CHECK(hip.hipStreamIsCapturing(stream, &value) == hipSuccess);
    return value;
  }
  hipError_t end() const {
    hipGraph_t graph = nullptr;
    const hipError_t error = hip.hipStreamEndCapture(first, &graph);
    CHECK((graph != nullptr) == (error == hipSuccess));
    if (graph) CHECK(hip.hipGraphDestroy(graph) == hipSuccess);
    return error;
  }
  hipError_t host_call(hipStream_t stream) const {
    return hip.hipLaunchHostFunc(stream, [](void *) {}, nullptr);
  }
  /// A call was refused with `error`; the capture is invalid, refuses further work with an error, and ends
  /// without a graph.
  void refused(hipError_t error, hipError_t expected) const {
    CHECK(error == expected);
    CHECK(status(first) == hipStreamCaptureStatusInvalidated);
    CHECK(host_call(first) == hipErrorStreamCaptureInvalidated);
    CHECK(end() == hipErrorStreamCaptureInvalidated);
    CHECK(status(first) == hipStreamCaptureStatusNone);
  }
};

} // namespace

TEST_CASE("a capture begins and ends, and its streams report it", "[hip][capture]") {
  Capturing c(global);
  CHECK(c.status(c.first) == hipStreamCaptureStatusActive);
  CHECK(c.status(c.second) == hipStreamCaptureStatusNone);
  CHECK(hip.hipStreamBeginCapture(c.first, global) == hipErrorIllegalState);
  CHECK(hip.hipStreamBeginCapture(nullptr, global) == hipErrorStreamCaptureUnsupported);
  CHECK(hip.hipStreamBeginCapture(c.second, hipStreamCaptureMode(3)) == hipErrorInvalidValue);
  hipGraph_t graph = nullptr;
  CHECK(hip.hipStreamEndCapture(c.second, &graph) == hipErrorIllegalState);
  CHECK(hip.hipStreamEndCapture(c.first, nullptr) == hipErrorInvalidValue);

  // Work becomes nodes, each after the one before.
  hipStreamCaptureStatus status{};
  unsigned long long id = 0, same = 0;
  const hipGraphNode_t *last = nullptr;
  size_t count = 9;
  CHECK(hip.hipStreamGetCaptureInfo_v2(c.first, &status, &id, &graph, &last, &count) == hipSuccess);
  CHECK(status == hipStreamCaptureStatusActive);
  CHECK(id != 0);
  CHECK(count == 0);
  CHECK(hip.hipGraphDestroy(graph) == hipErrorInvalidValue); // not yet
  CHECK(c.host_call(c.first) == hipSuccess);
  CHECK(hip.hipStreamGetCaptureInfo_v2(c.first, &status, nullptr, nullptr, &last, &count) == hipSuccess);
  REQUIRE(count == 1);
  const hipGraphNode_t node = *last;
  CHECK(hip.hipStreamGetCaptureInfo(c.first, &status, &same) == hipSuccess);
  CHECK(same == id);

  // Nodes added by hand, after which the stream continues.
  hipGraphNode_t empty = nullptr;
  CHECK(hip.hipGraphAddEmptyNode(&empty, graph, &node, 1) == hipSuccess);
  CHECK(hip.hipStreamUpdateCaptureDependencies(c.first, &empty, 1, hipStreamSetCaptureDependencies) ==
        hipSuccess);
  CHECK(hip.hipStreamGetCaptureInfo_v2(c.first, &status, nullptr, nullptr, &last, &count) == hipSuccess);
  REQUIRE(count == 1);
  CHECK(*last == empty);
  hipGraphNode_t stranger = reinterpret_cast<hipGraphNode_t>(&status);
  CHECK(hip.hipStreamUpdateCaptureDependencies(c.first, &stranger, 1, hipStreamAddCaptureDependencies) ==
        hipErrorInvalidValue);
  CHECK(hip.hipStreamUpdateCaptureDependencies(c.first, &empty, 1, 2) == hipErrorInvalidValue);
  CHECK(hip.hipStreamUpdateCaptureDependencies(c.second, &empty, 1, 0) == hipErrorIllegalState);
  hipGraph_t ended = nullptr;
  CHECK(hip.hipStreamEndCapture(c.first, &ended) == hipSuccess);
  CHECK(ended == graph);
  CHECK(hip.hipGraphGetNodes(graph, nullptr, &count) == hipSuccess);
  CHECK(count == 2);
  CHECK(hip.hipGraphDestroy(graph) == hipSuccess);
}

TEST_CASE("a stream joins a capture through an event, and has to be joined again", "[hip][capture]") {
  Capturing c(global);
  CHECK(c.host_call(c.first) == hipSuccess);
  CHECK(hip.hipEventRecord(c.fork, c.first) == hipSuccess);
  CHECK(hip.hipStreamWaitEvent(c.second, c.fork, 0) == hipSuccess);
  CHECK(c.status(c.second) == hipStreamCaptureStatusActive);
  CHECK(c.host_call(c.second) == hipSuccess);
  hipGraph_t graph = nullptr;
  SECTION("joined") {
    CHECK(hip.hipEventRecord(c.join, c.second) == hipSuccess);
    CHECK(hip.hipStreamWaitEvent(c.first, c.join, 0) == hipSuccess);
    CHECK(hip.hipStreamEndCapture(c.second, &graph) == hipErrorStreamCaptureUnmatched);
    CHECK(c.end() == hipSuccess);
    // An event of the capture cannot be waited for.
    CHECK(hip.hipEventQuery(c.join) == hipErrorCapturedEvent);
    CHECK(hip.hipStreamWaitEvent(c.first, c.join, 0) == hipErrorCapturedEvent);
    CHECK(hip.hipEventRecord(c.join, c.first) == hipSuccess);
    CHECK(hip.hipEventSynchronize(c.join) == hipSuccess);
  }
  SECTION("not joined") {
    CHECK(c.end() == hipErrorStreamCaptureUnjoined);
  }
  SECTION("joined before its last work") {
    CHECK(hip.hipEventRecord(c.join, c.second) == hipSuccess);
    CHECK(hip.hipStreamWaitEvent(c.first, c.join, 0) == hipSuccess);
    CHECK(c.host_call(c.second) == hipSuccess);
    CHECK(c.end() == hipErrorStreamCaptureUnjoined);
  }
  CHECK(c.status(c.first) == hipStreamCaptureStatusNone);
  CHECK(c.status(c.second) == hipStreamCaptureStatusNone);
}

TEST_CASE("waiting for a stream, its events or the device makes a capture invalid", "[hip][capture]") {
  const auto mode = GENERATE(global, thread_local_mode, relaxed);
  Capturing c(mode);
  SECTION("the stream") {
    c.refused(hip.hipStreamSynchronize(c.first), hipErrorStreamCaptureUnsupported);
  }
  SECTION("asking it") {
    c.refused(hip.hipStreamQuery(c.first), hipErrorStreamCaptureUnsupported);
  }
  SECTION("the device") {
    c.refused(hip.hipDeviceSynchronize(), hipErrorStreamCaptureUnsupported);
  }
  SECTION("an event") {
    CHECK(hip.hipEventRecord(c.fork, c.first) == hipSuccess);
    c.refused(hip.hipEventSynchronize(c.fork), hipErrorCapturedEvent);
  }
  SECTION("an event of work outside") {
    CHECK(hip.hipEventRecord(c.fork, c.second) == hipSuccess);
    c.refused(hip.hipStreamWaitEvent(c.first, c.fork, 0), hipErrorStreamCaptureIsolation);
  }
  SECTION("an event of another capture") {
    CHECK(hip.hipStreamBeginCapture(c.second, mode) == hipSuccess);
    CHECK(hip.hipEventRecord(c.fork, c.second) == hipSuccess);
    c.refused(hip.hipStreamWaitEvent(c.first, c.fork, 0), hipErrorStreamCaptureMerge);
    hipGraph_t graph = nullptr;
    CHECK(hip.hipStreamEndCapture(c.second, &graph) == hipErrorStreamCaptureInvalidated);
    CHECK(graph == nullptr);
  }
  SECTION("allocating in its order") {
    void *memory = nullptr;
    c.refused(hip.hipMallocAsync(&memory, 64, c.first), hipErrorStreamCaptureUnsupported);
  }
}

TEST_CASE("the null stream is refused while a blocking stream captures", "[hip][capture]") {
  Fixture fixture;
  {
    Capturing c(relaxed, 0);
    hipStreamCaptureStatus status{};
    CHECK(hip.hipStreamIsCapturing(nullptr, &status) == hipErrorStreamCaptureImplicit);
    CHECK(c.status(c.first) == hipStreamCaptureStatusActive);
    SECTION("launch") {
      c.refused(fixture.launch(1, 10), hipErrorStreamCaptureImplicit);
    }
    SECTION("copy") {
      int value = 0;
      c.refused(hip.hipMemcpy(&value, fixture.buffer, 4, hipMemcpyDeviceToHost),
                hipErrorStreamCaptureImplicit);
    }
    SECTION("fill") {
      c.refused(hip.hipMemset(fixture.buffer, 0, 4), hipErrorStreamCaptureImplicit);
    }
    SECTION("wait") {
      c.refused(hip.hipStreamSynchronize(nullptr), hipErrorStreamCaptureImplicit);
    }
  }
  Capturing c(relaxed);
  CHECK(fixture.launch(1, 10) == hipSuccess);
  CHECK(hip.hipEventRecord(c.fork, c.first) == hipSuccess);
  c.refused(hip.hipStreamWaitEvent(nullptr, c.fork, 0), hipErrorStreamCaptureImplicit);
}

TEST_CASE("the modes say which threads may make unsafe calls, and end a capture", "[hip][capture]") {
  auto allocate = [](hipStreamCaptureMode mode) {
    CHECK(hip.hipThreadExchangeStreamCaptureMode(&mode) == hipSuccess);
    void *memory = nullptr;
    const hipError_t error = hip.hipMalloc(&memory, 64);
    CHECK(hip.hipThreadExchangeStreamCaptureMode(&mode) == hipSuccess);
    hipStreamCaptureMode all = relaxed; // also frees while others capture
    CHECK(hip.hipThreadExchangeStreamCaptureMode(&all) == hipSuccess);
    CHECK(all == global);
    if (!error) CHECK(hip.hipFree(memory) == hipSuccess);
    CHECK(hip.hipThreadExchangeStreamCaptureMode(&all) == hipSuccess);
    return error;
  };
  auto elsewhere = [&](hipStreamCaptureMode mode) {
    hipError_t error = hipErrorUnknown;
    std::thread([&] { error = allocate(mode); }).join();
    return error;
  };
  constexpr hipError_t unsafe = hipErrorStreamCaptureUnsupported;
  for (const auto &[capture_mode, thread_mode, here, there] :
       {std::tuple{global, global, unsafe, unsafe}, std::tuple{global, thread_local_mode, unsafe, hipSuccess},
        std::tuple{global, relaxed, hipSuccess, hipSuccess},
        std::tuple{thread_local_mode, global, unsafe, hipSuccess},
        std::tuple{thread_local_mode, thread_local_mode, unsafe, hipSuccess},
        std::tuple{thread_local_mode, relaxed, hipSuccess, hipSuccess},
        std::tuple{relaxed, global, hipSuccess, hipSuccess}}) {
    INFO(capture_mode << ' ' << thread_mode);
    for (const bool other_thread : {false, true}) {
      Capturing c(capture_mode);
      const hipError_t expected = other_thread ? there : here;
      const hipError_t error = other_thread ? elsewhere(thread_mode) : allocate(thread_mode);
      if (expected)
        c.refused(error, expected);
      else
        CHECK(error == hipSuccess);
    }
    Capturing c(capture_mode);
    hipError_t ended = hipErrorUnknown;
    hipGraph_t graph = nullptr;
    std::thread([&] { ended = hip.hipStreamEndCapture(c.first, &graph); }).join();
    CHECK(ended == (capture_mode == relaxed ? hipSuccess : hipErrorStreamCaptureWrongThread));
    if (graph) CHECK(hip.hipGraphDestroy(graph) == hipSuccess);
  }
  hipStreamCaptureMode wrong = hipStreamCaptureMode(3);
  CHECK(hip.hipThreadExchangeStreamCaptureMode(&wrong) == hipErrorInvalidValue);
  hip.hipGetLastError();
}

TEST_CASE("a capture copies the arguments, runs nothing, and replays in any stream", "[hip][capture]") {
  Fixture fixture;
  Capturing c(global);
  std::vector<int> back(Fixture::elements);
  CHECK(hip.hipMemsetAsync(fixture.buffer, 0, sizeof(int) * Fixture::elements, c.first) == hipSuccess);
  CHECK(fixture.launch(7, 100, c.first) == hipSuccess);
  // Memory of the host is read and written when the graph runs.
  CHECK(hip.hipMemcpyAsync(back.data(), fixture.buffer, 400, hipMemcpyDeviceToHost, c.first) == hipSuccess);
  hipGraph_t graph = nullptr;
  REQUIRE(hip.hipStreamEndCapture(c.first, &graph) == hipSuccess);
  CHECK(back[0] == 0);
  CHECK(fixture.contents()[0] == 0);

  hipGraphExec_t exec = nullptr;
  REQUIRE(hip.hipGraphInstantiate(&exec, graph, nullptr, nullptr, 0) == hipSuccess);
  CHECK(hip.hipGraphDestroy(graph) == hipSuccess);
  CHECK(hip.hipGraphUpload(exec, c.second) == hipSuccess);
  for (hipStream_t stream : {c.second, hipStream_t(nullptr), c.first}) {
    back.assign(back.size(), 0);
    CHECK(hip.hipGraphLaunch(exec, stream) == hipSuccess);
    CHECK(hip.hipStreamSynchronize(stream) == hipSuccess);
    CHECK(back[0] == 7);
    CHECK(back[99] == 106);
    CHECK(hip.hipMemset(fixture.buffer, 0xff, 400) == hipSuccess);
  }
  CHECK(take_reports() == "[]");
  CHECK(hip.hipGraphExecDestroy(exec) == hipSuccess);
  CHECK(hip.hipGraphLaunch(exec, nullptr) == hipErrorInvalidValue);
}

//===- hip_stream_race_test.cpp - work of streams on the same memory, ordered and unordered -------------===//
//
// Each case runs with the streams' own threads and in several random orders: the reports must not depend on
// the order.
//
//===----------------------------------------------------------------------------------------------------===//

#include <atomic>
#include <catch2/catch.hpp>
#include <thread>

#include "unit/emulator/hip_fixture.h"

using namespace sluice::test;

namespace {

struct Racing : Fixture {
  hipStream_t first = nullptr, second = nullptr, blocking = nullptr;
  hipEvent_t event = nullptr;
  void *pinned = nullptr;

  Racing() {
    REQUIRE(hip.hipStreamCreateWithFlags(&first, hipStreamNonBlocking) == hipSuccess);
    REQUIRE(hip.hipStreamCreateWithFlags(&second, hipStreamNonBlocking) == hipSuccess);
    REQUIRE(hip.hipStreamCreate(&blocking) == hipSuccess);
    REQUIRE(hip.hipEventCreate(&event) == hipSuccess);
    REQUIRE(hip.hipHostMalloc(&pinned, 4000, 0) == hipSuccess);
    take_reports();
    const std::string order = GENERATE("concurrent", "1", "2", "3");
    REQUIRE(sluice_emulator_configure("stream_order", order.c_str()) == SLUICE_EMULATOR_OK);
  }
  ~Racing() {
    CHECK(hip.hipDeviceSynchronize() == hipSuccess);
    CHECK(hip.hipHostFree(pinned) == hipSuccess);
    CHECK(hip.hipEventDestroy(event) == hipSuccess);
    for (hipStream_t stream : {first, second, blocking})
      CHECK(hip.hipStreamDestroy(stream) == hipSuccess);
  }
  hipError_t copy_out(hipStream_t stream, size_t offset = 0, size_t bytes = 400) const {
    return hip.hipMemcpyAsync(pinned, reinterpret_cast<char *>(buffer) + offset, bytes, hipMemcpyDeviceToHost,
                              stream);
  }
  static std::string reports() {
    CHECK(hip.hipDeviceSynchronize() == hipSuccess); // a race is not a fault
    return take_reports();
  }
  static bool raced(const std::string &one, const std::string &other) {
    const std::string text = reports();
    INFO(text);
    const bool is = text.find("\"stream_race\"") != std::string::npos;
    if (is) {
      CHECK(text.find(one) != std::string::npos);
      CHECK(text.find(other) != std::string::npos);
      CHECK(text.find("neither waits for the other") != std::string::npos);
    }
    return is;
  }
};

} // namespace

TEST_CASE_METHOD(Racing, "a kernel and a copy in no order are reported", "[hip][races]") {
  CHECK(launch(5, 100, first) == hipSuccess);
  CHECK(copy_out(second) == hipSuccess);
  CHECK(raced("kernel fill", "copy of 400 bytes"));
}

TEST_CASE_METHOD(Racing, "the bytes that are touched count, not the block", "[hip][races]") {
  CHECK(launch(5, 100, first) == hipSuccess); // bytes 0 to 399, by two workgroups
  CHECK(copy_out(second, 400, 100) == hipSuccess);
  CHECK(launch(5, 10, blocking, buffer + 200) == hipSuccess); // a single workgroup
  CHECK(reports() == "[]");
  CHECK(launch(5, 100, first) == hipSuccess);
  CHECK(copy_out(second, 399, 100) == hipSuccess);
  CHECK(raced("kernel fill", "copy of 100 bytes"));
  CHECK(launch(5, 10, first, buffer + 200) == hipSuccess);
  CHECK(hip.hipMemsetAsync(buffer + 209, 1, 4, second) == hipSuccess);
  CHECK(raced("kernel fill", "fill of 4 bytes"));
}

TEST_CASE_METHOD(Racing, "two reads are not a race", "[hip][races]") {
  void *other = nullptr;
  REQUIRE(hip.hipHostMalloc(&other, 400, 0) == hipSuccess);
  CHECK(copy_out(first) == hipSuccess);
  CHECK(hip.hipMemcpyAsync(other, buffer, 400, hipMemcpyDeviceToHost, second) == hipSuccess);
  CHECK(reports() == "[]");
  CHECK(hip.hipHostFree(other) == hipSuccess);
}

TEST_CASE_METHOD(Racing, "calls that order work prevent a race", "[hip][races]") {
  // With other streams at work, too: the emulator must not forget then what the host has synchronised with.
  hipStream_t busy = nullptr;
  REQUIRE(hip.hipStreamCreateWithFlags(&busy, hipStreamNonBlocking) == hipSuccess);
  const int pieces = GENERATE(0, 200);
  for (int i = 0; i < pieces; ++i)
    CHECK(hip.hipMemsetAsync(buffer + 900, 0, 4, busy) == hipSuccess);
  SECTION("an event") {
    CHECK(launch(5, 100, first) == hipSuccess);
    CHECK(hip.hipEventRecord(event, first) == hipSuccess);
    CHECK(hip.hipStreamWaitEvent(second, event, 0) == hipSuccess);
    CHECK(copy_out(second) == hipSuccess);
  }
  SECTION("the host waits for the stream") {
    CHECK(launch(5, 100, first) == hipSuccess);
    CHECK(hip.hipStreamSynchronize(first) == hipSuccess);
    CHECK(copy_out(second) == hipSuccess);
  }
  SECTION("the host waits for an event") {
    CHECK(launch(5, 100, first) == hipSuccess);
    CHECK(hip.hipEventRecord(event, first) == hipSuccess);
    CHECK(hip.hipEventSynchronize(event) == hipSuccess);
    CHECK(copy_out(second) == hipSuccess);
  }
  SECTION("the host asks until it is done") {
    CHECK(launch(5, 100, first) == hipSuccess);
    while (hip.hipStreamQuery(first) == hipErrorNotReady)
      ;
    CHECK(copy_out(second) == hipSuccess);
  }
  SECTION("the host asks an event") {
    CHECK(launch(5, 100, first) == hipSuccess);
    CHECK(hip.hipEventRecord(event, first) == hipSuccess);
    while (hip.hipEventQuery(event) == hipErrorNotReady)
      ;
    CHECK(copy_out(second) == hipSuccess);
  }
  SECTION("a copy that waits") {
    CHECK(launch(5, 100, first) == hipSuccess);
    int value = 0;
    CHECK(hip.hipMemcpyWithStream(&value, buffer, 4, hipMemcpyDeviceToHost, first) == hipSuccess);
    CHECK(copy_out(second) == hipSuccess);
  }
  SECTION("the null stream") {
    CHECK(launch(5, 100, blocking) == hipSuccess);
    CHECK(copy_out(nullptr) == hipSuccess);
    CHECK(launch(6, 100, blocking) == hipSuccess);
  }
  SECTION("the null stream, after a destroyed stream") {
    hipStream_t gone = nullptr;
    REQUIRE(hip.hipStreamCreate(&gone) == hipSuccess);
    CHECK(launch(5, 100, gone) == hipSuccess);
    CHECK(hip.hipStreamDestroy(gone) == hipSuccess);
    CHECK(copy_out(nullptr) == hipSuccess);
  }
  SECTION("a device wait, after a destroyed stream") {
    hipStream_t gone = nullptr;
    REQUIRE(hip.hipStreamCreateWithFlags(&gone, hipStreamNonBlocking) == hipSuccess);
    CHECK(launch(5, 100, gone) == hipSuccess);
    CHECK(hip.hipStreamDestroy(gone) == hipSuccess);
    CHECK(hip.hipDeviceSynchronize() == hipSuccess);
    CHECK(copy_out(first) == hipSuccess);
  }
  CHECK(reports() == "[]");
  CHECK(hip.hipStreamDestroy(busy) == hipSuccess);
}

TEST_CASE_METHOD(Racing, "calls that do not order work do not prevent a race", "[hip][races]") {
  SECTION("an event recorded before") {
    CHECK(hip.hipEventRecord(event, first) == hipSuccess);
    CHECK(launch(5, 100, first) == hipSuccess);
    CHECK(hip.hipStreamWaitEvent(second, event, 0) == hipSuccess);
    CHECK(copy_out(second) == hipSuccess);
  }
  SECTION("the null stream and one that does not block") {
    CHECK(launch(5, 100, first) == hipSuccess);
    CHECK(copy_out(nullptr) == hipSuccess);
  }
  SECTION("two blocking streams") {
    hipStream_t other = nullptr;
    REQUIRE(hip.hipStreamCreate(&other) == hipSuccess);
    CHECK(launch(5, 100, other) == hipSuccess);
    CHECK(copy_out(blocking) == hipSuccess);
    CHECK(hip.hipStreamDestroy(other) == hipSuccess);
  }
  SECTION("a wait of the host for another stream") {
    CHECK(launch(5, 100, first) == hipSuccess);
    CHECK(hip.hipStreamSynchronize(second) == hipSuccess);
    CHECK(copy_out(second) == hipSuccess);
  }
  SECTION("a wait of the host after both were submitted") {
    CHECK(launch(5, 100, first) == hipSuccess);
    CHECK(copy_out(second) == hipSuccess);
    CHECK(hip.hipStreamSynchronize(first) == hipSuccess);
  }
  CHECK(raced("kernel fill", "copy of 400 bytes"));
}

TEST_CASE_METHOD(Racing, "branches of a graph race unless an edge orders them", "[hip][races]") {
  const bool ordered = GENERATE(true, false);
  int *out = buffer;
  int value = 5, count = 100;
  void *parameters[] = {&out, &value, &count};
  const hipKernelNodeParams kernel{{64, 1, 1}, nullptr, fill, {2, 1, 1}, parameters, 0};
  hipGraph_t graph = nullptr;
  hipGraphNode_t one = nullptr, other = nullptr;
  REQUIRE(hip.hipGraphCreate(&graph, 0) == hipSuccess);
  CHECK(hip.hipGraphAddKernelNode(&one, graph, nullptr, 0, &kernel) == hipSuccess);
  CHECK(hip.hipGraphAddMemcpyNode1D(&other, graph, &one, ordered, pinned, buffer, 400,
                                    hipMemcpyDeviceToHost) == hipSuccess);
  hipGraphExec_t exec = nullptr;
  CHECK(hip.hipGraphInstantiate(&exec, graph, nullptr, nullptr, 0) == hipSuccess);
  CHECK(hip.hipGraphLaunch(exec, first) == hipSuccess);
  CHECK(launch(1, 100, first) == hipSuccess); // after the whole graph
  CHECK(raced("kernel fill", "copy of 400 bytes") == !ordered);
  CHECK(hip.hipGraphExecDestroy(exec) == hipSuccess);
  CHECK(hip.hipGraphDestroy(graph) == hipSuccess);
}

TEST_CASE_METHOD(Racing, "memory that is freed while another stream uses it", "[hip][races]") {
  void *memory = nullptr;
  CHECK(hip.hipMallocAsync(&memory, 400, first) == hipSuccess);
  CHECK(hip.hipMemsetAsync(memory, 0, 400, first) == hipSuccess);
  CHECK(hip.hipEventRecord(event, first) == hipSuccess);
  CHECK(hip.hipStreamWaitEvent(second, event, 0) == hipSuccess);
  CHECK(hip.hipMemsetAsync(memory, 1, 4, second) == hipSuccess);
  const bool joined = GENERATE(true, false);
  if (joined) {
    CHECK(hip.hipEventRecord(event, second) == hipSuccess);
    CHECK(hip.hipStreamWaitEvent(first, event, 0) == hipSuccess);
  }
  CHECK(hip.hipFreeAsync(memory, first) == hipSuccess);
  const std::string text = reports();
  INFO(text);
  CHECK((text.find("\"freed_in_use\"") != std::string::npos) == !joined);
  if (!joined) CHECK(text.find("releases") != std::string::npos);
  if (joined) CHECK(text == "[]");
}

TEST_CASE_METHOD(Racing, "a graph waits for its stream's work and its own last launch", "[hip][races]") {
  // Two roots: one of them has a separate lane.
  hipGraph_t graph = nullptr;
  hipGraphNode_t one = nullptr, other = nullptr;
  REQUIRE(hip.hipGraphCreate(&graph, 0) == hipSuccess);
  const hipMemsetParams low{buffer, 1, 1, 0, 1, 200}, high{buffer + 50, 1, 1, 0, 2, 200};
  CHECK(hip.hipGraphAddMemsetNode(&one, graph, nullptr, 0, &low) == hipSuccess);
  CHECK(hip.hipGraphAddMemsetNode(&other, graph, nullptr, 0, &high) == hipSuccess);
  hipGraphExec_t exec = nullptr;
  CHECK(hip.hipGraphInstantiate(&exec, graph, nullptr, nullptr, 0) == hipSuccess);
  bool races = false;
  SECTION("work before it in its stream") {
    CHECK(launch(5, 100, first) == hipSuccess);
    CHECK(hip.hipGraphLaunch(exec, first) == hipSuccess);
    CHECK(launch(6, 100, first) == hipSuccess);
  }
  SECTION("work before it in another stream") {
    races = true;
    CHECK(launch(5, 100, second) == hipSuccess);
    CHECK(hip.hipGraphLaunch(exec, first) == hipSuccess);
  }
  SECTION("work after it in another stream") {
    races = true;
    CHECK(hip.hipGraphLaunch(exec, first) == hipSuccess);
    CHECK(launch(5, 100, second) == hipSuccess);
  }
  SECTION("an event after it") {
    CHECK(hip.hipGraphLaunch(exec, first) == hipSuccess);
    CHECK(hip.hipEventRecord(event, first) == hipSuccess);
    CHECK(hip.hipStreamWaitEvent(second, event, 0) == hipSuccess);
    CHECK(launch(5, 100, second) == hipSuccess);
  }
  SECTION("launched in two streams") {
    CHECK(hip.hipGraphLaunch(exec, first) == hipSuccess);
    CHECK(hip.hipGraphLaunch(exec, second) == hipSuccess);
  }
  SECTION("the null stream") {
    CHECK(hip.hipGraphLaunch(exec, blocking) == hipSuccess);
    CHECK(launch(5, 100, nullptr) == hipSuccess);
    CHECK(hip.hipGraphLaunch(exec, blocking) == hipSuccess);
  }
  const std::string text = reports();
  INFO(text);
  CHECK((text.find("\"stream_race\"") != std::string::npos) == races);
  if (!races) CHECK(text == "[]");
  CHECK(hip.hipGraphExecDestroy(exec) == hipSuccess);
  CHECK(hip.hipGraphDestroy(graph) == hipSuccess);
}

TEST_CASE_METHOD(Racing, "events in graphs order work of other streams", "[hip][races]") {
  hipEvent_t inside = nullptr;
  REQUIRE(hip.hipEventCreate(&inside) == hipSuccess);
  hipGraph_t graph = nullptr;
  hipGraphNode_t wait = nullptr, fill_node = nullptr, mark = nullptr;
  REQUIRE(hip.hipGraphCreate(&graph, 0) == hipSuccess);
  const hipMemsetParams all{buffer, 1, 1, 0, 1, 400};
  const bool waits = GENERATE(true, false), marks = GENERATE(true, false);
  if (waits) CHECK(hip.hipGraphAddEventWaitNode(&wait, graph, nullptr, 0, event) == hipSuccess);
  CHECK(hip.hipGraphAddMemsetNode(&fill_node, graph, &wait, waits, &all) == hipSuccess);
  if (marks) CHECK(hip.hipGraphAddEventRecordNode(&mark, graph, &fill_node, 1, inside) == hipSuccess);
  hipGraphExec_t exec = nullptr;
  CHECK(hip.hipGraphInstantiate(&exec, graph, nullptr, nullptr, 0) == hipSuccess);
  CHECK(launch(5, 100, second) == hipSuccess);
  CHECK(hip.hipEventRecord(event, second) == hipSuccess);
  CHECK(hip.hipGraphLaunch(exec, first) == hipSuccess);
  CHECK(hip.hipStreamWaitEvent(blocking, inside, 0) == hipSuccess);
  CHECK(copy_out(blocking) == hipSuccess);
  const std::string text = reports();
  INFO(text);
  CHECK((text == "[]") == (waits && marks));
  const auto between = [&](const char *one, const char *two) {
    size_t found = 0;
    for (const std::string &line : {std::string(one) + "\", \"message", std::string("memory that ") + one})
      found += text.find(line) != std::string::npos && text.find(two) != std::string::npos;
    return found != 0;
  };
  if (!waits) CHECK(between("kernel fill", "fill of 400 bytes"));
  if (!marks) CHECK(between("copy of 400 bytes", "fill of 400 bytes"));
  CHECK(hip.hipGraphExecDestroy(exec) == hipSuccess);
  CHECK(hip.hipGraphDestroy(graph) == hipSuccess);
  CHECK(hip.hipEventDestroy(inside) == hipSuccess);
}

TEST_CASE_METHOD(Racing, "order is passed on from stream to stream", "[hip][races]") {
  CHECK(launch(5, 100, first) == hipSuccess);
  CHECK(hip.hipEventRecord(event, first) == hipSuccess);
  CHECK(hip.hipStreamWaitEvent(second, event, 0) == hipSuccess);
  CHECK(hip.hipMemsetAsync(buffer + 500, 0, 4, second) == hipSuccess); // something else
  CHECK(hip.hipEventRecord(event, second) == hipSuccess);
  CHECK(hip.hipStreamWaitEvent(blocking, event, 0) == hipSuccess);
  CHECK(hip.hipMemsetAsync(buffer + 501, 0, 4, blocking) == hipSuccess);
  CHECK(copy_out(nullptr) == hipSuccess); // after `blocking`
  CHECK(reports() == "[]");
}

TEST_CASE_METHOD(Racing, "a process may make many streams", "[hip][races]") {
  // From time to time the emulator discards the work that the host has synchronised with.
  const auto make_many = [&](int *out) {
    for (int round = 0; round < 100; ++round) {
      hipStream_t stream = nullptr;
      REQUIRE(hip.hipStreamCreateWithFlags(&stream, hipStreamNonBlocking) == hipSuccess);
      CHECK(launch(round, 100, stream, out) == hipSuccess);
      CHECK(hip.hipStreamSynchronize(stream) == hipSuccess);
      CHECK(hip.hipStreamDestroy(stream) == hipSuccess);
    }
  };
  make_many(buffer);
  CHECK(reports() == "[]");
  // But not while there is work that the host has not synchronised with.
  CHECK(launch(5, 100, first) == hipSuccess);
  CHECK(hip.hipEventRecord(event, first) == hipSuccess);
  CHECK(hip.hipStreamWaitEvent(second, event, 0) == hipSuccess);
  make_many(buffer + 500);
  CHECK(hip.hipEventRecord(event, second) == hipSuccess);
  CHECK(hip.hipStreamWaitEvent(blocking, event, 0) == hipSuccess);
  CHECK(copy_out(blocking) == hipSuccess);
  CHECK(reports() == "[]");
  CHECK(launch(5, 100, first) == hipSuccess);
  CHECK(copy_out(second) == hipSuccess);
  CHECK(raced("kernel fill", "copy of 400 bytes"));
}

TEST_CASE_METHOD(Racing, "large memory that is freed while another stream uses it", "[hip][races]") {
  // Larger than the quarantine: once it is freed, its addresses are unmapped.
  constexpr size_t bytes = (64 << 20) + 4096;
  const bool free_first = GENERATE(true, false);
  void *memory = nullptr;
  CHECK(hip.hipMallocAsync(&memory, bytes, first) == hipSuccess);
  CHECK(hip.hipMemsetAsync(memory, 0, 8, first) == hipSuccess);
  CHECK(hip.hipEventRecord(event, first) == hipSuccess);
  CHECK(hip.hipStreamWaitEvent(second, event, 0) == hipSuccess);
  const int use = GENERATE(0, 1, 2);
  const auto work = [&] {
    if (use == 0) return hip.hipMemsetAsync(memory, 1, bytes, second);
    // The direction must say which side is the device's: a freed address could be the host's.
    if (use == 1) return hip.hipMemcpyAsync(pinned, memory, 400, hipMemcpyDeviceToHost, second);
    return hip.hipMemcpyAsync(memory, pinned, 400, hipMemcpyHostToDevice, second);
  };
  if (!free_first) CHECK(work() == hipSuccess);
  CHECK(hip.hipFreeAsync(memory, first) == hipSuccess);
  // A call on memory that is already freed is refused at once.
  const hipError_t asked = free_first ? work() : hipSuccess;
  const std::string text = reports();
  INFO(text);
  if (asked == hipSuccess) {
    CHECK(text.find("\"freed_in_use\"") != std::string::npos);
    CHECK(text.find("releases") != std::string::npos);
  } else {
    CHECK(text == "[]");
  }
  CHECK(text.find("\"global_freed\"") == std::string::npos);
}

TEST_CASE_METHOD(Racing, "a host function tells the host what came before it", "[hip][races]") {
  CHECK(sluice_emulator_configure("stream_order", "concurrent") == SLUICE_EMULATOR_OK);
  std::atomic<bool> flag{false};
  const auto set = [](void *user) { *static_cast<std::atomic<bool> *>(user) = true; };
  const auto wait_for_flag = [](void *user) {
    while (!*static_cast<std::atomic<bool> *>(user))
      std::this_thread::yield();
  };
  SECTION("the host waits for its flag") {
    CHECK(launch(5, 100, first) == hipSuccess);
    CHECK(hip.hipLaunchHostFunc(first, set, &flag) == hipSuccess);
    wait_for_flag(&flag);
    CHECK(copy_out(second) == hipSuccess);
    CHECK(reports() == "[]");
  }
  SECTION("so does a callback") {
    CHECK(launch(5, 100, first) == hipSuccess);
    CHECK(hip.hipStreamAddCallback(
              first,
              [](hipStream_t, hipError_t, void *user) { *static_cast<std::atomic<bool> *>(user) = true; },
              &flag, 0) == hipSuccess);
    wait_for_flag(&flag);
    CHECK(copy_out(second) == hipSuccess);
    CHECK(reports() == "[]");
  }
  SECTION("but nothing of what comes after it") {
    CHECK(hip.hipLaunchHostFunc(first, wait_for_flag, &flag) == hipSuccess);
    CHECK(launch(5, 100, first) == hipSuccess);
    CHECK(hip.hipLaunchHostFunc(first, set, &flag) == hipSuccess);
    CHECK(copy_out(second) == hipSuccess);
    flag = true;
    CHECK(raced("kernel fill", "copy of 400 bytes"));
  }
}

TEST_CASE_METHOD(Racing, "memory is allocated at a place of its stream's order", "[hip][races]") {
  void *memory = nullptr;
  const bool from_pool = GENERATE(false, true);
  if (from_pool) {
    hipMemPool_t pool = nullptr;
    REQUIRE(hip.hipDeviceGetDefaultMemPool(&pool, 0) == hipSuccess);
    REQUIRE(hip.hipMallocFromPoolAsync(&memory, 4000, pool, first) == hipSuccess);
  } else {
    REQUIRE(hip.hipMallocAsync(&memory, 4000, first) == hipSuccess);
  }
  SECTION("another stream does not wait for it") {
    CHECK(launch(5, 100, second, memory) == hipSuccess);
    const std::string text = reports();
    INFO(text);
    CHECK(text.find("\"stream_race\"") != std::string::npos);
    CHECK(text.find("allocates") != std::string::npos);
    CHECK(text.find("4000 bytes") != std::string::npos);
  }
  SECTION("its own stream") {
    CHECK(launch(5, 100, first, memory) == hipSuccess);
    CHECK(reports() == "[]");
  }
  SECTION("another stream waits for an event") {
    CHECK(hip.hipEventRecord(event, first) == hipSuccess);
    CHECK(hip.hipStreamWaitEvent(second, event, 0) == hipSuccess);
    CHECK(launch(5, 100, second, memory) == hipSuccess);
    CHECK(reports() == "[]");
  }
  SECTION("the host waits") {
    CHECK(hip.hipStreamSynchronize(first) == hipSuccess);
    CHECK(launch(5, 100, second, memory) == hipSuccess);
    CHECK(reports() == "[]");
  }
  CHECK(hip.hipFree(memory) == hipSuccess);
}

TEST_CASE_METHOD(Racing, "the switch turns it off, and the same race is one report", "[hip][races]") {
  for (int i = 0; i < 3; ++i) {
    CHECK(launch(5, 100, first) == hipSuccess);
    CHECK(hip.hipMemsetAsync(buffer, 0, 4, first) == hipSuccess);
    CHECK(hip.hipStreamSynchronize(first) == hipSuccess);
  }
  CHECK(reports() == "[]");
  const bool on = GENERATE(true, false);
  CHECK(sluice_emulator_configure("stream_races", on ? "on" : "off") == SLUICE_EMULATOR_OK);
  for (int i = 0; i < 3; ++i) {
    CHECK(hip.hipMemsetAsync(buffer, 0, 4, first) == hipSuccess);
    CHECK(hip.hipMemsetAsync(buffer, 0, 4, second) == hipSuccess);
    CHECK(hip.hipDeviceSynchronize() == hipSuccess);
  }
  const std::string text = reports();
  INFO(text);
  size_t found = 0;
  for (size_t at = 0; (at = text.find("\"stream_race\"", at)) != std::string::npos; ++at)
    ++found;
  if (on) {
    CHECK(found >= 1); // one for each stream that came second
    CHECK(found <= 2);
  } else {
    CHECK(text == "[]");
  }
}

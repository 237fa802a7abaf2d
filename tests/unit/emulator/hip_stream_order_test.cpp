//===- hip_stream_order_test.cpp - the shuffled order of streams ----------------------------------------===//
//
// Four pieces of work on two streams each write their letter. Over many seeds every order that HIP allows
// must appear and no other: the test lists the allowed orders.
//
//===----------------------------------------------------------------------------------------------------===//

#include <catch2/catch.hpp>
#include <set>
#include <thread>

#include "unit/emulator/hip_fixture.h"

using namespace sluice::test;

namespace {

struct Streams {
  hipStream_t first = nullptr, second = nullptr;
  hipEvent_t event = nullptr;
  std::string order;

  explicit Streams(unsigned flags = hipStreamNonBlocking) {
    REQUIRE(hip.hipStreamCreateWithFlags(&first, flags) == hipSuccess);
    REQUIRE(hip.hipStreamCreateWithFlags(&second, flags) == hipSuccess);
    REQUIRE(hip.hipEventCreate(&event) == hipSuccess);
  }
  ~Streams() {
    CHECK(hip.hipEventDestroy(event) == hipSuccess);
    CHECK(hip.hipStreamDestroy(second) == hipSuccess);
    CHECK(hip.hipStreamDestroy(first) == hipSuccess);
    CHECK(sluice_emulator_configure("defaults", "1") == SLUICE_EMULATOR_OK);
  }

  template <char letter> void write(hipStream_t stream) {
    CHECK(hip.hipLaunchHostFunc(
              stream, [](void *user) { *static_cast<std::string *>(user) += letter; }, &order) == hipSuccess);
  }
};

/// The orders in which `enqueue` of fresh streams can run, over many seeds.
template <typename Enqueue> std::set<std::string> orders(Enqueue &&enqueue, unsigned flags) {
  std::set<std::string> seen;
  for (int seed = 0; seed < 100; ++seed) {
    std::string first;
    for (int again = 0; again < 2; ++again) { // the same seed, the same order
      Streams streams(flags);
      REQUIRE(sluice_emulator_configure("stream_order", std::to_string(seed).c_str()) == SLUICE_EMULATOR_OK);
      enqueue(streams);
      CHECK(streams.order.empty());
      CHECK(hip.hipDeviceSynchronize() == hipSuccess);
      if (again) CHECK(streams.order == first);
      first = streams.order;
    }
    seen.insert(first);
  }
  return seen;
}

} // namespace

TEST_CASE("a shuffled order keeps the order of each stream and nothing else", "[hip][stream_order]") {
  const auto seen = orders(
      [](Streams &s) {
        s.write<'a'>(s.first);
        s.write<'b'>(s.first);
        s.write<'c'>(s.second);
        s.write<'d'>(s.second);
      },
      hipStreamNonBlocking);
  CHECK(seen == std::set<std::string>{"abcd", "acbd", "acdb", "cabd", "cadb", "cdab"});
}

TEST_CASE("a shuffled order keeps what an event orders", "[hip][stream_order]") {
  const auto seen = orders(
      [](Streams &s) {
        s.write<'a'>(s.first);
        CHECK(hip.hipEventRecord(s.event, s.first) == hipSuccess);
        s.write<'b'>(s.first);
        s.write<'c'>(s.second);
        CHECK(hip.hipStreamWaitEvent(s.second, s.event, 0) == hipSuccess);
        s.write<'d'>(s.second);
      },
      hipStreamNonBlocking);
  CHECK(seen == std::set<std::string>{"abcd", "acbd", "acdb", "cabd", "cadb"});
}

TEST_CASE("a shuffled order keeps the null stream's rule", "[hip][stream_order]") {
  const auto seen = orders(
      [](Streams &s) {
        s.write<'a'>(s.first);
        s.write<'b'>(s.second);
        s.write<'c'>(nullptr);
        s.write<'d'>(s.first);
      },
      0);
  CHECK(seen == std::set<std::string>{"abcd", "bacd"});
}

TEST_CASE("in a shuffled order a wait runs the awaited work, and a query runs some work",
          "[hip][stream_order]") {
  CHECK(sluice_emulator_configure("stream_order", "soon") == SLUICE_EMULATOR_BAD_VALUE);
  CHECK(sluice_emulator_configure("stream_order", "-1") == SLUICE_EMULATOR_BAD_VALUE);
  Fixture fixture;
  Streams streams;
  REQUIRE(sluice_emulator_configure("stream_order", "1") == SLUICE_EMULATOR_OK);
  streams.write<'a'>(streams.first);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  CHECK(streams.order.empty());
  CHECK(hip.hipStreamSynchronize(streams.second) == hipSuccess); // has no work
  CHECK(streams.order.empty());
  CHECK(hip.hipStreamSynchronize(streams.first) == hipSuccess);
  CHECK(streams.order == "a");

  CHECK(hip.hipEventRecord(streams.event, streams.first) == hipSuccess);
  CHECK(hip.hipEventQuery(streams.event) == hipErrorNotReady);
  CHECK(hip.hipEventQuery(streams.event) == hipSuccess);
  streams.write<'b'>(streams.first);
  CHECK(hip.hipStreamQuery(streams.first) == hipErrorNotReady);
  CHECK(hip.hipStreamQuery(streams.first) == hipSuccess);
  CHECK(streams.order == "ab");

  // A host function that waits is refused, also on the thread that waits for it.
  hipError_t inner = hipSuccess;
  CHECK(hip.hipLaunchHostFunc(
            streams.first, [](void *user) { *static_cast<hipError_t *>(user) = hip.hipDeviceSynchronize(); },
            &inner) == hipSuccess);
  CHECK(hip.hipDeviceSynchronize() == hipSuccess);
  CHECK(inner == hipErrorIllegalState);
  hip.hipGetLastError();

  // A synchronous copy follows the null stream's earlier work; a fault skips everything after it.
  CHECK(fixture.launch(5, 10) == hipSuccess);
  CHECK(fixture.contents()[0] == 5);
  CHECK(fixture.launch(1, Fixture::elements + 64, streams.first) == hipSuccess);
  streams.write<'x'>(streams.first);
  CHECK(hip.hipDeviceSynchronize() == hipErrorIllegalAddress);
  CHECK(streams.order == "ab");

  // Two threads that wait share the work.
  sluice_emulator_configure("clear_fault", "1");
  for (int i = 0; i < 20; ++i)
    CHECK(fixture.launch(i, 10, i % 2 ? streams.first : streams.second) == hipSuccess);
  hipError_t other = hipErrorUnknown;
  std::thread thread([&] { other = hip.hipStreamSynchronize(streams.first); });
  CHECK(hip.hipStreamSynchronize(streams.second) == hipSuccess);
  thread.join();
  CHECK(other == hipSuccess);
}

TEST_CASE("the counters include live streams and events, and streams destroyed with work left",
          "[hip][stream_order]") {
  sluice_emulator_configure("reset_counters", "1");
  const sluice_emulator_counters_t before = counters();
  CHECK(before.busy_streams_destroyed == 0);
  {
    Streams streams;
    CHECK(counters().live_streams == before.live_streams + 2);
    CHECK(counters().live_events == before.live_events + 1);
    REQUIRE(sluice_emulator_configure("stream_order", "1") == SLUICE_EMULATOR_OK);
    hipStream_t third = nullptr;
    REQUIRE(hip.hipStreamCreate(&third) == hipSuccess);
    streams.write<'a'>(third);
    CHECK(hip.hipStreamDestroy(third) == hipSuccess);
    CHECK(counters().busy_streams_destroyed == 1);
    CHECK(streams.order.empty());
    CHECK(hip.hipDeviceSynchronize() == hipSuccess);
    CHECK(streams.order == "a"); // here it still runs
  }
  CHECK(counters().live_streams == before.live_streams);
  CHECK(counters().live_events == before.live_events);
  CHECK(counters().busy_streams_destroyed == 1);
  sluice_emulator_configure("reset_counters", "1");
  CHECK(counters().busy_streams_destroyed == 0);
}

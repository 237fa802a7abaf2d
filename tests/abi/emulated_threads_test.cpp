//===- emulated_threads_test.cpp - real kernels from many threads, contexts that come and go ------------===//
//
// The results of a thread must equal, bit for bit, those that a single thread computes with a context that no
// other thread uses.
//
//===----------------------------------------------------------------------------------------------------===//
#include "emulated_calls.h"

#include <catch2/catch.hpp>

#include <atomic>
#include <barrier>
#include <cstring>
#include <memory>
#include <thread>

using namespace sluice::test;

namespace {

constexpr CallKind kinds[] = {CallKind::dense, CallKind::paged, CallKind::split};

sluice_context *make_context() {
  sluice_context_desc desc;
  sluice_context_desc_init(&desc, sizeof desc);
  desc.kind = SLUICE_DEVICE_EMULATED;
  sluice_context *context = nullptr;
  require_ok(sluice_context_create(&desc, &context, nullptr), "sluice_context_create");
  return context;
}

sluice_plan *make_plan(sluice_context *context, CallKind kind) {
  const AttentionCall call = call_values(kind);
  sluice_plan *plan = nullptr;
  require_ok(sluice_attention_plan(context, &call.attention, &plan, nullptr), "sluice_attention_plan");
  return plan;
}

uint64_t workspace_of(const sluice_plan *plan) {
  sluice_plan_info info;
  sluice_plan_info_init(&info, sizeof info);
  require_ok(sluice_plan_describe(plan, &info, nullptr), "sluice_plan_describe");
  return info.workspace_bytes;
}

/// One run from start to end.
std::vector<unsigned char> run_once(const sluice_plan *plan, const DeviceCall &call, void *stream) {
  call.clear();
  const sluice_launch launch = call.launch(stream);
  require_ok(sluice_attention_run(plan, &call.values.args, &launch, nullptr), "sluice_attention_run");
  hip_call("hipStreamSynchronize", stream);
  return call.result();
}

/// The results of a single thread.
std::vector<unsigned char> expected(CallKind kind, uint32_t seed) {
  sluice_context *context = make_context();
  sluice_plan *plan = make_plan(context, kind);
  std::vector<unsigned char> result;
  {
    const DeviceStream stream;
    const DeviceCall call(kind, seed, workspace_of(plan));
    result = run_once(plan, call, stream.get());
  }
  sluice_plan_destroy(plan);
  sluice_context_destroy(context);
  return result;
}

/// Runs `body(thread)` on threads that start together.
template <typename Body> void on_threads(int count, Body &&body) {
  std::barrier start(count);
  std::vector<std::thread> threads;
  for (int thread = 0; thread < count; ++thread)
    threads.emplace_back([&, thread] {
      start.arrive_and_wait();
      body(thread);
    });
  for (std::thread &thread : threads)
    thread.join();
}

/// Sets and clears the log until it is destroyed. A function that was replaced must not be called any more.
class ChangingLog {
public:
  ChangingLog()
      : thread([this] {
          while (!done) {
            for (Receiver &receiver : receivers) {
              receiver.is_set = true;
              sluice_set_log(receive, &receiver, SLUICE_LOG_INFO);
              std::this_thread::yield();
              sluice_set_log(nullptr, nullptr, 0);
              receiver.is_set = false;
            }
          }
        }) {}
  ~ChangingLog() {
    done = true;
    thread.join();
  }
  int late() const { return receivers[0].late + receivers[1].late; }

private:
  struct Receiver {
    std::atomic<bool> is_set = false;
    std::atomic<int> late = 0;
  };
  static void receive(uint32_t, const char *, void *user) {
    auto *receiver = static_cast<Receiver *>(user);
    receiver->late += !receiver->is_set;
  }
  Receiver receivers[2];
  std::atomic<bool> done = false;
  std::thread thread;
};

} // namespace

TEST_CASE("threads run one plan on their own streams, and each gets the bits of a single thread",
          "[threads]") {
  constexpr int thread_count = 6, rounds = 3;
  for (const CallKind kind : kinds) {
    std::vector<std::vector<unsigned char>> good;
    for (int thread = 0; thread < thread_count; ++thread)
      good.push_back(expected(kind, uint32_t(thread)));
    CHECK(good[0] != good[1]);
    sluice_context *context = make_context();
    sluice_plan *plan = make_plan(context, kind);
    const uint64_t workspace_bytes = workspace_of(plan);
    CHECK((workspace_bytes != 0) == (kind == CallKind::split));
    std::atomic<int> wrong = 0;
    on_threads(thread_count, [&](int thread) {
      const DeviceStream stream;
      const DeviceCall call(kind, uint32_t(thread), workspace_bytes);
      for (int round = 0; round < rounds; ++round)
        wrong += run_once(plan, call, stream.get()) != good[size_t(thread)];
    });
    CHECK(wrong == 0);
    sluice_plan_destroy(plan);
    sluice_context_destroy(context);
  }
}

TEST_CASE("contexts and plans come and go on all threads while the log changes", "[threads]") {
  constexpr int thread_count = 4, rounds = 4;
  std::vector<std::vector<unsigned char>> good;
  for (const CallKind kind : kinds)
    good.push_back(expected(kind, 5));
  const sluice_emulator_counters_t before = emulator_counters();
  std::atomic<int> wrong = 0;
  int late = 0;
  {
    const ChangingLog log;
    on_threads(thread_count, [&](int thread) {
      const DeviceStream stream;
      for (int round = 0; round < rounds; ++round) {
        const size_t which = size_t(thread + round) % std::size(kinds);
        sluice_context *context = make_context();
        sluice_plan *plan = make_plan(context, kinds[which]);
        // On every other round the plan is the last owner of what they share.
        if (round % 2 == 0) sluice_context_destroy(std::exchange(context, nullptr));
        {
          const DeviceCall call(kinds[which], 5, workspace_of(plan));
          wrong += run_once(plan, call, stream.get()) != good[which];
        }
        sluice_plan_destroy(plan);
        sluice_context_destroy(context);
      }
    });
    late = log.late();
  }
  CHECK(wrong == 0);
  CHECK(late == 0);
  CHECK(emulator_counters().live_streams == before.live_streams);
  CHECK(emulator_counters().live_events == before.live_events);
}

TEST_CASE("plans outlive their context on other threads, and the last one unloads the modules", "[threads]") {
  constexpr int thread_count = 4;
  const std::vector<unsigned char> good = expected(CallKind::dense, 9);
  for (int round = 0; round < 4; ++round) {
    sluice_context *context = make_context();
    std::vector<sluice_plan *> plans(thread_count);
    std::atomic<int> wrong = 0;
    on_threads(thread_count,
               [&](int thread) { plans[size_t(thread)] = make_plan(context, CallKind::dense); });
    on_threads(thread_count + 1, [&](int thread) {
      if (thread == thread_count) return sluice_context_destroy(context);
      // Another thread's.
      sluice_plan *plan = plans[size_t(thread + 1) % thread_count];
      {
        const DeviceStream stream;
        const DeviceCall call(CallKind::dense, 9, 0);
        wrong += run_once(plan, call, stream.get()) != good;
      }
      sluice_plan_destroy(plan);
    });
    CHECK(wrong == 0);
  }
}

TEST_CASE("first appends on many threads load their kernel once and write only their own rows", "[threads]") {
  constexpr int thread_count = 6, row = call_heads * call_dim;
  sluice_context *context = make_context();
  std::atomic<int> wrong = 0;
  on_threads(thread_count, [&](int thread) {
    const DeviceStream stream;
    const std::vector<uint16_t> values = halves(row, uint32_t(thread));
    const DeviceBytes source(values), cache(size_t{call_page} * row * sizeof(uint16_t)),
        slots(std::vector<int64_t>{3});
    cache.fill(0);
    const DeviceAppend append(1, source, cache, slots);
    sluice_launch launch;
    sluice_launch_init(&launch, sizeof launch);
    launch.stream = stream.get();
    require_ok(sluice_cache_append(context, &append.args, &launch, nullptr), "sluice_cache_append");
    stream.wait();
    std::vector<uint16_t> want(cache.bytes() / sizeof(uint16_t));
    for (size_t i = 0; i < values.size(); ++i)
      want[3 * row + i] = values[i];
    std::vector<uint16_t> found(want.size());
    const std::vector<unsigned char> bytes = cache.read();
    std::memcpy(found.data(), bytes.data(), bytes.size());
    wrong += found != want;
  });
  CHECK(wrong == 0);
  sluice_context_destroy(context);
}

//===- launch_order_test.cpp - runs that depend on one another, on the emulator -------------------------===//
//
// A diamond of runs: A feeds B and C, both feed D. All keys are zero, so a run's result is the mean of the
// rows of V that it sees: the expected results are numbers that are exact in F16, and a run that starts too
// early finds another one. The caller, this test, creates streams and events.
//
//===----------------------------------------------------------------------------------------------------===//
#include "fixture.h"
#include "support/faulty_hip.h"

#include <set>

using namespace sluice::test;

namespace {

template <typename Function> Function *hip(const char *name) {
  void *symbol = sluice_emulator_symbol(name);
  REQUIRE(symbol != nullptr);
  return reinterpret_cast<Function *>(symbol);
}

sluice_emulator_counters_t counters() {
  sluice_emulator_counters_t result;
  REQUIRE(sluice_emulator_counters(&result, sizeof result) == SLUICE_EMULATOR_OK);
  return result;
}

// F16.
constexpr uint16_t two = 0x4000, six = 0x4600, eight = 0x4800, sixteen = 0x4c00, hundred = 0x5640;
constexpr size_t row_elements = 64;

/// Rows of one number each.
enum Row { in0, in1, after_a, const8, const16, after_b, after_c, after_d, key, query = key + 2, row_count };

/// The problem of every run, without a call's memory.
AttentionCall diamond_call() {
  AttentionCall call;
  call.format = sluice_kv_tensors(SLUICE_F16, 1, row_elements);
  call.attention.q_heads = 1;
  call.attention.q.type = call.attention.o.type = SLUICE_F16;
  return call;
}

/// The part of the diamond that is left out.
enum class Without { nothing, c_after_a, d_after_c, signal_of_a };

/// The caller: memory, two streams, an event for A's end, and one for the stream that D depends on.
class Caller {
public:
  Caller() {
    CHECK(hip<int(void **, size_t)>("hipMalloc")(&memory, bytes) == 0);
    for (void **stream : {&first, &second})
      CHECK(hip<int(void **, unsigned)>("hipStreamCreateWithFlags")(stream, 1) == 0);
    for (void **event : {&end_of_a, &end_of_c})
      CHECK(hip<int(void **, unsigned)>("hipEventCreateWithFlags")(event, 2) == 0);
    std::vector<uint16_t> host(row_count * row_elements, 0);
    const auto fill = [&](Row row, uint16_t number) {
      std::fill_n(host.begin() + row * row_elements, row_elements, number);
    };
    fill(in0, two), fill(in1, six), fill(const8, eight), fill(const16, sixteen);
    for (const Row row : {after_a, after_b, after_c, after_d})
      fill(row, hundred);
    CHECK(hip<int(void *, const void *, size_t, int)>("hipMemcpy")(memory, host.data(), bytes, 1) == 0);
  }
  ~Caller() {
    CHECK(synchronize() == 0);
    // The library has not destroyed them.
    for (void *event : {end_of_a, end_of_c})
      CHECK(hip<int(void *)>("hipEventDestroy")(event) == 0);
    for (void *stream : {first, second})
      CHECK(hip<int(void *)>("hipStreamDestroy")(stream) == 0);
    CHECK(hip<int(void *)>("hipFree")(memory) == 0);
  }
  Caller(const Caller &) = delete;
  Caller &operator=(const Caller &) = delete;

  static int synchronize() { return hip<int()>("hipDeviceSynchronize")(); }

  /// The number of a row; of a result, once everything has run.
  uint16_t number(Row row) const {
    uint16_t number = 0;
    const auto *from = static_cast<const uint16_t *>(memory) + row * row_elements;
    CHECK(hip<int(void *, const void *, size_t, int)>("hipMemcpy")(&number, from, sizeof number, 2) == 0);
    return number;
  }

  /// Enqueues the four runs up to the first that fails; returns how many succeeded.
  int run_diamond(const sluice_plan *plan, Without without, Error &error, sluice_status &status) const {
    const sluice_dependency a_ended = {SLUICE_DEPENDS_ON_EVENT, 0, end_of_a, nullptr};
    const sluice_dependency second_stream = {SLUICE_DEPENDS_ON_STREAM, 0, end_of_c, second};
    struct Run {
      Row v0, v1, result;
      void *stream;
      const sluice_dependency *dependency;
      void *signal;
    };
    const Run runs[] = {
        {in0, in1, after_a, first, nullptr, without == Without::signal_of_a ? nullptr : end_of_a},
        {after_a, const8, after_b, first, nullptr, nullptr},
        {after_a, const16, after_c, second, without == Without::c_after_a ? nullptr : &a_ended, nullptr},
        {after_b, after_c, after_d, first, without == Without::d_after_c ? nullptr : &second_stream, nullptr},
    };
    int succeeded = 0;
    for (const Run &run : runs) {
      AttentionCall call = diamond_call();
      call.args.batch = call.args.rows.max_len = 1;
      call.args.q = tensor(query, 0);
      call.args.o = tensor(run.result, 1);
      call.keys[0].rows.max_len = 2;
      call.kv.k = tensor(key, 1);
      call.kv.v = tensor(run.v0, run.v1 - run.v0);
      sluice_launch launch;
      sluice_launch_init(&launch, sizeof launch);
      launch.stream = run.stream;
      launch.dependencies = run.dependency;
      launch.dependency_count = run.dependency != nullptr;
      launch.signal_event = run.signal;
      status = sluice_attention_run(plan, &call.args, &launch, &error);
      if (status != SLUICE_OK) break;
      ++succeeded;
    }
    return succeeded;
  }

private:
  static constexpr size_t bytes = row_count * row_elements * sizeof(uint16_t);

  /// Rows `step` rows apart.
  sluice_tensor tensor(Row first_row, int step) const {
    const int64_t stride = int64_t(step) * int64_t(row_elements);
    return {static_cast<uint16_t *>(memory) + first_row * row_elements,
            {int64_t(row_elements), stride, int64_t(row_elements), 1}};
  }

  void *memory = nullptr;
  void *first = nullptr, *second = nullptr;
  void *end_of_a = nullptr, *end_of_c = nullptr;
};

/// The real kernels on the emulator, through the table that can fail.
sluice_context_desc emulator_desc() {
  sluice_context_desc desc;
  sluice_context_desc_init(&desc, sizeof desc);
  desc.kind = SLUICE_DEVICE_HIP;
  desc.hip_resolver = FaultyHip::resolve;
  return desc;
}

/// An order of the streams for a scope.
struct Order {
  explicit Order(unsigned seed) {
    CHECK(sluice_emulator_configure("stream_order", std::to_string(seed).c_str()) == SLUICE_EMULATOR_OK);
  }
  ~Order() { CHECK(sluice_emulator_configure("defaults", "1") == SLUICE_EMULATOR_OK); }
};

} // namespace

TEST_CASE("a diamond of runs is right in every order of its streams, and wrong without a dependency",
          "[launch_order]") {
  FaultyHip::start({});
  const ContextHandle context = make_context(emulator_desc());
  const PlanHandle plan = make_plan(context, diamond_call());
  for (const Without without :
       {Without::nothing, Without::c_after_a, Without::d_after_c, Without::signal_of_a}) {
    size_t wrong = 0;
    for (unsigned seed = 0; seed < 16; ++seed) {
      Caller caller;
      const Order order(seed);
      Error error;
      sluice_status status = SLUICE_INTERNAL;
      CHECK(caller.run_diamond(plan.get(), without, error, status) == 4);
      CHECK(Caller::synchronize() == 0);
      wrong += caller.number(after_d) != eight;
    }
    INFO("without " << int(without));
    if (without == Without::nothing)
      CHECK(wrong == 0);
    else
      CHECK(wrong > 0);
  }
}

TEST_CASE("a run creates and destroys no stream and no event", "[launch_order]") {
  FaultyHip::start({});
  sluice_emulator_configure("reset_counters", "1");
  const sluice_emulator_counters_t before = counters();
  {
    const ContextHandle context = make_context(emulator_desc());
    const PlanHandle plan = make_plan(context, diamond_call());
    CHECK(counters().live_streams == before.live_streams);
    CHECK(counters().live_events == before.live_events);
    Caller caller;
    Error error;
    sluice_status status = SLUICE_INTERNAL;
    CHECK(caller.run_diamond(plan.get(), Without::nothing, error, status) == 4);
    CHECK(counters().live_streams == before.live_streams + 2);
    CHECK(counters().live_events == before.live_events + 2);
  }
  CHECK(counters().live_streams == before.live_streams);
  CHECK(counters().live_events == before.live_events);
  CHECK(counters().busy_streams_destroyed == 0);
}

TEST_CASE("whichever HIP call of a diamond fails, the status says so and nothing leaks", "[launch_order]") {
  // Calls are counted from the context to the last run; the loop ends when no call is left to fail.
  std::set<std::string> failed;
  for (size_t failing = 0;; ++failing) {
    INFO("call " << failing);
    sluice_emulator_configure("reset_counters", "1");
    const sluice_emulator_counters_t before = counters();
    {
      Caller caller;
      const Order order(static_cast<unsigned>(failing));
      Error error;
      sluice_status status = SLUICE_INTERNAL;
      int succeeded = 0;
      FaultyHip::start({.at = failing});
      const sluice_context_desc desc = emulator_desc();
      sluice_context *made_context = nullptr;
      sluice_plan *made_plan = nullptr;
      const AttentionCall call = diamond_call();
      status = sluice_context_create(&desc, &made_context, &error);
      const ContextHandle context(made_context);
      if (status == SLUICE_OK)
        status = sluice_attention_plan(made_context, &call.attention, &made_plan, &error);
      const PlanHandle plan(made_plan);
      if (status == SLUICE_OK) succeeded = caller.run_diamond(made_plan, Without::nothing, error, status);

      if (FaultyHip::failed_call().empty()) {
        CHECK(status == SLUICE_OK);
        CHECK(succeeded == 4);
        CHECK(Caller::synchronize() == 0);
        CHECK(caller.number(after_d) == eight);
        break;
      }
      failed.insert(FaultyHip::failed_call());
      CHECK(status == SLUICE_HIP);
      CHECK(error.code == SLUICE_HIP);
      CHECK(error.hip_code == FaultyHip::error);
      CHECK(error.message == FaultyHip::failed_call() + " failed with hipErrorUnknown (999)");
      // After the failure HIP was called only to unload a module that lacks its kernel.
      CHECK(FaultyHip::call_count() ==
            failing + 1 + (FaultyHip::failed_call() == "hipModuleGetFunction" ? 1 : 0));
      // Exactly the enqueued runs execute: a run whose signal fails is enqueued.
      CHECK(Caller::synchronize() == 0);
      CHECK(counters().launches == uint64_t(succeeded + (std::string(error.field) == "signal_event")));
      CHECK(counters().live_streams == before.live_streams + 2);
      CHECK(counters().live_events == before.live_events + 2);
    }
    CHECK(counters().live_streams == before.live_streams);
    CHECK(counters().live_events == before.live_events);
    CHECK(counters().busy_streams_destroyed == 0);
    REQUIRE(failing < 100);
  }
  CHECK(failed == std::set<std::string>{"hipInit", "hipGetDeviceCount", "hipDeviceGetAttribute",
                                        "hipGetDevice", "hipModuleLoadData", "hipModuleGetFunction",
                                        "hipStreamIsCapturing", "hipEventRecord", "hipStreamWaitEvent",
                                        "hipModuleLaunchKernel"});
}

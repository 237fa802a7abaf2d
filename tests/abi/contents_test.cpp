//===- contents_test.cpp - the emulator's check of the contents of a call's arrays ----------------------===//
#include "emulated_calls.h"

#include <catch2/catch.hpp>

#include <memory>
#include <utility>

using namespace sluice::test;

namespace {

struct DestroyPlan {
  void operator()(sluice_plan *plan) const { sluice_plan_destroy(plan); }
};
struct DestroyContext {
  void operator()(sluice_context *context) const { sluice_context_destroy(context); }
};

std::unique_ptr<sluice_context, DestroyContext> emulated_context() {
  sluice_context_desc desc;
  sluice_context_desc_init(&desc, sizeof desc);
  desc.kind = SLUICE_DEVICE_EMULATED;
  sluice_context *context = nullptr;
  require_ok(sluice_context_create(&desc, &context, nullptr), "sluice_context_create");
  return std::unique_ptr<sluice_context, DestroyContext>(context);
}

std::string take_reports() {
  std::string reports(sluice_emulator_take_reports(nullptr, 0), '\0');
  sluice_emulator_take_reports(reports.data(), reports.size());
  return reports.c_str();
}

void configure(const char *key, const char *value) {
  require_ok(sluice_emulator_configure(key, value), key);
}

int wait(void *stream) {
  return reinterpret_cast<int (*)(void *)>(sluice_emulator_symbol("hipStreamSynchronize"))(stream);
}

bool has(const std::string &text, const char *part) {
  return text.find(part) != std::string::npos;
}

/// A decode step over pages, one of whose keys is beyond kv_len.
struct PagedCall {
  std::unique_ptr<sluice_context, DestroyContext> context = emulated_context();
  std::unique_ptr<sluice_plan, DestroyPlan> plan;
  DeviceCall call{CallKind::paged, 1, 256};
  DeviceBytes lengths{std::vector<int32_t>{65}};
  std::vector<unsigned char> untouched = call.result();

  PagedCall() {
    sluice_plan *made = nullptr;
    require_ok(sluice_attention_plan(context.get(), &call.values.attention, &made, nullptr),
               "sluice_attention_plan");
    plan.reset(made);
    call.values.keys[0].rows.lengths = static_cast<const int32_t *>(lengths.get());
  }
  void set_length(int32_t length) const {
    hip_call<void *, const void *, size_t, int>("hipMemcpy", lengths.get(), &length, sizeof length, 1);
  }
  sluice_status run(void *stream, sluice_error *error = nullptr) const {
    const sluice_launch launch = call.launch(stream);
    return sluice_attention_run(plan.get(), &call.values.args, &launch, error);
  }
};

constexpr int launch_failure = 719; // hipErrorLaunchFailure

/// The check may already have failed when the kernels are enqueued, which are then refused.
bool is_enqueued_or_too_late(sluice_status status) {
  return status == SLUICE_OK || status == SLUICE_HIP;
}

} // namespace

TEST_CASE("bad lengths of a run are reported when it executes, and its kernels do not run", "[contents]") {
  configure("defaults", "1");
  PagedCall paged;
  DeviceStream stream;
  configure("contents", "on");
  CHECK(is_enqueued_or_too_late(paged.run(stream.get())));
  CHECK(wait(stream.get()) == launch_failure);
  configure("clear_fault", "1");
  CHECK(paged.call.result() == paged.untouched);
  const std::string reports = take_reports();
  INFO(reports);
  CHECK(has(reports, "\"kind\": \"bad_contents\", \"kernel\": \"sluice_attention_run\""));
  CHECK(has(reports, "keys[0].rows.lengths[0] is 65; it must be at most keys[0].rows.max_len, which is 64"));

  paged.set_length(64);
  CHECK(paged.run(stream.get()) == SLUICE_OK);
  CHECK(wait(stream.get()) == 0);
  CHECK(take_reports() == "[]");
  CHECK(paged.call.result() != paged.untouched);
}

TEST_CASE("a pointer to host memory is refused by its name", "[contents]") {
  configure("defaults", "1");
  PagedCall paged;
  paged.set_length(64);
  DeviceStream stream;
  alignas(256) static unsigned char host[256] = {};
  sluice_attention_args &args = paged.call.values.args;
  sluice_kv &kv = paged.call.values.kv;
  const std::pair<void **, const char *> pointers[] = {{&args.q.data, "q.data"},
                                                       {&kv.v.data, "keys[0].kv.v.data"}};
  for (const auto &[pointer, name] : pointers) {
    void *const good = std::exchange(*pointer, host);
    sluice_error error;
    sluice_error_init(&error, sizeof error);
    CHECK(paged.run(stream.get(), &error) == SLUICE_INVALID_ARGUMENT);
    CHECK(std::string(error.field) == name);
    CHECK_THAT(error.message,
               Catch::Contains("; it must be memory of the device: allocated, registered or pinned"));
    *pointer = good;
  }
  CHECK(paged.run(stream.get()) == SLUICE_OK);
  CHECK(wait(stream.get()) == 0);
  CHECK(take_reports() == "[]");
}

TEST_CASE("without lengths all sequences in pages have the same", "[contents]") {
  configure("defaults", "1");
  PagedCall paged;
  paged.set_length(64);
  DeviceStream stream;
  REQUIRE(paged.run(stream.get()) == SLUICE_OK);
  CHECK(wait(stream.get()) == 0);
  const std::vector<unsigned char> result = paged.call.result();
  CHECK(result != paged.untouched);
  paged.call.values.keys[0].rows.lengths = nullptr;
  paged.call.clear();
  REQUIRE(paged.run(stream.get()) == SLUICE_OK);
  CHECK(wait(stream.get()) == 0);
  CHECK(paged.call.result() == result);
}

TEST_CASE("bad lengths let the kernels run if the check only warns or is off", "[contents]") {
  configure("defaults", "1");
  PagedCall paged;
  DeviceStream stream;
  for (const char *setting : {"report", "off"}) {
    INFO(setting);
    configure("contents", setting);
    paged.call.clear();
    CHECK(paged.run(stream.get()) == SLUICE_OK);
    CHECK(wait(stream.get()) == 0);
    CHECK(has(take_reports(), "bad_contents") == (std::string(setting) == "report"));
    CHECK(paged.call.result() != paged.untouched);
  }
}

TEST_CASE("a captured run checks the contents of each replay", "[contents]") {
  configure("defaults", "1");
  PagedCall paged;
  paged.set_length(64);
  require_ok(sluice_attention_preload(paged.context.get(), &paged.call.values.attention, nullptr),
             "sluice_attention_preload");
  DeviceStream stream;
  configure("contents", "on");
  void *graph = nullptr, *executable = nullptr;
  hip_call<void *, int>("hipStreamBeginCapture", stream.get(), 0);
  CHECK(paged.run(stream.get()) == SLUICE_OK);
  hip_call<void *, void **>("hipStreamEndCapture", stream.get(), &graph);
  hip_call<void **, void *, void **, char *, size_t>("hipGraphInstantiate", &executable, graph, nullptr,
                                                     nullptr, 0);
  for (const int32_t length : {64, -2, 17}) {
    INFO(length);
    paged.set_length(length);
    hip_call<void *, void *>("hipGraphLaunch", executable, stream.get());
    CHECK(wait(stream.get()) == (length < 0 ? launch_failure : 0));
    configure("clear_fault", "1");
    CHECK(has(take_reports(), "keys[0].rows.lengths[0] is -2; it must not be negative") == (length < 0));
  }
  hip_call<void *>("hipGraphExecDestroy", executable);
  hip_call<void *>("hipGraphDestroy", graph);
}

TEST_CASE("the check waits for the call's dependencies", "[contents]") {
  configure("defaults", "1");
  PagedCall paged; // with a bad length, until the other stream has written a good one
  DeviceStream stream, other;
  DeviceEvent event;
  configure("contents", "on");
  for (const char *order : {"1", "2", "3", "4", "5"}) {
    configure("stream_order", order);
    paged.set_length(65);
    hip_call<void *, int, size_t, void *>("hipMemsetD32Async", paged.lengths.get(), 33, 1, other.get());
    const sluice_dependency dependency = {SLUICE_DEPENDS_ON_STREAM, 0, event.get(), other.get()};
    sluice_launch launch = paged.call.launch(stream.get());
    launch.dependency_count = 1;
    launch.dependencies = &dependency;
    CHECK(sluice_attention_run(paged.plan.get(), &paged.call.values.args, &launch, nullptr) == SLUICE_OK);
    CHECK(wait(stream.get()) == 0);
    CHECK(take_reports() == "[]");
  }
  configure("stream_order", "concurrent");
}

TEST_CASE("bad slots of an append are reported, and nothing is stored", "[contents]") {
  configure("defaults", "1");
  const auto context = emulated_context();
  constexpr int32_t tokens = 3;
  constexpr size_t row = call_heads * call_dim;
  const DeviceBytes rows(halves(tokens * row, 1)), cache(halves(2 * call_page * row, 2)),
      slots(std::vector<int64_t>{1, 2 * call_page, -1});
  const std::vector<unsigned char> before = cache.read();
  DeviceAppend append(tokens, rows, cache, slots);
  append.kv.page_count = 2;
  configure("contents", "on");
  CHECK(is_enqueued_or_too_late(sluice_cache_append(context.get(), &append.args, nullptr, nullptr)));
  CHECK(wait(nullptr) == launch_failure);
  configure("clear_fault", "1");
  CHECK(cache.read() == before);
  const std::string reports = take_reports();
  INFO(reports);
  CHECK(has(reports, "\"kernel\": \"sluice_cache_append\""));
  CHECK(has(reports, "slots[1] is 32; that is page 2; it must be less than kv.page_count, which is 2"));
  configure("contents", "off");
  CHECK(sluice_cache_append(context.get(), &append.args, nullptr, nullptr) == SLUICE_OK);
  CHECK(wait(nullptr) == 0);
  CHECK(cache.read() != before);
}

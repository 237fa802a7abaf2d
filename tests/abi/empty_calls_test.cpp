//===- empty_calls_test.cpp - calls with nothing to do, and numbers that mean nothing -------------------===//
#include "fixture.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <numbers>

using namespace sluice::test;

namespace {

/// Whether a call waits for its dependency and records its event, and launches nothing.
struct Nothing {
  FakeHip &hip;

  template <typename Run> void expect(Run run) {
    sluice_launch launch = good_launch();
    sluice_dependency dependency = {};
    dependency.kind = SLUICE_DEPENDS_ON_EVENT;
    dependency.event = FakeHip::handle(0x200);
    launch.dependencies = &dependency;
    launch.dependency_count = 1;
    launch.signal_event = FakeHip::handle(0x300);
    hip.forget_calls();
    Error error;
    const sluice_status status = run(launch, error);
    INFO(error.message);
    CHECK(status == SLUICE_OK);
    CHECK(hip.count("hipModuleLaunchKernel") == 0);
    CHECK(hip.count("hipStreamWaitEvent") == 1);
    CHECK(hip.count("hipEventRecord") == 1);
  }
};

ContextHandle all_features_context() {
  static const std::vector<std::byte> pack = test_pack(all_features());
  return make_context(context_desc(SLUICE_DEVICE_HIP, pack));
}

/// No number that a stride of an extent of 1 could have is refused.
constexpr int64_t odd_strides[] = {1, 3, -8, std::numeric_limits<int64_t>::min(),
                                   std::numeric_limits<int64_t>::max()};

void set(sluice_tensor &tensor, std::initializer_list<size_t> dimensions, int64_t stride) {
  for (const size_t dimension : dimensions)
    tensor.stride[dimension] = stride;
}

} // namespace

TEST_CASE("a call without rows launches nothing", "[empty]") {
  FakeHip hip;
  const ContextHandle context = all_features_context();
  for (void (*const change)(AttentionCall &) : {+[](AttentionCall &) {}, make_ragged, make_paged}) {
    AttentionCall call = good_call();
    change(call);
    const PlanHandle plan = make_plan(context, call);
    // Nothing of the call is used.
    call.args.q = call.args.o = call.kv.k = call.kv.v = {};
    call.args.lse = nullptr;
    call.args.rows = {1, 0, nullptr, nullptr, 0};
    call.keys[0].rows = {1, 0, nullptr, nullptr, 0};
    call.keys[0].pages = {};
    const auto run_it = [&](const sluice_launch &launch, Error &error) {
      return run(plan, call, &launch, &error);
    };
    call.args.batch = 0;
    Nothing{hip}.expect(run_it);
    call.args.batch = 1;
    call.args.rows.max_len = 0;
    Nothing{hip}.expect(run_it);
    call.keys[0].rows.max_len = 0;
    Nothing{hip}.expect(run_it);
    // Numbers are still checked.
    call.args.batch = -1;
    Error error;
    check_refusal(run(plan, call, nullptr, &error), error, SLUICE_INVALID_ARGUMENT, "batch",
                  "batch is -1; it must not be negative");
    sluice_counters counters;
    sluice_counters_init(&counters, sizeof counters);
    REQUIRE(sluice_plan_counters(plan.get(), &counters, nullptr) == SLUICE_OK);
    CHECK(counters.runs == 3);
    CHECK(counters.launches == 0);
  }
}

TEST_CASE("a call without keys needs none of their memory", "[empty]") {
  FakeHip hip;
  const ContextHandle context = all_features_context();
  AttentionCall call = good_call();
  call.scores.bias_type = SLUICE_F16;
  call.mask.flags |= SLUICE_MASK_BITS;
  call.keys[0].rows.max_len = 0;
  call.kv.k = call.kv.v = {};
  const auto launch_of = [&](const AttentionCall &called) {
    Error error;
    const sluice_status status = run(make_plan(context, called), called, nullptr, &error);
    INFO(error.message);
    REQUIRE(status == SLUICE_OK);
    return hip.launch.kernargs;
  };
  CHECK(launch_of(call).kv_len == 0);
  // Rows of a bias or mask without keys have no elements.
  AttentionCall with_memory = call;
  with_memory.scores_args.bias = with_memory.mask_args.bits = {device_memory, {0, 0, 1, 1}};
  CHECK(launch_of(with_memory).bias == 0);
  CHECK(hip.launch.kernargs.mask == 0);
  call.format.page_size = 16;
  call.format.page_table = SLUICE_PAGE_TABLE_BLOCK;
  call.keys[0].pages.stride = 1;
  CHECK(launch_of(call).kv_len == 0);
  call.format.page_table = SLUICE_PAGE_TABLE_CSR;
  call.keys[0].pages = {nullptr, reinterpret_cast<const int32_t *>(device_memory), 0, 0};
  CHECK(launch_of(call).kv_len == 0);
  call.keys[0].rows.max_len = 1;
  Error error;
  check_refusal(run(make_plan(context, call), call, nullptr, &error), error, SLUICE_INVALID_ARGUMENT,
                "keys[0].pages.table", "keys[0].pages.table is NULL");
}

TEST_CASE("a scale of 0 is a number, and none is the default", "[empty]") {
  FakeHip hip;
  const ContextHandle context = fake_context();
  AttentionCall call = good_call();
  const PlanHandle plan = make_plan(context, call);
  call.scale = 0;
  REQUIRE(run(plan, call) == SLUICE_OK);
  CHECK(hip.launch.kernargs.scale_log2e == 0);
  call.args.scale = nullptr;
  REQUIRE(run(plan, call) == SLUICE_OK);
  CHECK(hip.launch.kernargs.scale_log2e == float(std::numbers::log2e / std::sqrt(128.0)));
}

TEST_CASE("the stride of an extent of 1 neither has rules nor reaches a kernel", "[empty]") {
  FakeHip hip;
  const ContextHandle context = all_features_context();
  AttentionCall one = good_call();
  one.attention.q_heads = one.format.kv_heads = 1;
  const PlanHandle plan = make_plan(context, one);
  const auto kernargs = [&](const AttentionCall &call) {
    Error error;
    const sluice_status status = run(plan, call, nullptr, &error);
    INFO(error.message);
    REQUIRE(status == SLUICE_OK);
    return hip.launch.kernargs;
  };
  one.args.batch = one.args.rows.max_len = one.keys[0].rows.max_len = 1;
  const auto expected = kernargs(one);
  for (const int64_t odd : odd_strides) {
    for (sluice_tensor *tensor : {&one.args.q, &one.kv.k, &one.kv.v, &one.args.o, &one.lse})
      set(*tensor, {0, 1, 2}, odd);
    one.lse.stride[3] = odd;
    const auto found = kernargs(one);
    CHECK(std::memcmp(&found, &expected, sizeof found) == 0);
  }
  // Two of anything give its stride a meaning.
  one.args.q.stride[0] = 3;
  one.args.batch = 2;
  set(one.kv.k, {0}, 128);
  set(one.kv.v, {0}, 128);
  set(one.args.o, {0}, 128);
  set(one.lse, {0}, 1);
  Error error;
  check_refusal(run(plan, one, nullptr, &error), error, SLUICE_INVALID_ARGUMENT, "q.stride[0]",
                "q.stride[0] is 3; it must be a multiple of 8");
}

TEST_CASE("with starts stride[0] means nothing", "[empty]") {
  FakeHip hip;
  const ContextHandle context = all_features_context();
  AttentionCall call = good_call();
  make_ragged(call);
  for (const int64_t odd : odd_strides) {
    for (sluice_tensor *tensor : {&call.args.q, &call.kv.k, &call.kv.v, &call.args.o, &call.lse})
      tensor->stride[0] = odd;
    REQUIRE(run(make_plan(context, call), call) == SLUICE_OK);
    CHECK(hip.launch.kernargs.q_batch_stride == 0);
    CHECK(hip.launch.kernargs.k_batch_stride == 0);
    CHECK(hip.launch.kernargs.o_batch_stride == 0);
    CHECK(hip.launch.kernargs.lse_batch_stride == 0);
  }
}

//===- empty_calls_test.cpp - calls that have nothing to do, numbers that mean nothing, zeros that do
//----===//
#include "cache_op_fixture.h"

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
  for (const uint32_t mode : {SLUICE_MODE_DENSE, SLUICE_MODE_RAGGED, SLUICE_MODE_PAGED}) {
    sluice_problem problem = good_problem();
    problem.mode = mode;
    if (mode == SLUICE_MODE_PAGED) make_paged(problem);
    const PlanHandle plan = make_plan(context, problem);
    sluice_args args;
    sluice_args_init(&args, sizeof args);
    args.q_len = args.kv_len = 1;
    const auto run = [&](const sluice_launch &launch, Error &error) {
      return sluice_run(plan.get(), &args, &launch, &error);
    };
    Nothing{hip}.expect(run);
    args.batch = 3;
    args.q_len = 0;
    args.flags = SLUICE_EXACT_LENGTHS;
    Nothing{hip}.expect(run);
    args.kv_len = 0;
    Nothing{hip}.expect(run);
    // Numbers are still checked.
    args.batch = -1;
    Error error;
    check_refusal(sluice_run(plan.get(), &args, nullptr, &error), error, SLUICE_INVALID_ARGUMENT, "batch",
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
  sluice_problem problem = good_problem();
  problem.bias_type = SLUICE_F16;
  problem.flags |= SLUICE_BOOL_MASK;
  sluice_args args = good_args();
  args.flags = SLUICE_EXACT_LENGTHS;
  args.kv_len = 0;
  args.k = args.v = {};
  Error error;
  const sluice_launch launch = good_launch();
  CHECK(sluice_run(make_plan(context, problem).get(), &args, &launch, &error) == SLUICE_OK);
  INFO(error.message);
  CHECK(hip.launch.kernargs.kv_len == 0);
  // Rows of a bias or mask without keys have no elements.
  args.bias = args.mask = {device_memory, {0, 0, 1, 1}};
  CHECK(sluice_run(make_plan(context, problem).get(), &args, &launch, &error) == SLUICE_OK);
  CHECK(hip.launch.kernargs.bias == 0);
  CHECK(hip.launch.kernargs.mask == 0);
  args.bias = args.mask = {};
  make_paged(problem);
  args.kv_lengths = reinterpret_cast<const int32_t *>(device_memory);
  CHECK(sluice_run(make_plan(context, problem).get(), &args, &launch, &error) == SLUICE_OK);
  args.kv_len = 1;
  check_refusal(sluice_run(make_plan(context, problem).get(), &args, &launch, &error), error,
                SLUICE_INVALID_ARGUMENT, "page_table", "page_table is NULL");
}

TEST_CASE("a scale of 0 is a number if the call says so", "[empty]") {
  FakeHip hip;
  const ContextHandle context = fake_context();
  const PlanHandle plan = make_plan(context, good_problem());
  const sluice_launch launch = good_launch();
  sluice_args args = good_args();
  args.scale = 0;
  REQUIRE(sluice_run(plan.get(), &args, &launch, nullptr) == SLUICE_OK);
  CHECK(hip.launch.kernargs.scale_log2e == float(std::numbers::log2e / std::sqrt(128.0)));
  args.flags = SLUICE_EXACT_SCALE;
  REQUIRE(sluice_run(plan.get(), &args, &launch, nullptr) == SLUICE_OK);
  CHECK(hip.launch.kernargs.scale_log2e == 0);
  args.flags = 1 << 2;
  Error error;
  check_refusal(sluice_run(plan.get(), &args, &launch, &error), error, SLUICE_NEWER_STRUCT, "flags",
                "flags has unknown bits 0x4");
}

TEST_CASE("appends, merges, copies and gathers of nothing launch nothing", "[empty]") {
  FakeHip hip;
  const ContextHandle context = cache_op_context();
  sluice_append append = good_append();
  append.tokens = 0;
  append.slots = nullptr;
  append.k.data = append.v.data = nullptr;
  const auto run_append = [&](const sluice_launch &launch, Error &error) {
    return sluice_kv_append(context.get(), &append, &launch, &error);
  };
  Nothing{hip}.expect(run_append);
  append = good_table_append();
  append.batch = 0;
  append.kv_lengths = nullptr;
  Nothing{hip}.expect(run_append);
  sluice_merge merge = good_merge();
  merge.tokens = 0;
  merge.partial = merge.partial_lse = merge.o = merge.lse = {};
  Nothing{hip}.expect([&](const sluice_launch &launch, Error &error) {
    return sluice_merge_states(context.get(), &merge, &launch, &error);
  });
}

TEST_CASE("the stride of an extent of 1 neither has rules nor reaches a kernel", "[empty]") {
  FakeHip hip;
  const ContextHandle context = all_features_context();
  const sluice_launch launch = good_launch();
  sluice_problem problem = good_problem();
  problem.q_heads = problem.kv_heads = 1;
  const PlanHandle plan = make_plan(context, problem);
  const auto kernargs = [&](const sluice_args &args) {
    Error error;
    const sluice_status status = sluice_run(plan.get(), &args, &launch, &error);
    INFO(error.message);
    REQUIRE(status == SLUICE_OK);
    return hip.launch.kernargs;
  };
  sluice_args one = good_args();
  one.batch = one.q_len = one.kv_len = 1;
  const auto expected = kernargs(one);
  for (const int64_t odd : odd_strides) {
    for (sluice_tensor *tensor : {&one.q, &one.k, &one.v, &one.o, &one.lse})
      set(*tensor, {0, 1, 2}, odd);
    one.lse.stride[3] = odd;
    const auto found = kernargs(one);
    CHECK(std::memcmp(&found, &expected, sizeof found) == 0);
  }
  // Two of anything give its stride a meaning.
  one.q.stride[0] = 3;
  one.batch = 2;
  set(one.k, {0}, 128);
  set(one.v, {0}, 128);
  set(one.o, {0}, 128);
  set(one.lse, {0}, 1);
  Error error;
  check_refusal(sluice_run(plan.get(), &one, &launch, &error), error, SLUICE_INVALID_ARGUMENT, "q.stride[0]",
                "q.stride[0] is 3; it must be a multiple of 8");
}

TEST_CASE("with starts stride[0] means nothing", "[empty]") {
  FakeHip hip;
  const ContextHandle context = all_features_context();
  sluice_problem problem = good_problem();
  problem.mode = SLUICE_MODE_RAGGED;
  sluice_args args = good_args();
  args.q_starts = args.kv_starts = reinterpret_cast<const int32_t *>(device_memory);
  const sluice_launch launch = good_launch();
  for (const int64_t odd : odd_strides) {
    for (sluice_tensor *tensor : {&args.q, &args.k, &args.v, &args.o, &args.lse})
      tensor->stride[0] = odd;
    REQUIRE(sluice_run(make_plan(context, problem).get(), &args, &launch, nullptr) == SLUICE_OK);
    CHECK(hip.launch.kernargs.q_batch_stride == 0);
    CHECK(hip.launch.kernargs.k_batch_stride == 0);
    CHECK(hip.launch.kernargs.o_batch_stride == 0);
    CHECK(hip.launch.kernargs.lse_batch_stride == 0);
  }
}

TEST_CASE("cache operations take any stride of an extent of 1", "[empty]") {
  FakeHip hip;
  const ContextHandle context = cache_op_context();
  const sluice_launch launch = good_launch();
  for (const int64_t odd : odd_strides) {
    Error error;
    sluice_append append = good_append();
    append.kv_heads = append.tokens = append.page_size = 1;
    append.page_count = 1;
    for (sluice_tensor *tensor : {&append.k, &append.v, &append.k_cache, &append.v_cache})
      set(*tensor, {0, 1, 2}, odd);
    CHECK(sluice_kv_append(context.get(), &append, &launch, &error) == SLUICE_OK);
    INFO(error.message);
    sluice_merge merge = good_merge();
    merge.parts = merge.tokens = merge.heads = 1;
    for (sluice_tensor *tensor : {&merge.partial, &merge.o, &merge.partial_lse, &merge.lse})
      set(*tensor, {0, 1, 2}, odd);
    set(merge.partial_lse, {3}, odd);
    set(merge.lse, {3}, odd);
    CHECK(sluice_merge_states(context.get(), &merge, &launch, &error) == SLUICE_OK);
    // Two pages give a page's stride a meaning.
    append.page_count = 2;
    CHECK(sluice_kv_append(context.get(), &append, &launch, &error) == SLUICE_INVALID_ARGUMENT);
  }
}

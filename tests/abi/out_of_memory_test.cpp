//===- out_of_memory_test.cpp - every allocation fails once, and nothing is leaked ----------------------===//
#include "cache_op_fixture.h"
#include "interposed.h"
#include "split_fixture.h"

#include <functional>

using namespace sluice::test;

namespace {

/// Repeats a call with every allocation failing in turn, until none is left to fail; each time the status
/// must be SLUICE_OUT_OF_MEMORY and nothing may stay allocated. The result of the call with enough memory
/// goes to `last`. Returns how many failed. `undo` follows a success.
size_t fail_each_allocation(
    const std::function<sluice_status(sluice_error *)> &call, const std::function<void()> &undo = [] {},
    sluice_status last = SLUICE_OK) {
  for (size_t failing = 0;; ++failing) {
    Error error;
    const int64_t blocks_before = interposed.blocks;
    interposed.start_counting();
    interposed.first_failing = failing;
    const sluice_status status = call(&error);
    const bool had_enough = interposed.first_failing == SIZE_MAX || interposed.allocations <= failing;
    interposed.first_failing = SIZE_MAX;
    if (status == SLUICE_OK) undo();
    const int64_t blocks_left = interposed.blocks - blocks_before;
    INFO("allocation " << failing << ": " << sluice_status_name(status) << ": " << error.message);
    REQUIRE(blocks_left == 0);
    if (had_enough && status == last) return failing;
    REQUIRE(status == SLUICE_OUT_OF_MEMORY);
    REQUIRE(error.code == SLUICE_OUT_OF_MEMORY);
    REQUIRE(std::string(error.message) == "host memory ran out");
  }
}

/// The same for a call that changes its context, with a fresh one each time.
size_t fail_in_context(const sluice_context_desc &desc,
                       const std::function<sluice_status(sluice_context *, sluice_error *)> &call) {
  return fail_each_allocation([&](sluice_error *error) {
    const size_t failing = interposed.first_failing;
    interposed.first_failing = SIZE_MAX;
    sluice_context *fresh = nullptr;
    if (sluice_context_create(&desc, &fresh, nullptr) != SLUICE_OK) std::abort();
    interposed.start_counting();
    interposed.first_failing = failing;
    const sluice_status status = call(fresh, error);
    interposed.first_failing = SIZE_MAX;
    sluice_context_destroy(fresh);
    return status;
  });
}

} // namespace

TEST_CASE("a context that runs out of memory leaks nothing", "[out_of_memory]") {
  FakeHip hip;
  const sluice_context_desc desc = context_desc(SLUICE_DEVICE_HIP);
  sluice_context *context = nullptr;
  const size_t failed = fail_each_allocation(
      [&](sluice_error *error) {
        const sluice_status status = sluice_context_create(&desc, &context, error);
        if ((context != nullptr) != (status == SLUICE_OK)) std::abort();
        return status;
      },
      [&] { sluice_context_destroy(context); });
  CHECK(failed > 10);
}

TEST_CASE("a plan that runs out of memory leaks nothing", "[out_of_memory]") {
  FakeHip hip;
  hip.keeps_function_names = false;
  // One plan with a kernel, and one with kernels of both forms and a merge.
  for (const bool is_split : {false, true}) {
    const AttentionCall call = is_split ? decode_call() : good_call();
    const auto make = [&](sluice_context *context, sluice_error *error) {
      sluice_plan *plan = nullptr;
      const sluice_status status = sluice_attention_plan(context, &call.attention, &plan, error);
      if ((plan != nullptr) != (status == SLUICE_OK)) std::abort();
      sluice_plan_destroy(plan);
      return status;
    };
    CHECK(fail_in_context(context_desc(SLUICE_DEVICE_HIP, is_split ? split_pack() : shared_test_pack()),
                          make) > 5);
    CHECK(hip.loaded_modules == 0);
  }
}

TEST_CASE("loading kernels in advance, or with their first call, can run out of memory", "[out_of_memory]") {
  FakeHip hip;
  hip.keeps_function_names = false;
  const AttentionCall call = decode_call();
  const sluice_launch launch = good_launch();
  const auto preload = [](const sluice_attention *wanted) {
    return [wanted](sluice_context *context, sluice_error *error) {
      return sluice_attention_preload(context, wanted, error);
    };
  };
  CHECK(fail_in_context(context_desc(SLUICE_DEVICE_HIP, split_pack()), preload(&call.attention)) > 5);
  CHECK(fail_in_context(context_desc(SLUICE_DEVICE_HIP, split_pack()), preload(nullptr)) > 5);
  static const std::vector<std::byte> pack = cache_op_pack();
  const AppendCall append = good_append();
  CHECK(fail_in_context(context_desc(SLUICE_DEVICE_HIP, pack),
                        [&](sluice_context *context, sluice_error *error) {
                          return sluice_cache_append(context, &append.args, &launch, error);
                        }) > 2);
  const sluice_merge_args merge = good_merge();
  CHECK(fail_in_context(context_desc(SLUICE_DEVICE_HIP, pack),
                        [&](sluice_context *context, sluice_error *error) {
                          return sluice_attention_merge(context, &merge, &launch, error);
                        }) > 2);
  CHECK(hip.loaded_modules == 0);
}

TEST_CASE("a question that runs out of memory has no answer and no effect", "[out_of_memory]") {
  const ContextHandle context = target_context();
  const AttentionCall good = good_call();
  AttentionCall bad = good;
  bad.attention.o.type = SLUICE_E5M2;
  sluice_support support;
  sluice_support_init(&support, sizeof support);
  CHECK(fail_each_allocation([&](sluice_error *error) {
          return sluice_attention_support(context.get(), &good.attention, &support, error);
        }) > 0);
  CHECK(fail_each_allocation(
            [&](sluice_error *error) {
              return sluice_attention_support(context.get(), &bad.attention, &support, error);
            },
            [] {}, SLUICE_UNSUPPORTED) > 0);
  sluice_kernel_info kernel;
  sluice_kernel_info_init(&kernel, sizeof kernel);
  CHECK(fail_each_allocation([&](sluice_error *error) {
          return sluice_list_kernels(context.get(), 0, &kernel, nullptr, error);
        }) > 0);
  CHECK(fail_each_allocation(
            [&](sluice_error *error) {
              return sluice_list_kernels(context.get(), 1000, &kernel, nullptr, error);
            },
            [] {}, SLUICE_INVALID_ARGUMENT) > 0);
  sluice_build build;
  sluice_build_init(&build, sizeof build);
#if SLUICE_HAS_KERNELS
  const sluice_status build_status = SLUICE_OK;
#else
  const sluice_status build_status = SLUICE_PACK_CORRUPT;
#endif
  CHECK(fail_each_allocation([&](sluice_error *error) { return sluice_build_info(&build, error); }, [] {},
                             build_status) > 0);
}

TEST_CASE("cached answers need no memory", "[out_of_memory]") {
  FakeHip hip;
  const ContextHandle context = cache_op_context(), attention = fake_context();
  const AttentionCall call = good_call();
  const PlanHandle plan = make_plan(attention, call);
  const sluice_launch launch = good_launch();
  const AppendCall append = good_append();
  const sluice_merge_args merge = good_merge();
  REQUIRE(sluice_attention_preload(context.get(), nullptr, nullptr) == SLUICE_OK);
  const auto needs_none = [](auto &&call) {
    interposed.start_counting();
    interposed.first_failing = 0;
    const sluice_status status = call();
    interposed.first_failing = SIZE_MAX;
    CHECK(status == SLUICE_OK);
  };
  sluice_device_info device;
  sluice_device_info_init(&device, sizeof device);
  needs_none([&] { return sluice_context_device(context.get(), &device, nullptr); });
  sluice_plan_info info;
  sluice_plan_info_init(&info, sizeof info);
  needs_none([&] { return sluice_plan_describe(plan.get(), &info, nullptr); });
  needs_none([&] { return run(plan, call, &launch); });
  needs_none([&] { return run(context, append, &launch); });
  needs_none([&] { return run(context, merge, &launch); });
  needs_none([&] { return sluice_set_trace(context.get(), nullptr, nullptr, nullptr); });
}

TEST_CASE("a host reference that runs out of memory leaks nothing", "[out_of_memory]") {
  float q[2] = {1, 2}, k[2] = {0, 1}, v[2] = {10, 20}, o[2] = {-1, -1};
  AttentionCall call;
  call.attention.q_heads = call.format.kv_heads = call.format.head_dim_qk = call.format.head_dim_v = 1;
  for (sluice_format *format : {&call.attention.q, &call.attention.o, &call.format.k, &call.format.v})
    format->type = SLUICE_F32;
  call.args.batch = 1;
  call.args.rows.max_len = call.keys[0].rows.max_len = 2;
  call.args.q = sluice_bshd(q, 2, 1, 1);
  call.kv.k = sluice_bshd(k, 2, 1, 1);
  call.kv.v = sluice_bshd(v, 2, 1, 1);
  call.args.o = sluice_bshd(o, 2, 1, 1);
  CHECK(fail_each_allocation([&](sluice_error *error) {
          return sluice_attention_reference(&call.attention, &call.args, error);
        }) > 0);
}

TEST_CASE("a host reference of a cache operation that is refused without memory changes nothing",
          "[out_of_memory]") {
  AppendCall call = good_append();
  call.cache.format.k.pack = 24;
  CHECK(fail_each_allocation(
            [&](sluice_error *error) { return sluice_cache_append_reference(&call.args, error); }, [] {},
            SLUICE_INVALID_ARGUMENT) > 0);
}

TEST_CASE("destroying without memory unloads all modules, even if HIP fails", "[out_of_memory]") {
  for (const char *failing : {"", "hipGetDevice", "hipSetDevice", "hipModuleUnload"}) {
    FakeHip hip;
    hip.device_count = 2;
    sluice_context_desc desc = context_desc(SLUICE_DEVICE_HIP);
    desc.device_ordinal = 1;
    ContextHandle context = make_context(desc);
    REQUIRE(sluice_attention_preload(context.get(), nullptr, nullptr) == SLUICE_OK);
    REQUIRE(hip.loaded_modules == 8);
    static int lines;
    lines = 0;
    sluice_set_log([](uint32_t, const char *, void *) { ++lines; }, nullptr, SLUICE_LOG_ERROR);
    if (*failing != '\0') hip.failing = {{failing, 719}};
    interposed.start_counting();
    interposed.first_failing = 0;
    context.reset();
    interposed.first_failing = SIZE_MAX;
    sluice_set_log(nullptr, nullptr, 0);
    CHECK(hip.loaded_modules == 0);
    CHECK(lines == 0);
  }
}

TEST_CASE("refusing a run needs no memory to spare", "[out_of_memory]") {
  FakeHip hip;
  const ContextHandle context = fake_context();
  AttentionCall call = good_call();
  const PlanHandle plan = make_plan(context, call);
  call.args.q.stride[3] = 2;
  const sluice_launch launch = good_launch();
  Error error;
  interposed.start_counting();
  interposed.first_failing = 0;
  const sluice_status status = run(plan, call, &launch, &error);
  interposed.first_failing = SIZE_MAX;
  // The message could not be built, but the call is refused all the same.
  CHECK(status == SLUICE_OUT_OF_MEMORY);
  CHECK(hip.count("hipModuleLaunchKernel") == 0);
}

//===- run_counts_test.cpp - allocations, locks and HIP calls of one run --------------------------------===//
#include "interposed.h"
#include "split_fixture.h"

using namespace sluice;
using namespace sluice::test;

extern "C" const char *fake_roctx_take(void);

TEST_CASE("a run makes one HIP call, allocates nothing and takes no lock", "[run_counts]") {
  FakeHip hip;
  const ContextHandle context = fake_context();
  const AttentionCall call = good_call();
  const sluice_launch launch = good_launch();

  // The counters see the library: a plan allocates and locks.
  interposed.start_counting();
  const PlanHandle plan = make_plan(context, call);
  REQUIRE(interposed.allocations > 0);
  REQUIRE(interposed.locks > 0);

  // From the first run on, with and without an error struct.
  for (const bool with_error : {false, true}) {
    Error error;
    hip.forget_calls();
    check_costs_nothing([&] {
      int refused = 0;
      for (int i = 0; i < 100; ++i)
        refused += run(plan, call, &launch, with_error ? &error : nullptr) != SLUICE_OK;
      return refused == 0;
    });
    CHECK(hip.count("hipModuleLaunchKernel") == 100);
    CHECK(hip.call_count == 100);
  }
}

TEST_CASE("a run in a range of roctx allocates nothing and takes no lock", "[run_counts]") {
  FakeHip hip;
  const ContextHandle context = fake_context();
  REQUIRE(sluice_set_ranges(context.get(), 1, nullptr) == SLUICE_OK);
  const PlanHandle plan = make_plan(context, good_call());
  const AttentionCall call = good_call();
  const sluice_launch launch = good_launch();
  hip.forget_calls();
  check_costs_nothing([&] { return run(plan, call, &launch) == SLUICE_OK; });
  CHECK(hip.call_count == 1);
  CHECK_THAT(fake_roctx_take(), Catch::StartsWith("(attn_fwd_"));
}

TEST_CASE("a call with all options costs no more", "[run_counts]") {
  FakeHip hip;
  // Only such kernels support V in K and packs.
  package::KernelEntry mla = kernel_entry("f16", 128, 8);
  mla.name.form = "mla";
  mla.name.tile_q = 16 * mla.name.waves;
  mla.features = all_features();
  package::PackWriter writer("test", "22.1.8");
  add_fake_kernel(writer, std::move(mla));
  const std::vector<std::byte> pack = writer.finish();
  sluice_context_desc desc = context_desc(SLUICE_DEVICE_HIP, pack);
  const ContextHandle context = make_context(desc);
  AttentionCall call = good_call();
  make_paged(call);
  call.format.page_table = SLUICE_PAGE_TABLE_CSR;
  call.format.flags = SLUICE_KV_PAGE_INDEX_64 | SLUICE_KV_V_IN_K;
  call.format.k.pack = 8;
  call.format.k.scale_kind = SLUICE_SCALE_PER_HEAD;
  call.format.v = {};
  call.mask.flags |= SLUICE_MASK_WINDOW_LEFT | SLUICE_MASK_BITS;
  call.scores.flags = SLUICE_SCORES_ALIBI | SLUICE_SCORES_SINK;
  call.scores.bias_type = SLUICE_F32;
  call.attention.q.scale_kind = SLUICE_SCALE_PER_HEAD;
  call.attention.bounds.q_len = 5;
  call.attention.bounds.kv_len = 7;
  const auto *numbers = reinterpret_cast<const int32_t *>(device_memory);
  const auto *factors = reinterpret_cast<const float *>(device_memory);
  call.args.rows = {SLUICE_PLAN_BOUND, 0, numbers, numbers, 0};
  call.args.q.stride[0] = call.args.o.stride[0] = call.lse.stride[0] = 0;
  call.args.q_scale = factors;
  call.keys[0].rows.max_len = SLUICE_PLAN_BOUND;
  call.keys[0].pages.starts = numbers;
  call.keys[0].pages.stride = 0;
  call.kv.k.stride[3] = 8;
  call.kv.v = {};
  call.scales.k.data = device_memory;
  call.mask_args.bits = call.scores_args.bias = {device_memory, {0, 0, 8, 1}};
  call.scores_args.alibi_slopes = call.scores_args.sinks = factors;
  const sluice_launch launch = good_launch();
  const PlanHandle plan = make_plan(context, call);
  hip.forget_calls();
  check_costs_nothing([&] { return run(plan, call, &launch) == SLUICE_OK; });
  CHECK(hip.call_count == 1);
}

TEST_CASE("dependencies and a signal cost their own HIP calls and nothing else", "[run_counts]") {
  FakeHip hip;
  const ContextHandle context = fake_context();
  const PlanHandle plan = make_plan(context, good_call());
  const AttentionCall call = good_call();
  sluice_launch launch = good_launch();
  const sluice_dependency dependencies[] = {
      {SLUICE_DEPENDS_ON_EVENT, 0, FakeHip::handle(11), nullptr},
      {SLUICE_DEPENDS_ON_STREAM, 0, FakeHip::handle(12), FakeHip::handle(0x200)}};
  launch.dependencies = dependencies;
  launch.dependency_count = 2;
  launch.signal_event = FakeHip::handle(13);
  hip.forget_calls();
  check_costs_nothing([&] { return run(plan, call, &launch) == SLUICE_OK; });
  CHECK(hip.call_count == 6);
}

TEST_CASE("prefill, decode and merged runs cost their launches and nothing else", "[run_counts]") {
  FakeHip hip;
  const ContextHandle context = split_context(SLUICE_DEVICE_HIP);
  AttentionCall unsplit = mixed_call();
  unsplit.attention.bounds.kv_len = 0;
  const PlanHandle merging = make_plan(context, mixed_call()), plain = make_plan(context, unsplit);
  const sluice_launch launch = with_workspace();
  // Up to 4 rows of 4 heads go to the decode kernel.
  AttentionCall few = good_call(), many = good_call(), mixed = good_call();
  few.args.rows.max_len = 4;
  mixed.args.rows.lengths = reinterpret_cast<const int32_t *>(device_memory);
  struct Cost {
    const PlanHandle &plan;
    const AttentionCall &call;
    size_t launches;
  };
  for (const Cost &cost : {Cost{plain, few, 1}, Cost{plain, many, 1}, Cost{plain, mixed, 2},
                           Cost{merging, few, 2}, Cost{merging, many, 1}, Cost{merging, mixed, 3}}) {
    hip.forget_calls();
    check_costs_nothing([&] { return run(cost.plan, cost.call, &launch) == SLUICE_OK; });
    CHECK(hip.count("hipModuleLaunchKernel") == cost.launches);
    CHECK(hip.call_count == cost.launches);
  }
}

TEST_CASE("after a preload a plan makes no HIP call, and its first run only launches", "[run_counts]") {
  for (const bool everything : {false, true}) {
    FakeHip hip;
    const ContextHandle context = split_context(SLUICE_DEVICE_HIP);
    AttentionCall mixed = mixed_call();
    REQUIRE(sluice_attention_preload(context.get(), everything ? nullptr : &mixed.attention, nullptr) ==
            SLUICE_OK);
    REQUIRE(hip.call_count > 0);
    hip.forget_calls();
    const PlanHandle plan = make_plan(context, mixed);
    CHECK(hip.call_count == 0);
    const sluice_launch launch = with_workspace();
    mixed.args.rows.lengths = reinterpret_cast<const int32_t *>(device_memory);
    check_costs_nothing([&] { return run(plan, mixed, &launch) == SLUICE_OK; });
    CHECK(hip.count("hipModuleLaunchKernel") == 3);
    CHECK(hip.call_count == 3);
    CHECK(hip.launch.function != nullptr); // the merge's
  }
}

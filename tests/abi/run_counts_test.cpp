//===- run_counts_test.cpp - allocations, locks and HIP calls of one run --------------------------------===//
#include "interposed.h"
#include "split_fixture.h"

using namespace sluice;
using namespace sluice::test;

extern "C" const char *fake_roctx_take(void);

TEST_CASE("a run makes one HIP call, allocates nothing and takes no lock", "[run_counts]") {
  FakeHip hip;
  const ContextHandle context = fake_context();
  const sluice_problem problem = good_problem();
  const sluice_args args = good_args();
  const sluice_launch launch = good_launch();

  // The counters see the library: a plan allocates and locks.
  interposed.start_counting();
  const PlanHandle plan = make_plan(context, problem);
  REQUIRE(interposed.allocations > 0);
  REQUIRE(interposed.locks > 0);

  // From the first run on, with and without an error struct.
  for (const bool with_error : {false, true}) {
    Error error;
    hip.forget_calls();
    check_costs_nothing([&] {
      int refused = 0;
      for (int i = 0; i < 100; ++i)
        refused += sluice_run(plan.get(), &args, &launch, with_error ? &error : nullptr) != SLUICE_OK;
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
  const PlanHandle plan = make_plan(context, good_problem());
  const sluice_args args = good_args();
  const sluice_launch launch = good_launch();
  hip.forget_calls();
  check_costs_nothing([&] { return sluice_run(plan.get(), &args, &launch, nullptr) == SLUICE_OK; });
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
  sluice_problem problem = good_problem();
  make_paged(problem);
  problem.page_table_kind = SLUICE_PAGE_TABLE_CSR;
  problem.k_pack = 8;
  problem.flags |= SLUICE_HAS_WINDOW_LEFT | SLUICE_ALIBI | SLUICE_SINK_LOGITS | SLUICE_BOOL_MASK |
                   SLUICE_PAGE_INDEX_64 | SLUICE_V_IN_K;
  problem.bias_type = SLUICE_F32;
  problem.q_scale_kind = problem.k_scale_kind = problem.v_scale_kind = SLUICE_SCALE_PER_HEAD;
  problem.max_q_len = 5;
  problem.max_kv_len = 7;
  sluice_args args = good_args();
  args.q_len = args.kv_len = 0;
  args.q.stride[0] = args.o.stride[0] = args.lse.stride[0] = 0;
  args.q_starts = args.q_lengths = args.kv_lengths = args.page_starts =
      reinterpret_cast<const int32_t *>(device_memory);
  args.page_table = device_memory;
  args.bias = args.mask = {device_memory, {0, 0, 8, 1}};
  args.alibi_slopes = args.sink_logits = args.q_scale = args.k_scale = args.v_scale =
      reinterpret_cast<const float *>(device_memory);
  args.v = {};
  args.k.stride[3] = 8;
  const sluice_launch launch = good_launch();
  const PlanHandle plan = make_plan(context, problem);
  hip.forget_calls();
  check_costs_nothing([&] { return sluice_run(plan.get(), &args, &launch, nullptr) == SLUICE_OK; });
  CHECK(hip.call_count == 1);
}

TEST_CASE("dependencies and a signal cost their own HIP calls and nothing else", "[run_counts]") {
  FakeHip hip;
  const ContextHandle context = fake_context();
  const PlanHandle plan = make_plan(context, good_problem());
  const sluice_args args = good_args();
  sluice_launch launch = good_launch();
  const sluice_dependency dependencies[] = {
      {SLUICE_DEPENDS_ON_EVENT, 0, FakeHip::handle(11), nullptr},
      {SLUICE_DEPENDS_ON_STREAM, 0, FakeHip::handle(12), FakeHip::handle(0x200)}};
  launch.dependencies = dependencies;
  launch.dependency_count = 2;
  launch.signal_event = FakeHip::handle(13);
  hip.forget_calls();
  check_costs_nothing([&] { return sluice_run(plan.get(), &args, &launch, nullptr) == SLUICE_OK; });
  CHECK(hip.call_count == 6);
}

TEST_CASE("prefill, decode and merged runs cost their launches and nothing else", "[run_counts]") {
  FakeHip hip;
  const ContextHandle context = split_context(SLUICE_DEVICE_HIP);
  sluice_problem problem = mixed_problem();
  sluice_problem unsplit = problem;
  unsplit.max_kv_len = 0;
  const PlanHandle merging = make_plan(context, problem), plain = make_plan(context, unsplit);
  const sluice_launch launch = with_workspace();
  // Up to 4 rows of 4 heads go to the decode kernel.
  sluice_args few = good_args(), many = good_args(), mixed = good_args();
  few.q_len = 4;
  many.q_len = mixed.q_len = 5;
  mixed.q_lengths = reinterpret_cast<const int32_t *>(device_memory);
  struct Cost {
    const PlanHandle &plan;
    const sluice_args &args;
    size_t launches;
  };
  for (const Cost &cost : {Cost{plain, few, 1}, Cost{plain, many, 1}, Cost{plain, mixed, 2},
                           Cost{merging, few, 2}, Cost{merging, many, 1}, Cost{merging, mixed, 3}}) {
    hip.forget_calls();
    check_costs_nothing(
        [&] { return sluice_run(cost.plan.get(), &cost.args, &launch, nullptr) == SLUICE_OK; });
    CHECK(hip.count("hipModuleLaunchKernel") == cost.launches);
    CHECK(hip.call_count == cost.launches);
  }
}

TEST_CASE("after a preload a plan makes no HIP call, and its first run only launches", "[run_counts]") {
  for (const bool everything : {false, true}) {
    FakeHip hip;
    const ContextHandle context = split_context(SLUICE_DEVICE_HIP);
    sluice_problem problem = mixed_problem();
    REQUIRE(sluice_preload(context.get(), everything ? nullptr : &problem, nullptr) == SLUICE_OK);
    REQUIRE(hip.call_count > 0);
    hip.forget_calls();
    const PlanHandle plan = make_plan(context, problem);
    CHECK(hip.call_count == 0);
    const sluice_launch launch = with_workspace();
    sluice_args mixed = good_args();
    mixed.q_lengths = reinterpret_cast<const int32_t *>(device_memory);
    check_costs_nothing([&] { return sluice_run(plan.get(), &mixed, &launch, nullptr) == SLUICE_OK; });
    CHECK(hip.count("hipModuleLaunchKernel") == 3);
    CHECK(hip.call_count == 3);
    CHECK(hip.launch.function != nullptr); // the merge's
  }
}

//===- run_counts_test.cpp - what one run costs in allocations, locks and HIP calls ---------------------===//
#include "fixture.h"
#include "interposed.h"

using namespace sluice::test;

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
    interposed.start_counting();
    int refused = 0;
    for (int i = 0; i < 100; ++i) {
      refused += sluice_run(plan.get(), &args, &launch, with_error ? &error : nullptr) != SLUICE_OK;
    }
    const size_t allocations = interposed.allocations, locks = interposed.locks;
    CHECK(refused == 0);
    CHECK(allocations == 0);
    CHECK(locks == 0);
    CHECK(hip.count("hipModuleLaunchKernel") == 100);
    CHECK(hip.call_count == 100);
  }
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
  interposed.start_counting();
  const sluice_status status = sluice_run(plan.get(), &args, &launch, nullptr);
  const size_t allocations = interposed.allocations, locks = interposed.locks;
  CHECK(status == SLUICE_OK);
  CHECK(allocations == 0);
  CHECK(locks == 0);
  CHECK(hip.call_count == 6);
}

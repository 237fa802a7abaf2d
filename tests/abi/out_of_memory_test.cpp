//===- out_of_memory_test.cpp - every allocation fails once, and nothing is leaked ----------------------===//
#include "fixture.h"
#include "interposed.h"

#include <functional>

using namespace sluice::test;

namespace {

/// Calls with every allocation failing in turn, until none is left to fail; each time the status must be
/// SLUICE_OUT_OF_MEMORY and nothing be left allocated. Returns how many failed. `undo` follows a success.
size_t fail_each_allocation(const std::function<sluice_status(sluice_error *)> &call,
                            const std::function<void()> &undo) {
  for (size_t failing = 0;; ++failing) {
    Error error;
    const int64_t blocks_before = interposed.blocks;
    interposed.start_counting();
    interposed.first_failing = failing;
    const sluice_status status = call(&error);
    interposed.first_failing = SIZE_MAX;
    if (status == SLUICE_OK) undo();
    const int64_t blocks_left = interposed.blocks - blocks_before;
    INFO("allocation " << failing << ": " << sluice_status_name(status) << ": " << error.message);
    REQUIRE(blocks_left == 0);
    if (status == SLUICE_OK) return failing;
    REQUIRE(status == SLUICE_OUT_OF_MEMORY);
    REQUIRE(error.code == SLUICE_OUT_OF_MEMORY);
    REQUIRE(std::string(error.message) == "host memory ran out");
  }
}

} // namespace

TEST_CASE("a context that runs out of memory leaves nothing behind", "[out_of_memory]") {
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

TEST_CASE("a plan that runs out of memory leaves nothing behind", "[out_of_memory]") {
  FakeHip hip;
  hip.keeps_function_names = false;
  const sluice_problem problem = good_problem();
  ContextHandle context;
  sluice_plan *plan = nullptr;
  // A fresh context for each attempt: a kernel that is loaded stays loaded.
  const sluice_context_desc desc = context_desc(SLUICE_DEVICE_HIP);
  const size_t failed = fail_each_allocation(
      [&](sluice_error *error) {
        const size_t failing = interposed.first_failing;
        interposed.first_failing = SIZE_MAX;
        sluice_context *fresh = nullptr;
        if (sluice_context_create(&desc, &fresh, nullptr) != SLUICE_OK) std::abort();
        interposed.start_counting();
        interposed.first_failing = failing;
        const sluice_status status = sluice_plan_create(fresh, &problem, &plan, error);
        interposed.first_failing = SIZE_MAX;
        if ((plan != nullptr) != (status == SLUICE_OK)) std::abort();
        sluice_context_destroy(fresh);
        return status;
      },
      [&] { sluice_plan_destroy(plan); });
  CHECK(failed > 5);
  CHECK(hip.loaded_modules == 0);
}

TEST_CASE("refusing a run needs no memory to spare", "[out_of_memory]") {
  FakeHip hip;
  const ContextHandle context = fake_context();
  const PlanHandle plan = make_plan(context, good_problem());
  sluice_args args = good_args();
  args.q.stride[3] = 2;
  const sluice_launch launch = good_launch();
  Error error;
  interposed.start_counting();
  interposed.first_failing = 0;
  const sluice_status status = sluice_run(plan.get(), &args, &launch, &error);
  interposed.first_failing = SIZE_MAX;
  // The sentence could not be built, but the call is refused all the same.
  CHECK(status == SLUICE_OUT_OF_MEMORY);
  CHECK(hip.count("hipModuleLaunchKernel") == 0);
}

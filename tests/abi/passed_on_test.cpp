//===- passed_on_test.cpp - what goes through the entry points as it is ---------------------------------===//
#include "split_fixture.h"

using namespace sluice::test;

TEST_CASE("a caller's resolver gets the caller's pointer, whenever it is asked", "[context]") {
  FakeHip hip;
  struct Caller {
    int asked = 0;
  } caller;
  const auto resolve = [](const char *name, void *user) {
    ++static_cast<Caller *>(user)->asked;
    return FakeHip::resolve(name, nullptr);
  };
  sluice_context_desc desc = context_desc(SLUICE_DEVICE_HIP);
  desc.hip_resolver = resolve;
  desc.hip_resolver_user = &caller;
  const ContextHandle context = make_context(desc);
  CHECK(caller.asked > 0);
  const int asked = caller.asked;
  CHECK(sluice_context_hip_symbol(context.get(), "hipInit") == FakeHip::resolve("hipInit", nullptr));
  CHECK(caller.asked == asked + 1);
}

TEST_CASE("a plan's description has the workspace that support is asked for", "[problem]") {
  const ContextHandle context = split_context(SLUICE_DEVICE_TARGET);
  const sluice_problem problem = decode_problem();
  sluice_support support;
  sluice_support_init(&support, sizeof support);
  REQUIRE(sluice_query_support(context.get(), &problem, &support, nullptr) == SLUICE_OK);
  uint64_t bytes = 0;
  REQUIRE(sluice_workspace_size(context.get(), &problem, &bytes, nullptr) == SLUICE_OK);
  const PlanHandle plan = make_plan(context, problem);
  sluice_plan_info info;
  sluice_plan_info_init(&info, sizeof info);
  REQUIRE(sluice_plan_describe(plan.get(), &info, nullptr) == SLUICE_OK);
  CHECK(info.workspace_bytes > 0);
  CHECK(info.workspace_bytes == support.workspace_bytes);
  CHECK(info.workspace_bytes == bytes);
  CHECK(info.workspace_alignment == 256);
  CHECK(support.workspace_alignment == 256);
  CHECK(support.pointer_alignment == 16);
  CHECK(support.stride_multiple == 8);
}

TEST_CASE("the problem of a preload is checked like any other", "[context]") {
  FakeHip hip;
  const ContextHandle context = fake_context();
  sluice_problem problem = good_problem();
  problem.q_heads = 0;
  Error error;
  check_refusal(sluice_preload(context.get(), &problem, &error), error, SLUICE_INVALID_ARGUMENT, "q_heads",
                "q_heads is 0; it must be at least 1");
  CHECK(hip.count("hipModuleLoadData") == 0);
}

//===- around_counts_test.cpp - what one append or merge costs in allocations, locks and HIP calls ------===//
#include "around_fixture.h"
#include "interposed.h"

using namespace sluice::test;

TEST_CASE("a loaded append or merge makes one HIP call, allocates nothing and takes no lock",
          "[run_counts]") {
  FakeHip hip;
  const ContextHandle context = around_context();
  const sluice_append append = good_append(), table_append = good_table_append();
  const sluice_merge merge = good_merge();
  const sluice_launch launch = good_launch();
  // The counters see the library: the first call loads.
  interposed.start_counting();
  REQUIRE(sluice_kv_append(context.get(), &append, &launch, nullptr) == SLUICE_OK);
  REQUIRE(interposed.allocations > 0);
  REQUIRE(interposed.locks > 0);
  REQUIRE(sluice_merge_states(context.get(), &merge, &launch, nullptr) == SLUICE_OK);

  Error error;
  hip.forget_calls();
  interposed.start_counting();
  int refused = 0;
  for (int i = 0; i < 50; ++i) {
    refused += sluice_kv_append(context.get(), &append, &launch, &error) != SLUICE_OK;
    refused += sluice_kv_append(context.get(), &table_append, &launch, nullptr) != SLUICE_OK;
    refused += sluice_merge_states(context.get(), &merge, &launch, &error) != SLUICE_OK;
  }
  const size_t allocations = interposed.allocations, locks = interposed.locks;
  CHECK(refused == 0);
  CHECK(allocations == 0);
  CHECK(locks == 0);
  CHECK(hip.count("hipModuleLaunchKernel") == 150);
  CHECK(hip.call_count == 150);
}

//===- cache_op_counts_test.cpp - allocations, locks and HIP calls of one append or merge ---------------===//
#include "cache_op_fixture.h"
#include "interposed.h"

#include "runtime/cache_ops.h"

using namespace sluice;
using namespace sluice::test;

TEST_CASE("a loaded append or merge makes one HIP call, allocates nothing and takes no lock",
          "[run_counts]") {
  FakeHip hip;
  const ContextHandle context = cache_op_context();
  const sluice_append append = good_append(), table_append = good_table_append();
  const sluice_merge merge = good_merge();
  const sluice_launch launch = good_launch();
  // The counters see the library: the first call loads kernels.
  interposed.start_counting();
  REQUIRE(sluice_kv_append(context.get(), &append, &launch, nullptr) == SLUICE_OK);
  REQUIRE(interposed.allocations > 0);
  REQUIRE(interposed.locks > 0);
  REQUIRE(sluice_merge_states(context.get(), &merge, &launch, nullptr) == SLUICE_OK);

  Error error;
  hip.forget_calls();
  check_costs_nothing([&] {
    int refused = 0;
    for (int i = 0; i < 50; ++i) {
      refused += sluice_kv_append(context.get(), &append, &launch, &error) != SLUICE_OK;
      refused += sluice_kv_append(context.get(), &table_append, &launch, nullptr) != SLUICE_OK;
      refused += sluice_merge_states(context.get(), &merge, &launch, &error) != SLUICE_OK;
    }
    return refused == 0;
  });
  CHECK(hip.count("hipModuleLaunchKernel") == 150);
  CHECK(hip.call_count == 150);
}

TEST_CASE("a merge of a plan's parts makes its HIP calls, allocates nothing and takes no lock",
          "[run_counts]") {
  FakeHip hip;
  const std::vector<std::byte> pack = cache_op_pack();
  runtime::Context context(runtime::open_device(SLUICE_DEVICE_HIP, 0, {FakeHip::resolve, nullptr, "test"}),
                           pack);
  const runtime::CacheOpKernel &kernel =
      context.cache_op_kernels().find(runtime::CacheOperation::merge_states, SLUICE_F32, SLUICE_F16);
  void *const function = context.function(*kernel.packed);
  runtime::PartsMerge call;
  call.lse_base = SLUICE_LSE_BASE_2;
  call.parts = 3;
  call.batch = 40;
  call.rows_per_sequence = call.most_rows = call.max_rows = 5;
  call.heads = 7;
  call.head_dim_v = 128;
  void *const stream = good_launch().stream;
  hip.forget_calls();
  check_costs_nothing([&] {
    for (int i = 0; i < 50; ++i)
      runtime::merge_parts(context, kernel, call, stream);
    return true;
  });
  CHECK(hip.call_count == 50);
  CHECK(hip.count("hipModuleLaunchKernel") == 50);
  CHECK(hip.launch.function == function);
  CHECK(hip.launch.stream == stream);
  CHECK(hip.launch.grid[0] == 350); // 1400 rows, of 16 lanes for each of 4 slots
  CHECK(hip.launch.grid[1] == 1);
  CHECK(hip.launch.block[0] == 256);
}

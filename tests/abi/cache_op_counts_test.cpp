//===- cache_op_counts_test.cpp - allocations, locks and HIP calls of one cache operation ---------------===//
#include "interposed.h"
#include "page_copy_fixture.h"

#include "runtime/cache_ops.h"

using namespace sluice;
using namespace sluice::test;

TEST_CASE("a loaded cache operation makes one HIP call, allocates nothing and takes no lock",
          "[run_counts]") {
  CacheOpDevice device;
  FakeHip &hip = device.hip;
  const ContextHandle &context = device.context;
  const AppendCall append = good_append(), table_append = good_table_append(), step = good_step(),
                   groups = good_groups();
  const CopyCall copy = good_copy(), fp8_copy = good_fp8_copy();
  const GatherCall gather = good_i8_gather();
  const sluice_merge_args merge = good_merge();
  const sluice_launch launch = good_launch();
  const auto run_all = [&](sluice_error *error) {
    int refused = 0;
    const auto count = [&](const auto &call) { refused += run(context, call, &launch, error) != SLUICE_OK; };
    count(append);
    count(table_append);
    count(step);
    count(groups);
    count(copy);
    count(fp8_copy);
    count(gather);
    count(merge);
    return refused;
  };
  constexpr size_t calls = 8, rounds = 20;
  // The counters see the library: the first call loads kernels.
  interposed.start_counting();
  REQUIRE(run_all(nullptr) == 0);
  REQUIRE(interposed.allocations > 0);
  REQUIRE(interposed.locks > 0);

  Error error;
  hip.forget_calls();
  check_costs_nothing([&] {
    int refused = 0;
    for (size_t i = 0; i < rounds; ++i)
      refused += run_all(i % 2 == 0 ? &error : nullptr);
    return refused == 0;
  });
  CHECK(hip.count("hipModuleLaunchKernel") == rounds * calls);
  CHECK(hip.call_count == rounds * calls);
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
  call.result.to_log2 = true;
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

//===- empty_cache_ops_test.cpp - cache operations with nothing to do, or with one of something ---------===//
#include "page_copy_fixture.h"

#include <limits>

using namespace sluice::test;

namespace {

/// A call waits for its dependency and records its event, and launches nothing.
template <typename Call> void expect_nothing(CacheOpDevice &device, const Call &call) {
  sluice_launch launch = good_launch();
  sluice_dependency dependency = {};
  dependency.kind = SLUICE_DEPENDS_ON_EVENT;
  dependency.event = FakeHip::handle(0x200);
  launch.dependencies = &dependency;
  launch.dependency_count = 1;
  launch.signal_event = FakeHip::handle(0x300);
  device.hip.forget_calls();
  Error error;
  const sluice_status status = run(device.context, call, &launch, &error);
  INFO(error.field << ": " << error.message);
  CHECK(status == SLUICE_OK);
  CHECK(device.hip.count("hipModuleLaunchKernel") == 0);
  CHECK(device.hip.count("hipStreamWaitEvent") == 1);
  CHECK(device.hip.count("hipEventRecord") == 1);
}

/// No number that a stride of an extent of 1 could have is refused.
constexpr int64_t odd_strides[] = {1, 3, -8, std::numeric_limits<int64_t>::min(),
                                   std::numeric_limits<int64_t>::max()};

void set(sluice_tensor &tensor, std::initializer_list<size_t> dimensions, int64_t stride) {
  for (const size_t dimension : dimensions)
    tensor.stride[dimension] = stride;
}

} // namespace

TEST_CASE("appends, merges, copies and gathers of nothing launch nothing", "[empty]") {
  CacheOpDevice device;
  AppendCall append = good_append();
  append.args.tokens = 0;
  append.args.slots = nullptr;
  append.args.k.data = append.args.v.data = nullptr;
  expect_nothing(device, append);
  append = good_table_append();
  append.args.batch = 0;
  append.args.lengths = nullptr;
  expect_nothing(device, append);
  sluice_merge_args merge = good_merge();
  merge.tokens = 0;
  merge.parts.o = merge.parts.lse = merge.o = merge.lse = {};
  expect_nothing(device, merge);
  CopyCall copy = good_copy();
  copy.args.pair_count = 0;
  copy.source.kv.k = copy.source.kv.v = copy.target.kv.k = copy.target.kv.v = {};
  expect_nothing(device, copy);
  GatherCall gather = good_gather();
  gather.args.batch = 0;
  gather.args.lengths = nullptr;
  expect_nothing(device, gather);
  gather = good_gather();
  gather.args.tokens = 0;
  gather.args.starts = nullptr;
  expect_nothing(device, gather);
}

TEST_CASE("calls with nothing to do are refused all the same if a struct breaks a rule", "[empty]") {
  CacheOpDevice device;
  Error error;
  AppendCall append = good_append();
  append.args.tokens = 0;
  append.cache.format.head_dim_qk = 4;
  check_refusal(run(device.context, append, nullptr, &error), error, SLUICE_INVALID_ARGUMENT,
                "kv.format.head_dim_qk", "kv.format.head_dim_qk is 4; it must be a multiple of 8");
  CopyCall copy = good_copy();
  copy.args.pair_count = 0;
  copy.target.format.kv_heads = 1;
  check_refusal(run(device.context, copy, nullptr, &error), error, SLUICE_INVALID_ARGUMENT,
                "target.format.kv_heads", "it must be that of the source");
}

TEST_CASE("cache operations take any stride of an extent of 1", "[empty]") {
  CacheOpDevice device;
  for (const int64_t odd : odd_strides) {
    Error error;
    AppendCall append = good_append();
    append.cache.format.kv_heads = append.args.tokens = append.cache.format.page_size = 1;
    append.cache.kv.page_count = 1;
    for (sluice_tensor *tensor : {&append.args.k, &append.args.v, &append.cache.kv.k, &append.cache.kv.v})
      set(*tensor, {0, 1, 2}, odd);
    CHECK(run(device.context, append, nullptr, &error) == SLUICE_OK);
    INFO(error.message);
    sluice_merge_args merge = good_merge();
    merge.parts.count = merge.tokens = merge.heads = 1;
    for (sluice_tensor *tensor : {&merge.parts.o, &merge.o, &merge.parts.lse, &merge.lse})
      set(*tensor, {0, 1, 2}, odd);
    set(merge.parts.lse, {3}, odd);
    set(merge.lse, {3}, odd);
    CHECK(run(device.context, merge, nullptr, &error) == SLUICE_OK);
    // Two pages give a page's stride a meaning.
    append.cache.kv.page_count = 2;
    CHECK(run(device.context, append, nullptr, &error) == SLUICE_INVALID_ARGUMENT);
  }
  // A stride of 0 is one of them.
  AppendCall append = good_append();
  append.cache.kv.page_count = 1;
  append.cache.kv.k.stride[0] = append.cache.kv.v.stride[0] = 0;
  CHECK(run(device.context, append) == SLUICE_OK);
}

TEST_CASE("one sequence needs no stride of its page table", "[empty]") {
  CacheOpDevice device;
  AppendCall append = good_table_append();
  append.args.batch = 1;
  append.args.pages.stride = 0;
  CHECK(run(device.context, append) == SLUICE_OK);
  GatherCall gather = good_gather();
  gather.args.batch = 1;
  gather.args.pages.stride = 0;
  CHECK(run(device.context, gather) == SLUICE_OK);
}

//===- args_limits_test.cpp - calls at the limits of their rules ----------------------------------------===//
#include "call_kinds.h"

#include <cstring>

using namespace sluice::test;

using Call = AttentionCall;

TEST_CASE("lengths may be left to the plan's bounds", "[args]") {
  FakeHip hip;
  const ContextHandle context = able_context(SLUICE_DEVICE_HIP);
  for (Call (*const good)() : {dense, ragged, paged}) {
    Call call = good();
    call.attention.bounds.q_len = 5;
    call.attention.bounds.kv_len = 7;
    call.args.rows.max_len = call.keys[0].rows.max_len = SLUICE_PLAN_BOUND;
    Error error;
    const sluice_status status = run(make_plan(context, call), call, nullptr, &error);
    INFO(error.message);
    REQUIRE(status == SLUICE_OK);
    CHECK(hip.launch.kernargs.q_len == 5);
    CHECK(hip.launch.kernargs.kv_len == 7);
  }
}

TEST_CASE("a struct that asks for nothing is as good as none", "[args]") {
  FakeHip hip;
  const ContextHandle context = able_context(SLUICE_DEVICE_HIP);
  Call call = good_call();
  call.mask.flags = 0;
  call.attention.lse = SLUICE_LSE_NONE;
  call.lse = {};
  REQUIRE(run(make_plan(context, call), call) == SLUICE_OK);
  const auto with_structs = hip.launch.kernargs;
  call.attention.mask = nullptr;
  call.attention.scores = nullptr;
  call.kv.scales = nullptr;
  call.args.lse = nullptr;
  call.args.mask = nullptr;
  call.args.scores = nullptr;
  REQUIRE(run(make_plan(context, call), call) == SLUICE_OK);
  CHECK(std::memcmp(&hip.launch.kernargs, &with_structs, sizeof with_structs) == 0);
}

TEST_CASE("keys are stored as the plan was told", "[args]") {
  FakeHip hip;
  const ContextHandle context = able_context(SLUICE_DEVICE_HIP);
  struct Other {
    Call (*good)();
    void (*change)(sluice_kv_format &);
    const char *member;
    const char *message;
  };
  const Other others[] = {
      {dense, [](auto &f) { f.kv_heads = 4; }, "kv_heads", "is 4; the problem has 2 there"},
      {dense, [](auto &f) { f.head_dim_qk = 64; }, "head_dim_qk", "is 64; the problem has 128 there"},
      {dense, [](auto &f) { f.head_dim_v = 64; }, "head_dim_v", "is 64; the problem has 128 there"},
      {paged, [](auto &f) { f.page_size = 32; }, "page_size", "is 32; the problem has 16 there"},
      {paged, [](auto &f) { f.page_table = SLUICE_PAGE_TABLE_CSR; }, "page_table", "is 2; the problem has 1"},
      {v_in_k,
       [](auto &f) {
         f.flags = 0;
         f.v.type = SLUICE_F16;
       },
       "flags", "lacks SLUICE_KV_V_IN_K, which the problem has"},
      {paged, [](auto &f) { f.flags = SLUICE_KV_PAGE_INDEX_64; }, "flags",
       "has SLUICE_KV_PAGE_INDEX_64, which the problem lacks"},
      {dense, [](auto &f) { f.k.type = SLUICE_BF16; }, "k.type", "is 2; the problem has 1 there"},
      {dense, [](auto &f) { f.v.type = SLUICE_BF16; }, "v.type", "is 2; the problem has 1 there"},
      {dense, [](auto &f) { f.k.scale_kind = SLUICE_SCALE_PER_HEAD; }, "k.scale_kind", "the problem has 0"},
      {dense, [](auto &f) { f.v.scale_kind = SLUICE_SCALE_PER_HEAD; }, "v.scale_kind", "the problem has 0"},
      {with_groups, [](auto &f) { f.k.scale_group = f.v.scale_group = 32; }, "k.scale_group", "is 32"},
      {with_groups, [](auto &f) { f.k.zero_points = f.v.zero_points = 0; }, "k.zero_points",
       "lacks zero points, which the problem has"},
      {packed, [](auto &f) { f.k.pack = 16; }, "k.pack", "is 16; the problem has 8 there"},
      {paged, [](auto &f) { f.v.pack = 8; }, "v.pack", "is 8; the problem has 0 there"},
  };
  for (const Other &other : others) {
    Call call = other.good();
    const PlanHandle plan = make_plan(context, call);
    CHECK(run(plan, call) == SLUICE_OK);
    sluice_kv_format same = call.format; // elsewhere
    call.kv.format = &same;
    CHECK(run(plan, call) == SLUICE_OK);
    other.change(same);
    call.kv.scales = nullptr;
    hip.forget_calls();
    Error error;
    check_refusal(run(plan, call, nullptr, &error), error, SLUICE_INVALID_ARGUMENT,
                  std::string("keys[0].kv.format.") + other.member, other.message);
    CHECK(hip.call_count == 0);
  }
}

TEST_CASE("only the device knows the number of rows if a call has starts", "[args]") {
  FakeHip hip;
  const ContextHandle context = able_context(SLUICE_DEVICE_HIP);
  Call call = ragged();
  call.attention.bounds.q_rows = 6; // less than batch * max_len, which only bounds the lengths
  CHECK(run(make_plan(context, call), call) == SLUICE_OK);
  // A head may start after all rows of the previous one, however few they are.
  call.args.o.stride[1] = 128;
  call.args.o.stride[2] = 2 * 128;
  CHECK(run(make_plan(context, call), call) == SLUICE_OK);
  // ... as long as the call does not say that there are more.
  call.args.rows.total = 2;
  CHECK(run(make_plan(context, call), call) == SLUICE_OK);
  call.args.rows.total = 3;
  Error error;
  check_refusal(run(make_plan(context, call), call, nullptr, &error), error, SLUICE_INVALID_ARGUMENT,
                "o.stride[2]", "elements of an output would overlap");
}

TEST_CASE("a device counts pages up to 2^32", "[args]") {
  FakeHip hip;
  const ContextHandle context = able_context(SLUICE_DEVICE_HIP);
  Call call = paged();
  call.kv.page_count = (int64_t{1} << 32) + 1;
  Error error;
  check_refusal(run(make_plan(context, call), call, nullptr, &error), error, SLUICE_UNSUPPORTED,
                "keys[0].kv.page_count", "nearest supported: 4294967296");
}

TEST_CASE("sequences in pages have the same length unless their lengths are given", "[args]") {
  FakeHip hip;
  const ContextHandle context = able_context(SLUICE_DEVICE_HIP);
  for (Call (*const good)() : {paged, csr}) {
    Call call = good();
    call.keys[0].rows.lengths = nullptr;
    REQUIRE(run(make_plan(context, call), call) == SLUICE_OK);
    CHECK(hip.launch.kernargs.kv_len == 7);
    CHECK(hip.launch.kernargs.kv_lengths == 0);
  }
}

TEST_CASE("the only page has no stride", "[args]") {
  FakeHip hip;
  const ContextHandle context = able_context(SLUICE_DEVICE_HIP);
  Call call = paged();
  call.kv.k.stride[0] = call.kv.v.stride[0] = 0;
  call.kv.page_count = 1;
  CHECK(run(make_plan(context, call), call) == SLUICE_OK);
}

TEST_CASE("a call may use any page, and any byte of it", "[args]") {
  FakeHip hip;
  const ContextHandle context = able_context(SLUICE_DEVICE_HIP);
  Call call = paged();
  call.keys[0].rows.max_len = 1 << 30; // in as many pages as needed: they need not be adjacent
  call.keys[0].pages.stride = (1 << 30) / 16;
  call.kv.k.stride[1] = call.kv.v.stride[1] = 1 << 20;
  CHECK(run(make_plan(context, call), call) == SLUICE_OK);

  call = packed();
  call.kv.page_count = 1;
  call.format.k.pack = 16;
  call.kv.k.stride[1] = 16;
  call.kv.k.stride[3] = 16 * 16;
  constexpr uint64_t page_bytes = 16 * 2 * 128 * 2;
  const PlanHandle plan = make_plan(context, call);
  call.kv.k.data = reinterpret_cast<void *>((uint64_t{1} << 48) - page_bytes);
  CHECK(run(plan, call) == SLUICE_OK);
  call.kv.k.data = reinterpret_cast<void *>((uint64_t{1} << 48) - page_bytes + 16);
  Error error;
  check_refusal(run(plan, call, nullptr, &error), error, SLUICE_INVALID_ARGUMENT, "keys[0].kv.k.stride",
                "beyond the address space");
}

TEST_CASE("a call does not know the end of a page table that is shared or the only one", "[args]") {
  FakeHip hip;
  const ContextHandle context = able_context(SLUICE_DEVICE_HIP);
  Call call = paged();
  call.keys[0].rows.max_len = 17; // two pages
  call.keys[0].pages.stride = 2;
  CHECK(run(make_plan(context, call), call) == SLUICE_OK);
  CHECK(hip.launch.kernargs.page_table_stride == 2);
  call.keys[0].pages.stride = SLUICE_SHARED;
  CHECK(run(make_plan(context, call), call) == SLUICE_OK);
  CHECK(hip.launch.kernargs.page_table_stride == 0);
  for (const int64_t stride : {0, 1}) {
    call.keys[0].pages.stride = stride;
    call.args.batch = 1;
    CHECK(run(make_plan(context, call), call) == SLUICE_OK);
  }
}

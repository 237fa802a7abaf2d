//===- ranges_test.cpp - the ranges of roctx around calls -----------------------------------------------===//
//
// This program is linked with fake_roctx.c. Where the library finds roctx's functions, check_runtimes.py
// tests.
//
//===----------------------------------------------------------------------------------------------------===//
#include "cache_op_fixture.h"
#include "split_fixture.h"

#include <string>

using namespace sluice::test;

extern "C" const char *fake_roctx_take(void);

namespace {

std::string take() {
  return fake_roctx_take();
}

/// A plan whose rows of 300 tokens go to a prefill kernel, those of up to 4 to a decode kernel and a merge.
struct MixedPlan {
  FakeHip hip;
  ContextHandle context = split_context(SLUICE_DEVICE_HIP);
  AttentionCall call = mixed_call();
  PlanHandle plan = make_plan(context, call);
  sluice_launch launch = with_workspace();

  MixedPlan() {
    call.lse = {device_memory + 64, {8 * 300, 1, 300, 0}};
    call.args.q.stride[0] = call.args.o.stride[0] = int64_t{300} * 8 * 128;
    call.args.rows.max_len = 4;
  }
  void set_ranges(uint32_t enabled) {
    REQUIRE(sluice_set_ranges(context.get(), enabled, nullptr) == SLUICE_OK);
  }
  sluice_status run() { return sluice::test::run(plan, call, &launch); }
};

} // namespace

TEST_CASE("a run is in a range with its kernels and the problem in short", "[ranges]") {
  MixedPlan mixed;
  take();
  REQUIRE(mixed.run() == SLUICE_OK);
  CHECK(take() == ""); // off is the initial state
  mixed.set_ranges(1);
  const std::string few = "attn_fwd_f16_d128_q16_kv16_w1_decode", many = "attn_fwd_f16_d128_q256_kv64_w8";
  REQUIRE(mixed.run() == SLUICE_OK);
  CHECK(take() == "(" + few + " b2 q4 kv7 h8/2 causal)"); // with its merge
  mixed.call.args.rows.max_len = 300;
  REQUIRE(mixed.run() == SLUICE_OK);
  CHECK(take() == "(" + many + " b2 q300 kv7 h8/2 causal)");
  mixed.call.args.rows.lengths = reinterpret_cast<const int32_t *>(device_memory);
  REQUIRE(mixed.run() == SLUICE_OK);
  CHECK(take() == "(" + many + " + " + few + " b2 q300 kv7 h8/2 causal)");
  mixed.set_ranges(0);
  REQUIRE(mixed.run() == SLUICE_OK);
  CHECK(take() == "");
}

TEST_CASE("a range's text names what a problem has", "[ranges]") {
  FakeHip hip;
  sluice::package::PackWriter writer("test", "22.1.8");
  sluice::package::KernelEntry entry = kernel_entry("f16", 128, 4);
  entry.name.form = "paged";
  entry.features = all_features();
  add_fake_kernel(writer, entry);
  const std::vector<std::byte> pack = writer.finish();
  const ContextHandle context = make_context(context_desc(SLUICE_DEVICE_HIP, pack));
  REQUIRE(sluice_set_ranges(context.get(), 1, nullptr) == SLUICE_OK);
  AttentionCall call = good_call();
  make_paged(call);
  call.mask.flags = SLUICE_MASK_WINDOW_LEFT | SLUICE_MASK_BITS;
  call.mask.window_left = 5;
  call.scores.bias_type = SLUICE_F32;
  call.scores_args.bias = {device_memory, {0, 0, 7, 1}};
  call.mask_args.bits = {device_memory, {0, 0, 1, 1}};
  const PlanHandle plan = make_plan(context, call);
  take();
  Error error;
  const sluice_status status = run(plan, call, nullptr, &error);
  INFO(error.message);
  REQUIRE(status == SLUICE_OK);
  CHECK(take() ==
        "(" + sluice::package::format_kernel_name(entry.name) + " b2 q5 kv7 h8/2 paged window mask bias)");
}

TEST_CASE("appends and merges are in ranges", "[ranges]") {
  FakeHip hip;
  const ContextHandle context = cache_op_context();
  const AppendCall append = good_append(), table = good_table_append();
  const sluice_merge_args merge = good_merge();
  const auto call_all = [&] {
    CHECK(run(context, append) == SLUICE_OK);
    CHECK(run(context, table) == SLUICE_OK);
    CHECK(run(context, merge) == SLUICE_OK);
    return take();
  };
  take();
  CHECK(call_all() == "");
  REQUIRE(sluice_set_ranges(context.get(), 1, nullptr) == SLUICE_OK);
  CHECK(call_all() == "(kv_append_f16_f16 t5 h2 d128/64 slots)(kv_append_f16_f16 t5 h2 d128/64 table)"
                      "(merge_states_f32_f16 n3 t5 h2 d64)");
}

TEST_CASE("a range is closed when its call fails, and a refusal opens none", "[ranges]") {
  MixedPlan mixed;
  mixed.set_ranges(1);
  take();
  mixed.hip.failing["hipModuleLaunchKernel"] = 1;
  CHECK(mixed.run() == SLUICE_HIP);
  CHECK(take() == "(attn_fwd_f16_d128_q16_kv16_w1_decode b2 q4 kv7 h8/2 causal)");
  mixed.call.args.batch = -1;
  CHECK(mixed.run() == SLUICE_INVALID_ARGUMENT);
  CHECK(take() == "");
}

TEST_CASE("ranges are on or off", "[ranges]") {
  const ContextHandle context = target_context();
  Error error;
  check_refusal(sluice_set_ranges(context.get(), 2, &error), error, SLUICE_INVALID_ARGUMENT, "enabled",
                "enabled is 2; it must be 0 or 1");
  check_refusal(sluice_set_ranges(nullptr, 1, &error), error, SLUICE_INVALID_ARGUMENT, "context", "NULL");
}

TEST_CASE("a plan counts its runs, and the launches of each kernel", "[counters]") {
  MixedPlan mixed;
  const auto counted = [&] {
    sluice_counters counters;
    sluice_counters_init(&counters, sizeof counters);
    REQUIRE(sluice_plan_counters(mixed.plan.get(), &counters, nullptr) == SLUICE_OK);
    return std::vector<uint64_t>{counters.runs,          counters.refused,        counters.launches,
                                 counters.main_launches, counters.other_launches, counters.merge_launches};
  };
  using Numbers = std::vector<uint64_t>;
  CHECK(counted() == Numbers{0, 0, 0, 0, 0, 0});
  REQUIRE(mixed.run() == SLUICE_OK); // few rows, merged
  CHECK(counted() == Numbers{1, 0, 1, 0, 1, 1});
  mixed.call.args.rows.max_len = 300;
  REQUIRE(mixed.run() == SLUICE_OK);
  REQUIRE(mixed.run() == SLUICE_OK);
  CHECK(counted() == Numbers{3, 0, 3, 2, 1, 1});
  mixed.call.args.rows.lengths = reinterpret_cast<const int32_t *>(device_memory); // both, and the merge
  REQUIRE(mixed.run() == SLUICE_OK);
  CHECK(counted() == Numbers{4, 0, 5, 3, 2, 2});
  mixed.call.args.batch = -1;
  CHECK(mixed.run() == SLUICE_INVALID_ARGUMENT);
  CHECK(counted() == Numbers{4, 1, 5, 3, 2, 2});
  // A failure of HIP counts, and so do the launches before it.
  mixed.call.args.batch = 2;
  mixed.launch.signal_event = FakeHip::handle(13);
  mixed.hip.failing["hipEventRecord"] = 1;
  CHECK(mixed.run() == SLUICE_HIP);
  CHECK(counted() == Numbers{4, 2, 7, 4, 3, 3});
  mixed.hip.failing["hipModuleLaunchKernel"] = 1;
  CHECK(mixed.run() == SLUICE_HIP);
  CHECK(counted() == Numbers{4, 3, 7, 4, 3, 3});
  // An error struct of no size is refused as well.
  sluice_error unsized = {};
  CHECK(run(mixed.plan, mixed.call, &mixed.launch, &unsized) == SLUICE_INVALID_ARGUMENT);
  CHECK(counted() == Numbers{4, 4, 7, 4, 3, 3});
  // Each plan has its own.
  const PlanHandle other = make_plan(mixed.context, mixed.call);
  sluice_counters counters;
  sluice_counters_init(&counters, sizeof counters);
  CHECK(sluice_plan_counters(other.get(), &counters, nullptr) == SLUICE_OK);
  CHECK(counters.runs + counters.refused + counters.launches == 0);
  Error error;
  check_refusal(sluice_plan_counters(nullptr, &counters, &error), error, SLUICE_INVALID_ARGUMENT, "plan",
                "NULL");
  check_refusal(sluice_plan_counters(other.get(), nullptr, &error), error, SLUICE_INVALID_ARGUMENT,
                "counters", "NULL");
}

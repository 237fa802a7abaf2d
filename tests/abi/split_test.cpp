//===- split_test.cpp - which kernels a plan uses, and how keys are divided -----------------------------===//
#include "split_fixture.h"

using namespace sluice::test;
using sluice::package::AttentionKernargs;

namespace {

sluice_support supported(const ContextHandle &context, const AttentionCall &call) {
  sluice_support support;
  sluice_support_init(&support, sizeof support);
  Error error;
  const sluice_status status = sluice_attention_support(context.get(), &call.attention, &support, &error);
  INFO(error.message);
  REQUIRE(status == SLUICE_OK);
  return support;
}

struct Launch {
  std::string kernel;
  std::array<uint32_t, 3> grid;
};
void remember(const sluice_trace_record *record, void *user) {
  if (record->event != SLUICE_TRACE_RUN) return;
  static_cast<std::vector<Launch> *>(user)->push_back(
      {record->kernel, {record->grid[0], record->grid[1], record->grid[2]}});
}

constexpr const char *prefill = "attn_fwd_f16_d128_q256_kv64_w8";
constexpr const char *decode = "attn_fwd_f16_d128_q16_kv16_w1_decode";
constexpr const char *merge = "merge_states_f32_f16";

} // namespace

// runtime/choice_test.cpp tests which plan is cheapest. This file tests that workspace, grid and kernel
// agree.
TEST_CASE("few rows go to a decode kernel, and their keys to several workgroups", "[split]") {
  const ContextHandle context = split_context(SLUICE_DEVICE_TARGET);
  AttentionCall call = decode_call();
  const uint64_t rows = 2 * 8, split_bytes = rows * (128 + 1) * 4;
  const uint64_t bytes = supported(context, call).workspace_bytes, splits = bytes / split_bytes;
  CHECK(supported(context, call).kernel == std::string(decode));
  CHECK(bytes == splits * split_bytes);
  CHECK(splits >= 8); // 4 workgroups without splits, on 304 compute units
  SECTION("enough sequences need no splits") {
    call.attention.bounds.batch = 304 * 50;
    CHECK(supported(context, call).workspace_bytes == 0);
  }
  SECTION("some do with fewer") {
    call.attention.bounds.batch = 16; // 32 workgroups
    CHECK(supported(context, call).workspace_bytes < splits * 8 * split_bytes);
    CHECK(supported(context, call).workspace_bytes > 8 * split_bytes);
  }
  SECTION("a ceiling makes fewer splits") {
    call.attention.workspace_ceiling_bytes = 3 * rows * (128 + 1) * 4 + 5;
    CHECK(supported(context, call).workspace_bytes == 3 * rows * (128 + 1) * 4);
    call.attention.workspace_ceiling_bytes = 1;
    CHECK(supported(context, call).workspace_bytes == 0);
  }
  SECTION("without bounds there is one split") {
    for (int32_t sluice_bounds::*bound : {&sluice_bounds::batch, &sluice_bounds::kv_len}) {
      AttentionCall open = call;
      open.attention.bounds.*bound = 0;
      CHECK(supported(context, open).workspace_bytes == 0);
      CHECK(supported(context, open).kernel == std::string(decode));
    }
  }
  SECTION("with batch invariance four rows of four heads fill 16; more go to a prefill kernel") {
    call.attention.flags = SLUICE_ATTENTION_BATCH_INVARIANT;
    call.attention.bounds.q_len = 4;
    CHECK(supported(context, call).kernel == std::string(decode));
    call.attention.bounds.q_len = 5;
    CHECK(supported(context, call).kernel == std::string("attn_fwd_f16_d128_q128_kv64_w4"));
  }
  SECTION("otherwise five do with few workgroups, and a prompt of many sequences does not") {
    call.attention.bounds.q_len = 5;
    CHECK(supported(context, call).kernel == std::string("attn_fwd_f16_d128_q64_kv16_w4_decode"));
    call.attention.bounds.q_len = 4096;
    call.attention.bounds.batch = 64;
    CHECK(supported(context, call).kernel == std::string(prefill));
  }
  SECTION("many heads of a group take a higher decode tile, without bounds of keys") {
    call.attention.q_heads = 64;
    call.attention.bounds.kv_len = 0;
    CHECK(supported(context, call).kernel == std::string("attn_fwd_f16_d128_q64_kv16_w4_decode"));
  }
}

TEST_CASE("a batch-invariant plan splits keys at fixed places", "[split]") {
  const ContextHandle context = split_context(SLUICE_DEVICE_TARGET);
  AttentionCall call = decode_call();
  call.attention.flags = SLUICE_ATTENTION_BATCH_INVARIANT;
  for (const int32_t batch : {1, 100}) {
    for (const int32_t keys : {1, 2048, 2049, 100000}) {
      call.attention.bounds.batch = batch;
      call.attention.bounds.kv_len = keys;
      const uint64_t splits = (uint64_t(keys) + 2047) / 2048;
      const uint64_t bytes = splits == 1 ? 0 : splits * uint64_t(batch) * 8 * (128 + 1) * 4;
      CHECK(supported(context, call).workspace_bytes == bytes);
    }
  }
  Error error;
  call.attention.workspace_ceiling_bytes = 1000;
  check_refusal(query(context, call, &error), error, SLUICE_UNSUPPORTED, "workspace_ceiling_bytes",
                "nearest supported is ");
  call.attention.workspace_ceiling_bytes = 0;
  for (const auto &[bound, field] : {std::pair{&sluice_bounds::batch, "bounds.batch"},
                                     std::pair{&sluice_bounds::kv_len, "bounds.kv_len"}}) {
    AttentionCall open = call;
    open.attention.bounds.*bound = 0;
    check_refusal(query(context, open, &error), error, SLUICE_INVALID_ARGUMENT, field, "fixed places");
  }
}

TEST_CASE("a run launches the kernels that its sequences may need, and no others", "[split]") {
  FakeHip hip;
  const ContextHandle context = split_context(SLUICE_DEVICE_HIP);
  std::vector<Launch> launches;
  sluice_set_trace(context.get(), remember, &launches, nullptr);
  std::vector<std::byte> memory(1 << 24);
  const auto kernels_of = [&](const AttentionCall &call) {
    const PlanHandle plan = make_plan(context, call);
    sluice_launch launch = with_workspace();
    launch.signal_event = FakeHip::handle(13);
    launches.clear();
    hip.forget_calls();
    Error error;
    const sluice_status status = run(plan, call, &launch, &error);
    INFO(error.message);
    REQUIRE(status == SLUICE_OK);
    // The signal marks the end of all kernels.
    CHECK(hip.count("hipEventRecord") == 1);
    CHECK(hip.call_names().back() == "hipEventRecord");
    std::vector<std::string> names;
    for (const Launch &one : launches)
      names.push_back(one.kernel);
    return names;
  };
  using Names = std::vector<std::string>;
  AttentionCall call = decode_call();
  call.attention.bounds.q_len = 4096;
  call.attention.bounds.batch = 8;
  call.attention.workspace_ceiling_bytes =
      7 * 8 * 4 * 8 * (128 + 1) * 4; // of four rows: the decode kernel takes no more
  call.args.rows.max_len = 5;
  CHECK(kernels_of(call) == Names{prefill});
  CHECK(hip.launch.kernargs.min_rows == 5);
  CHECK(hip.launch.kernargs.max_rows == INT32_MAX);
  call.args.rows.max_len = 4;
  CHECK(kernels_of(call) == Names{decode, merge});
  const uint64_t bytes = supported(context, call).workspace_bytes;
  CHECK(launches[0].grid == std::array<uint32_t, 3>{uint32_t(2 * bytes / (8 * 4 * 8 * (128 + 1) * 4)), 1, 2});
  SECTION("rows that only the device knows") {
    call.args.rows.max_len = 300;
    call.args.q.stride[0] = call.args.o.stride[0] = 300 * call.args.q.stride[1];
    call.lse.stride[0] = 300 * 8;
    call.lse.stride[2] = 300;
    call.args.rows.lengths = reinterpret_cast<const int32_t *>(device_memory);
    CHECK(kernels_of(call) == Names{prefill, decode, merge});
    CHECK(launches[1].grid[1] == 1); // four rows of four heads, however many others have
    CHECK(hip.attention.kernargs.split_tiles == 0);
    CHECK(hip.attention.kernargs.min_split_tiles > 1);
    AttentionCall rows = call;
    make_ragged(rows);
    rows.args.rows.lengths = nullptr;
    CHECK(kernels_of(rows) == Names{prefill, decode, merge});
    call.attention.bounds.kv_len = 0; // too few bounds for an estimate
    CHECK(kernels_of(call) == Names{prefill, decode});
    CHECK(hip.launch.kernargs.min_rows == 0);
    CHECK(hip.launch.kernargs.max_rows == 4);
    CHECK(hip.launch.kernargs.splits == 1);
    CHECK((hip.launch.kernargs.score_flags & sluice::package::score_partial) == 0);
  }
}

TEST_CASE("a batch-invariant run has splits of 2048 keys", "[split]") {
  FakeHip hip;
  const ContextHandle context = split_context(SLUICE_DEVICE_HIP);
  AttentionCall call = decode_call();
  call.attention.flags = SLUICE_ATTENTION_BATCH_INVARIANT;
  const PlanHandle plan = make_plan(context, call);
  call.args.rows.max_len = 1;
  sluice_launch launch = with_workspace();
  launch.workspace_bytes = supported(context, call).workspace_bytes;
  REQUIRE(run(plan, call, &launch) == SLUICE_OK);
  CHECK(hip.attention.kernargs.splits == 4);
  CHECK(hip.attention.kernargs.split_tiles == 2048 / 16);
  CHECK(hip.attention.kernargs.min_split_tiles == 1);
}

TEST_CASE("a chunk over a long cache takes a prefill kernel in splits, and O as F32 its merge", "[split]") {
  FakeHip hip;
  const ContextHandle context = split_context(SLUICE_DEVICE_HIP);
  std::vector<Launch> launches;
  sluice_set_trace(context.get(), remember, &launches, nullptr);
  AttentionCall call = good_call();
  call.format.kv_heads = 1;
  call.attention.bounds.batch = 1;
  call.attention.bounds.q_len = 512;
  call.attention.bounds.kv_len = 131072;
  call.args.batch = 1;
  call.args.rows.max_len = 500;
  call.keys[0].rows.max_len = 131072;
  call.args.q.stride[0] = call.args.o.stride[0] = 500 * call.args.q.stride[1];
  call.lse.stride[0] = 500 * 8;
  call.lse.stride[2] = 500;
  sluice_launch launch = with_workspace();
  for (const bool f32 : {false, true}) {
    call.attention.o.type = f32 ? SLUICE_F32 : SLUICE_F16;
    const PlanHandle plan = make_plan(context, call);
    launch.workspace_bytes = supported(context, call).workspace_bytes;
    CHECK(launch.workspace_bytes != 0);
    launches.clear();
    REQUIRE(run(plan, call, &launch) == SLUICE_OK);
    REQUIRE(launches.size() == 2);
    CHECK_THAT(launches[0].kernel, Catch::EndsWith("_q256_kv64_w8") || Catch::EndsWith("_q128_kv64_w4"));
    CHECK(launches[1].kernel == (f32 ? "merge_states_f32_f32" : "merge_states_f32_f16"));
    const AttentionKernargs &kernargs = hip.attention.kernargs;
    const uint32_t splits = kernargs.splits, tile_q = hip.attention.block[0] / 2;
    CHECK(splits > 1);
    CHECK(launches[0].grid == std::array<uint32_t, 3>{splits, (500 * 8 + tile_q - 1) / tile_q, 1});
    CHECK(launch.workspace_bytes == uint64_t{splits} * 512 * 8 * (128 + 1) * 4);
    CHECK(kernargs.min_rows == 0);
    CHECK(kernargs.max_rows == INT32_MAX);
    CHECK(kernargs.group == 8);
    CHECK(kernargs.o == uint64_t{1} << 32);
    CHECK(kernargs.score_flags ==
          (sluice::package::score_partial | (f32 ? sluice::package::score_o_f32 : 0u)));
  }
  SECTION("without splits O as F32 is the kernel's own") {
    call.attention.workspace_ceiling_bytes = 1;
    const PlanHandle plan = make_plan(context, call);
    launches.clear();
    REQUIRE(run(plan, call, &launch) == SLUICE_OK);
    CHECK(launches.size() == 1);
    CHECK(hip.attention.kernargs.o == reinterpret_cast<uint64_t>(call.args.o.data));
    CHECK(hip.attention.kernargs.score_flags == sluice::package::score_o_f32);
  }
}

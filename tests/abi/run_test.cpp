//===- run_test.cpp - runs: launches, and every call that is refused ------------------------------------===//
#include "fixture.h"

#include <cmath>
#include <cstring>
#include <functional>
#include <limits>

using namespace sluice::test;

namespace {

struct Refusal {
  std::function<void(AttentionCall &, sluice_launch &)> change;
  sluice_status status;
  const char *field;
  const char *message;
};

constexpr float infinity = std::numeric_limits<float>::infinity();
const sluice_dependency no_kind = {0, 0, FakeHip::handle(1), nullptr};
const sluice_dependency later_kind = {3, 0, FakeHip::handle(1), nullptr};
const sluice_dependency reserved_set = {SLUICE_DEPENDS_ON_EVENT, 1, FakeHip::handle(1), nullptr};
const sluice_dependency no_event = {SLUICE_DEPENDS_ON_STREAM, 0, nullptr, FakeHip::handle(2)};
const sluice_dependency event_with_stream = {SLUICE_DEPENDS_ON_EVENT, 0, FakeHip::handle(1),
                                             FakeHip::handle(2)};

#define SLUICE_SET(member, value) [](AttentionCall &call, sluice_launch &) { call.member = value; }
#define SLUICE_LAUNCH(...) [](AttentionCall &, sluice_launch &launch) { __VA_ARGS__; }
#define SLUICE_DEPENDENCY(dependency)                                                                        \
  SLUICE_LAUNCH(launch.dependencies = &dependency; launch.dependency_count = 1)

const Refusal refusals[] = {
    // Extents: negative, beyond the bounds, beyond the grid.
    {SLUICE_SET(args.batch, -1), SLUICE_INVALID_ARGUMENT, "batch", "batch is -1; it must not be negative"},
    {SLUICE_SET(args.rows.max_len, std::numeric_limits<int32_t>::min()), SLUICE_INVALID_ARGUMENT,
     "rows.max_len", "rows.max_len is -2147483648"},
    {SLUICE_SET(keys[0].rows.max_len, -7), SLUICE_INVALID_ARGUMENT, "keys[0].rows.max_len",
     "keys[0].rows.max_len is -7"},
    {SLUICE_SET(args.batch, 65536), SLUICE_UNSUPPORTED, "batch", "batch is 65536; nearest supported: 65535"},
    {SLUICE_SET(args.rows.max_len, 65535 * 64 + 1), SLUICE_UNSUPPORTED, "rows.max_len",
     "nearest supported: 4194240, which is 65535 tiles of 256 rows"},
    {SLUICE_SET(keys[0].rows.max_len, 2147483647 - 515), SLUICE_UNSUPPORTED, "keys[0].rows.max_len",
     "nearest supported: 2147483131"},
    // Scale.
    {SLUICE_SET(scale, infinity), SLUICE_INVALID_ARGUMENT, "scale", "scale is inf; it must be finite"},
    {SLUICE_SET(scale, -infinity), SLUICE_INVALID_ARGUMENT, "scale", "scale is -inf"},
    {SLUICE_SET(scale, std::nanf("")), SLUICE_INVALID_ARGUMENT, "scale", "scale is nan"},
    {SLUICE_SET(scale, 3e38f), SLUICE_INVALID_ARGUMENT, "scale", "scale * log2(e) must be finite"},
    {SLUICE_SET(scale, -0.5f), SLUICE_UNSUPPORTED, "scale",
     "scale is -0.5; it must not be negative; nearest supported: 0"},
    // Pointers.
    {SLUICE_SET(args.q.data, nullptr), SLUICE_INVALID_ARGUMENT, "q.data", "q.data is NULL"},
    {SLUICE_SET(kv.k.data, nullptr), SLUICE_INVALID_ARGUMENT, "keys[0].kv.k.data",
     "keys[0].kv.k.data is NULL"},
    {SLUICE_SET(kv.v.data, nullptr), SLUICE_INVALID_ARGUMENT, "keys[0].kv.v.data",
     "keys[0].kv.v.data is NULL"},
    {SLUICE_SET(args.o.data, nullptr), SLUICE_INVALID_ARGUMENT, "o.data", "o.data is NULL"},
    {SLUICE_SET(lse.data, nullptr), SLUICE_INVALID_ARGUMENT, "lse.data",
     "lse.data is NULL, but the problem asks for it"},
    {SLUICE_SET(args.q.data, device_memory + 8), SLUICE_INVALID_ARGUMENT, "q.data",
     "it must be aligned to 16 bytes"},
    {SLUICE_SET(kv.k.data, device_memory + 2), SLUICE_INVALID_ARGUMENT, "keys[0].kv.k.data",
     "it must be aligned to 16 bytes"},
    {SLUICE_SET(kv.v.data, device_memory + 1), SLUICE_INVALID_ARGUMENT, "keys[0].kv.v.data",
     "it must be aligned to 16 bytes"},
    {SLUICE_SET(args.o.data, device_memory + 4), SLUICE_INVALID_ARGUMENT, "o.data",
     "it must be aligned to 16 bytes"},
    {SLUICE_SET(lse.data, device_memory + 2), SLUICE_INVALID_ARGUMENT, "lse.data",
     "it must be aligned to 4 bytes"},
    // Strides.
    {SLUICE_SET(args.q.stride[3], 2), SLUICE_INVALID_ARGUMENT, "q.stride[3]",
     "q.stride[3] is 2; it must be 1"},
    {SLUICE_SET(kv.k.stride[3], 0), SLUICE_INVALID_ARGUMENT, "keys[0].kv.k.stride[3]",
     "keys[0].kv.k.stride[3] is 0; it must be 1"},
    {SLUICE_SET(kv.v.stride[3], 8), SLUICE_INVALID_ARGUMENT, "keys[0].kv.v.stride[3]", "it must be 1"},
    {SLUICE_SET(args.o.stride[3], -1), SLUICE_INVALID_ARGUMENT, "o.stride[3]", "it must be 1"},
    {SLUICE_SET(args.q.stride[0], -8), SLUICE_INVALID_ARGUMENT, "q.stride[0]",
     "q.stride[0] is -8; it must not be negative"},
    {SLUICE_SET(kv.k.stride[2], -128), SLUICE_INVALID_ARGUMENT, "keys[0].kv.k.stride[2]",
     "it must not be negative"},
    {SLUICE_SET(lse.stride[1], -1), SLUICE_INVALID_ARGUMENT, "lse.stride[1]", "it must not be negative"},
    {SLUICE_SET(args.q.stride[1], 1028), SLUICE_INVALID_ARGUMENT, "q.stride[1]",
     "it must be a multiple of 8"},
    {SLUICE_SET(kv.v.stride[2], 129), SLUICE_INVALID_ARGUMENT, "keys[0].kv.v.stride[2]",
     "it must be a multiple of 8"},
    {SLUICE_SET(kv.k.stride[0], int64_t{1} << 62), SLUICE_INVALID_ARGUMENT, "keys[0].kv.k.stride",
     "beyond the address space"},
    {SLUICE_SET(kv.k.stride[1], int64_t{1} << 47), SLUICE_INVALID_ARGUMENT, "keys[0].kv.k.stride",
     "beyond the address space"},
    {SLUICE_SET(kv.v.data, reinterpret_cast<void *>(uint64_t{1} << 63)), SLUICE_INVALID_ARGUMENT,
     "keys[0].kv.v.stride", "beyond the address space"},
    {SLUICE_SET(args.q.stride[1], int64_t{1} << 61), SLUICE_INVALID_ARGUMENT, "q.stride[1]",
     "beyond 2^63 elements"},
    {SLUICE_SET(args.o.stride[1], 0), SLUICE_INVALID_ARGUMENT, "o.stride[1]",
     "elements of an output would overlap"},
    {SLUICE_SET(args.o.stride[2], 120), SLUICE_INVALID_ARGUMENT, "o.stride[2]", "would overlap"},
    {SLUICE_SET(args.o.stride[0], 4 * 8 * 128), SLUICE_INVALID_ARGUMENT, "o.stride[0]", "would overlap"},
    {SLUICE_SET(lse.stride[0], 0), SLUICE_INVALID_ARGUMENT, "lse.stride[0]", "would overlap"},
    {SLUICE_SET(lse.stride[2], 4), SLUICE_INVALID_ARGUMENT, "lse.stride[2]", "would overlap"},
    // Launch.
    {SLUICE_LAUNCH(launch.workspace_bytes = 16), SLUICE_INVALID_ARGUMENT, "workspace",
     "workspace is NULL, but"},
    {SLUICE_LAUNCH(launch.workspace = device_memory + 8; launch.workspace_bytes = 16),
     SLUICE_INVALID_ARGUMENT, "workspace", "it must be aligned to 256 bytes"},
    {SLUICE_LAUNCH(launch.dependency_count = 2), SLUICE_INVALID_ARGUMENT, "dependencies",
     "dependency_count is 2"},
    {SLUICE_DEPENDENCY(no_kind), SLUICE_INVALID_ARGUMENT, "dependencies[0].kind",
     "dependencies[0].kind is 0"},
    {SLUICE_DEPENDENCY(later_kind), SLUICE_NEWER_STRUCT, "dependencies[0].kind",
     "the last value that this version knows is SLUICE_DEPENDS_ON_STREAM (2)"},
    {SLUICE_DEPENDENCY(reserved_set), SLUICE_NEWER_STRUCT, "dependencies[0].reserved", "reserved is 1"},
    {SLUICE_DEPENDENCY(no_event), SLUICE_INVALID_ARGUMENT, "dependencies[0].event", "event is NULL"},
    {SLUICE_DEPENDENCY(event_with_stream), SLUICE_INVALID_ARGUMENT, "dependencies[0].stream",
     "it must be NULL"},
};

} // namespace

TEST_CASE("a run is one launch with packed arguments", "[run]") {
  FakeHip hip;
  const ContextHandle context = fake_context();
  const PlanHandle plan = make_plan(context, good_call());
  const AttentionCall call = good_call();
  const sluice_launch launch = good_launch();
  hip.forget_calls();
  Error error;
  const sluice_status status = run(plan, call, &launch, &error);
  INFO(error.message);
  REQUIRE(status == SLUICE_OK);
  REQUIRE(hip.call_names() == std::vector<std::string>{"hipModuleLaunchKernel"});

  const FakeHip::Launch &seen = hip.launch;
  CHECK(seen.function == FakeHip::handle(1));
  CHECK(seen.grid[0] == 2);
  CHECK(seen.grid[1] == 1);
  CHECK(seen.grid[2] == 2);
  CHECK(seen.block[0] == 512);
  CHECK(seen.block[1] == 1);
  CHECK(seen.block[2] == 1);
  CHECK(seen.dynamic_lds_bytes == 0);
  CHECK(seen.stream == launch.stream);
  REQUIRE(seen.kernarg_bytes == sizeof seen.kernargs);
  const sluice::package::AttentionKernargs &k = seen.kernargs;
  CHECK(k.q == reinterpret_cast<uint64_t>(call.args.q.data));
  CHECK(k.k == reinterpret_cast<uint64_t>(call.kv.k.data));
  CHECK(k.v == reinterpret_cast<uint64_t>(call.kv.v.data));
  CHECK(k.o == reinterpret_cast<uint64_t>(call.args.o.data));
  CHECK(k.lse == reinterpret_cast<uint64_t>(call.lse.data));
  CHECK(k.scale_log2e == 0.36067376f);
  CHECK(k.q_len == 5);
  CHECK(k.kv_len == 7);
  CHECK(k.window_right == 0);
  CHECK(k.group == 4);
}

TEST_CASE("a run without a launch is one on the default stream", "[run]") {
  FakeHip hip;
  const PlanHandle plan = make_plan(fake_context(), good_call());
  const AttentionCall call = good_call();
  hip.forget_calls();
  hip.launch.stream = FakeHip::handle(5);
  REQUIRE(run(plan, call) == SLUICE_OK);
  CHECK(hip.call_names() == std::vector<std::string>{"hipModuleLaunchKernel"});
  CHECK(hip.launch.stream == nullptr);
}

TEST_CASE("each stride reaches its own argument", "[run]") {
  FakeHip hip;
  const ContextHandle context = fake_context();
  const PlanHandle plan = make_plan(context, good_call());
  AttentionCall call = good_call();
  sluice_tensor *tensors[] = {&call.args.q, &call.kv.k, &call.kv.v, &call.args.o};
  for (int tensor = 0; tensor < 4; ++tensor) {
    for (int dim = 0; dim < 3; ++dim)
      tensors[tensor]->stride[dim] = (int64_t{1} << (20 + 4 * dim)) + 8 * (10 * tensor + dim + 1);
  }
  for (int dim = 0; dim < 3; ++dim)
    call.lse.stride[dim] = (1000 << (4 * dim)) + dim;
  const sluice_launch launch = good_launch();
  Error error;
  const sluice_status status = run(plan, call, &launch, &error);
  INFO(error.message);
  REQUIRE(status == SLUICE_OK);
  const sluice::package::AttentionKernargs &k = hip.launch.kernargs;
  const int64_t passed[5][3] = {{k.q_batch_stride, k.q_token_stride, k.q_head_stride},
                                {k.k_batch_stride, k.k_token_stride, k.k_head_stride},
                                {k.v_batch_stride, k.v_token_stride, k.v_head_stride},
                                {k.o_batch_stride, k.o_token_stride, k.o_head_stride},
                                {k.lse_batch_stride, k.lse_token_stride, k.lse_head_stride}};
  for (int dim = 0; dim < 3; ++dim) {
    for (int tensor = 0; tensor < 4; ++tensor)
      CHECK(passed[tensor][dim] == tensors[tensor]->stride[dim]);
    CHECK(passed[4][dim] == call.lse.stride[dim]);
  }
}

TEST_CASE("mask, scale and tiles become what the kernel expects", "[run]") {
  FakeHip hip;
  const ContextHandle context = fake_context();
  const sluice_launch launch = good_launch();
  const auto launched = [&](const AttentionCall &call) {
    const PlanHandle plan = make_plan(context, call);
    Error error;
    const sluice_status status = run(plan, call, &launch, &error);
    INFO(error.message);
    REQUIRE(status == SLUICE_OK);
    return hip.launch;
  };
  AttentionCall call = good_call();
  SECTION("causal at the bottom right, more queries than keys") {
    call.args.rows.max_len = 65; // of 4 heads: 260 rows
    call.args.o.stride[0] = call.args.q.stride[0] = 65 * 8 * 128;
    call.lse.stride[0] = 8 * 65;
    call.lse.stride[2] = 65;
    const auto seen = launched(call);
    CHECK(seen.kernargs.window_right == 0);
    CHECK(seen.kernargs.score_flags == 0);
    CHECK(seen.grid[1] == 2);
  }
  SECTION("causal at the top left") {
    call.mask.alignment = SLUICE_TOP_LEFT;
    CHECK(launched(call).kernargs.score_flags == sluice::package::score_top_left);
  }
  SECTION("not causal: every key is visible") {
    call.mask.flags = 0;
    CHECK(launched(call).kernargs.window_right == sluice::package::kernarg_no_window);
  }
  SECTION("without a scale it is 1 / sqrt(head_dim_qk)") {
    call.args.scale = nullptr;
    const auto seen = launched(call);
    CHECK(seen.kernargs.scale_log2e == float(std::log2(std::exp(1.0)) / std::sqrt(128.0)));
  }
  SECTION("without LSE its pointer is null") {
    call.attention.lse = SLUICE_LSE_NONE;
    call.lse = {};
    CHECK(launched(call).kernargs.lse == 0);
  }
  SECTION("a short problem has the low tile") {
    call.attention.bounds.q_len = 32;
    const auto seen = launched(call);
    CHECK(seen.block[0] == 256);
    CHECK(hip.functions.back() == "attn_fwd_f16_d128_q128_kv64_w4");
  }
  SECTION("inputs may be broadcast with stride 0") {
    call.args.q.stride[0] = call.kv.k.stride[0] = call.kv.v.stride[0] = 0;
    call.kv.k.stride[2] = 0;
    CHECK(launched(call).kernargs.k_batch_stride == 0);
  }
}

TEST_CASE("the device's compute units decide which tiles a run halves", "[run]") {
  FakeHip hip;
  hip.attributes[63] = 6; // compute units
  const ContextHandle context = fake_context();
  const sluice_launch launch = good_launch();
  AttentionCall call = good_call();
  call.attention.flags = SLUICE_ATTENTION_BATCH_INVARIANT; // so that nothing else depends on them
  call.attention.bounds.batch = 2;
  call.attention.bounds.kv_len = 7;
  call.args.rows.max_len = 65; // of 4 heads: 260 rows
  call.args.o.stride[0] = call.args.q.stride[0] = 65 * 8 * 128;
  call.lse.stride[0] = 8 * 65;
  call.lse.stride[2] = 65;
  const auto halved_tiles = [&] {
    const PlanHandle plan = make_plan(context, call);
    Error error;
    const sluice_status status = run(plan, call, &launch, &error);
    INFO(error.message);
    REQUIRE(status == SLUICE_OK);
    CHECK(hip.functions.back() == "attn_fwd_f16_d128_q256_kv64_w8");
    CHECK(hip.launch.grid[2] == 2 + uint32_t(hip.launch.kernargs.halved_tiles));
    return hip.launch.kernargs.halved_tiles;
  };
  CHECK(halved_tiles() == 0); // causal
  call.mask.flags = 0;
  CHECK(halved_tiles() == 1); // the last 2 of 8 workgroups
}

TEST_CASE("the group of query heads divides every head exactly", "[run]") {
  FakeHip hip;
  const ContextHandle context = fake_context();
  AttentionCall call = good_call();
  const sluice_launch launch = good_launch();
  for (const int32_t ratio : {1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 31, 48, 64, 128, 1000, 32768}) {
    call.mask.flags = 0;
    call.attention.lse = SLUICE_LSE_NONE;
    call.lse = {};
    call.format.kv_heads = 32768 / ratio;
    call.attention.q_heads = call.format.kv_heads * ratio;
    call.args.q.stride[1] = call.args.o.stride[1] = int64_t{128} * call.attention.q_heads;
    call.args.q.stride[0] = call.args.o.stride[0] = 5 * call.args.q.stride[1];
    const PlanHandle plan = make_plan(context, call);
    REQUIRE(run(plan, call, &launch) == SLUICE_OK);
    const sluice::package::AttentionKernargs &k = hip.launch.kernargs;
    CHECK(k.group == uint32_t(ratio));
    for (int32_t head = 0; head < call.attention.q_heads; ++head) {
      if (((2 * uint64_t(head) * k.group_magic) >> 32) >> k.group_shift != uint64_t(head / ratio))
        FAIL("ratio " << ratio << ", head " << head);
    }
  }
}

TEST_CASE("every call that breaks a rule is refused by name, and enqueues nothing", "[run]") {
  FakeHip hip;
  const ContextHandle context = fake_context();
  const PlanHandle plan = make_plan(context, good_call());
  hip.forget_calls();
  for (const Refusal &refusal : refusals) {
    AttentionCall call = good_call();
    sluice_launch launch = good_launch();
    refusal.change(call, launch);
    Error error;
    check_refusal(run(plan, call, &launch, &error), error, refusal.status, refusal.field, refusal.message);
  }
  CHECK(hip.call_count == 0);
  const AttentionCall call = good_call();
  const sluice_launch launch = good_launch();
  Error error;
  check_refusal(sluice_attention_run(nullptr, &call.args, &launch, &error), error, SLUICE_INVALID_ARGUMENT,
                "plan", "plan is NULL");
}

TEST_CASE("a call beyond the bounds of its plan is refused", "[run]") {
  FakeHip hip;
  const ContextHandle context = fake_context();
  const sluice_launch launch = good_launch();
  AttentionCall call = good_call(); // batch 2, 5 rows, 7 keys
  const auto run_with = [&](const AttentionCall &bounded, Error &error) {
    return run(make_plan(context, bounded), bounded, &launch, &error);
  };
  call.attention.bounds.batch = 2;
  call.attention.bounds.q_len = 5;
  call.attention.bounds.kv_len = 7;
  call.attention.bounds.q_rows = 10;
  Error error;
  CHECK(run_with(call, error) == SLUICE_OK);
  hip.forget_calls();
  AttentionCall less = call;
  less.attention.bounds.batch = 1;
  check_refusal(run_with(less, error), error, SLUICE_INVALID_ARGUMENT, "batch",
                "batch is 2; the problem's bounds.batch is 1");
  less = call;
  less.attention.bounds.q_len = 4;
  check_refusal(run_with(less, error), error, SLUICE_INVALID_ARGUMENT, "rows.max_len",
                "the problem's bounds.q_len is 4");
  less = call;
  less.attention.bounds.kv_len = 6;
  check_refusal(run_with(less, error), error, SLUICE_INVALID_ARGUMENT, "keys[0].rows.max_len",
                "the problem's bounds.kv_len is 6");
  less = call;
  less.attention.bounds.q_rows = 9;
  check_refusal(run_with(less, error), error, SLUICE_INVALID_ARGUMENT, "batch",
                "batch * rows.max_len is 10; the problem's bounds.q_rows is 9");
  CHECK(hip.count("hipModuleLaunchKernel") == 0);
}

TEST_CASE("an LSE that the plan does not write is refused", "[run]") {
  FakeHip hip;
  const ContextHandle context = fake_context();
  AttentionCall call = good_call();
  call.attention.lse = SLUICE_LSE_NONE;
  Error error;
  check_refusal(run(make_plan(context, call), call, nullptr, &error), error, SLUICE_INVALID_ARGUMENT,
                "lse.data", "lse.data is given, but the problem writes no LSE");
}

TEST_CASE("rows of K and V that are too far apart are refused", "[run]") {
  FakeHip hip;
  const ContextHandle context = fake_context();
  const sluice_launch launch = good_launch();
  for (const int32_t head_dim : {64, 128}) {
    for (const bool is_v : {false, true}) {
      AttentionCall call = good_call();
      call.format.head_dim_qk = call.format.head_dim_v = head_dim;
      const PlanHandle plan = make_plan(context, call);
      int64_t &stride = is_v ? call.kv.v.stride[1] : call.kv.k.stride[1];
      stride = (int64_t{1} << 25) - 8;
      CHECK(run(plan, call, &launch) == SLUICE_OK);
      stride = int64_t{1} << 25;
      Error error;
      check_refusal(run(plan, call, &launch, &error), error, SLUICE_UNSUPPORTED,
                    is_v ? "keys[0].kv.v.stride[1]" : "keys[0].kv.k.stride[1]",
                    "nearest supported: 33554424");
    }
  }
}

TEST_CASE("a plan of a target cannot run", "[run]") {
  const PlanHandle plan = make_plan(target_context(), good_call());
  const AttentionCall call = good_call();
  const sluice_launch launch = good_launch();
  Error error;
  check_refusal(run(plan, call, &launch, &error), error, SLUICE_NO_DEVICE, "plan",
                "plan was made for the target gfx942, which has no device");
}

TEST_CASE("dependencies are waited for and the signal is recorded, in order", "[run]") {
  FakeHip hip;
  const ContextHandle context = fake_context();
  const PlanHandle plan = make_plan(context, good_call());
  const AttentionCall call = good_call();
  sluice_launch launch = good_launch();
  void *const first = FakeHip::handle(11), *const second = FakeHip::handle(12),
              *const signal = FakeHip::handle(13);
  void *const other = FakeHip::handle(0x200);
  const sluice_dependency dependencies[] = {{SLUICE_DEPENDS_ON_EVENT, 0, first, nullptr},
                                            {SLUICE_DEPENDS_ON_STREAM, 0, second, other}};
  launch.dependencies = dependencies;
  launch.dependency_count = 2;
  launch.signal_event = signal;
  hip.forget_calls();
  REQUIRE(run(plan, call, &launch) == SLUICE_OK);
  CHECK(hip.call_names() == std::vector<std::string>{"hipStreamIsCapturing", "hipStreamWaitEvent",
                                                     "hipEventRecord", "hipStreamWaitEvent",
                                                     "hipModuleLaunchKernel", "hipEventRecord"});
  const auto is_call = [&](size_t i, void *stream, void *event) {
    return hip.calls[i].stream == stream && hip.calls[i].event == event;
  };
  CHECK(is_call(1, launch.stream, first));
  CHECK(is_call(2, other, second));
  CHECK(is_call(3, launch.stream, second));
  CHECK(is_call(4, launch.stream, nullptr));
  CHECK(is_call(5, launch.stream, signal));
}

TEST_CASE("a stream outside a capture cannot be joined into it", "[run]") {
  FakeHip hip;
  const ContextHandle context = fake_context();
  const PlanHandle plan = make_plan(context, good_call());
  const AttentionCall call = good_call();
  sluice_launch launch = good_launch();
  void *const other = FakeHip::handle(0x200);
  sluice_dependency dependencies[] = {{SLUICE_DEPENDS_ON_EVENT, 0, FakeHip::handle(11), nullptr},
                                      {SLUICE_DEPENDS_ON_STREAM, 0, FakeHip::handle(12), other}};
  launch.dependencies = dependencies;
  launch.dependency_count = 2;
  const auto enqueued = [&] {
    return hip.count("hipStreamWaitEvent") + hip.count("hipEventRecord") + hip.count("hipModuleLaunchKernel");
  };
  Error error;
  hip.capturing = {launch.stream};
  hip.forget_calls();
  check_refusal(run(plan, call, &launch, &error), error, SLUICE_INVALID_ARGUMENT, "dependencies[1].stream",
                "it cannot join the capture");
  dependencies[1].stream = nullptr; // the default stream never captures
  check_refusal(run(plan, call, &launch, &error), error, SLUICE_INVALID_ARGUMENT, "dependencies[1].stream",
                "it cannot join the capture");
  CHECK(enqueued() == 0);

  dependencies[1].stream = other;
  hip.capturing = {launch.stream, other};
  CHECK(run(plan, call, &launch) == SLUICE_OK);
  // A run on a stream that is not capturing joins the capture of the one it depends on.
  hip.capturing = {other};
  CHECK(run(plan, call, &launch) == SLUICE_OK);
}

TEST_CASE("errors of HIP come back with their code, and nothing is launched after them", "[run]") {
  FakeHip hip;
  const ContextHandle context = fake_context();
  const PlanHandle plan = make_plan(context, good_call());
  const AttentionCall call = good_call();
  sluice_launch launch = good_launch();
  const sluice_dependency dependency = {SLUICE_DEPENDS_ON_STREAM, 0, FakeHip::handle(12),
                                        FakeHip::handle(0x200)};
  launch.dependencies = &dependency;
  launch.dependency_count = 1;
  launch.signal_event = FakeHip::handle(13);
  const auto check = [&](const char *function, const char *field, size_t launches) {
    hip.failing = {{function, 719}};
    hip.forget_calls();
    Error error;
    check_refusal(run(plan, call, &launch, &error), error, SLUICE_HIP, field,
                  std::string(function) + " failed with hipErrorLaunchFailure (719)");
    CHECK(error.hip_code == 719);
    CHECK(hip.count("hipModuleLaunchKernel") == launches);
  };
  check("hipStreamIsCapturing", "dependencies", 0);
  check("hipEventRecord", "dependencies", 0);
  check("hipStreamWaitEvent", "dependencies", 0);
  check("hipModuleLaunchKernel", "", 1);
  launch.dependency_count = 0;
  check("hipEventRecord", "signal_event", 1);
}

//===- run_test.cpp - runs: launches, and every call that is refused ------------------------------------===//
#include "fixture.h"

#include <cmath>
#include <cstring>
#include <functional>
#include <limits>

using namespace sluice::test;

namespace {

struct Refusal {
  std::function<void(sluice_args &, sluice_launch &)> change;
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

#define SLUICE_ARG(field, value) [](sluice_args &args, sluice_launch &) { args.field = value; }
#define SLUICE_LAUNCH(...) [](sluice_args &, sluice_launch &launch) { __VA_ARGS__; }
#define SLUICE_DEPENDENCY(dependency)                                                                        \
  SLUICE_LAUNCH(launch.dependencies = &dependency; launch.dependency_count = 1)

const Refusal refusals[] = {
    {SLUICE_ARG(flags, 1 << 2), SLUICE_NEWER_STRUCT, "flags", "flags has unknown bits 0x4"},
    // Extents: zero, negative, beyond the bounds, beyond the grid.
    {SLUICE_ARG(batch, -1), SLUICE_INVALID_ARGUMENT, "batch", "batch is -1; it must not be negative"},
    {SLUICE_ARG(batch, -1), SLUICE_INVALID_ARGUMENT, "batch", "batch is -1"},
    {SLUICE_ARG(q_len, 0), SLUICE_INVALID_ARGUMENT, "q_len", "q_len is 0"},
    {SLUICE_ARG(q_len, std::numeric_limits<int32_t>::min()), SLUICE_INVALID_ARGUMENT, "q_len",
     "q_len is -2147483648"},
    {SLUICE_ARG(kv_len, 0), SLUICE_INVALID_ARGUMENT, "kv_len", "kv_len is 0"},
    {SLUICE_ARG(kv_len, -7), SLUICE_INVALID_ARGUMENT, "kv_len", "kv_len is -7"},
    {SLUICE_ARG(batch, 65536), SLUICE_UNSUPPORTED, "batch", "batch is 65536; nearest supported: 65535"},
    {SLUICE_ARG(q_len, 65535 * 64 + 1), SLUICE_UNSUPPORTED, "q_len",
     "nearest supported: 4194240, which is 65535 tiles of 256 rows"},
    {SLUICE_ARG(kv_len, 2147483647 - 515), SLUICE_UNSUPPORTED, "kv_len", "nearest supported: 2147483131"},
    // Scale.
    {SLUICE_ARG(scale, infinity), SLUICE_INVALID_ARGUMENT, "scale", "scale is inf; it must be finite"},
    {SLUICE_ARG(scale, -infinity), SLUICE_INVALID_ARGUMENT, "scale", "scale is -inf"},
    {SLUICE_ARG(scale, std::nanf("")), SLUICE_INVALID_ARGUMENT, "scale", "scale is nan"},
    {SLUICE_ARG(scale, 3e38f), SLUICE_INVALID_ARGUMENT, "scale", "scale * log2(e) must be finite"},
    {SLUICE_ARG(scale, -0.5f), SLUICE_UNSUPPORTED, "scale",
     "scale is -0.5; it must not be negative; nearest supported"},
    // Pointers.
    {SLUICE_ARG(q.data, nullptr), SLUICE_INVALID_ARGUMENT, "q.data", "q.data is NULL"},
    {SLUICE_ARG(k.data, nullptr), SLUICE_INVALID_ARGUMENT, "k.data", "k.data is NULL"},
    {SLUICE_ARG(v.data, nullptr), SLUICE_INVALID_ARGUMENT, "v.data", "v.data is NULL"},
    {SLUICE_ARG(o.data, nullptr), SLUICE_INVALID_ARGUMENT, "o.data", "o.data is NULL"},
    {SLUICE_ARG(lse.data, nullptr), SLUICE_INVALID_ARGUMENT, "lse.data", "lse.data is NULL"},
    {SLUICE_ARG(q.data, device_memory + 8), SLUICE_INVALID_ARGUMENT, "q.data",
     "it must be aligned to 16 bytes"},
    {SLUICE_ARG(k.data, device_memory + 2), SLUICE_INVALID_ARGUMENT, "k.data",
     "it must be aligned to 16 bytes"},
    {SLUICE_ARG(v.data, device_memory + 1), SLUICE_INVALID_ARGUMENT, "v.data",
     "it must be aligned to 16 bytes"},
    {SLUICE_ARG(o.data, device_memory + 4), SLUICE_INVALID_ARGUMENT, "o.data",
     "it must be aligned to 16 bytes"},
    {SLUICE_ARG(lse.data, device_memory + 2), SLUICE_INVALID_ARGUMENT, "lse.data",
     "it must be aligned to 4 bytes"},
    // Strides.
    {SLUICE_ARG(q.stride[3], 2), SLUICE_INVALID_ARGUMENT, "q.stride[3]", "q.stride[3] is 2; it must be 1"},
    {SLUICE_ARG(k.stride[3], 0), SLUICE_INVALID_ARGUMENT, "k.stride[3]", "k.stride[3] is 0; it must be 1"},
    {SLUICE_ARG(v.stride[3], 8), SLUICE_INVALID_ARGUMENT, "v.stride[3]", "it must be 1"},
    {SLUICE_ARG(o.stride[3], -1), SLUICE_INVALID_ARGUMENT, "o.stride[3]", "it must be 1"},
    {SLUICE_ARG(q.stride[0], -8), SLUICE_INVALID_ARGUMENT, "q.stride[0]",
     "q.stride[0] is -8; it must not be negative"},
    {SLUICE_ARG(k.stride[2], -128), SLUICE_INVALID_ARGUMENT, "k.stride[2]", "it must not be negative"},
    {SLUICE_ARG(lse.stride[1], -1), SLUICE_INVALID_ARGUMENT, "lse.stride[1]", "it must not be negative"},
    {SLUICE_ARG(q.stride[1], 1028), SLUICE_INVALID_ARGUMENT, "q.stride[1]", "it must be a multiple of 8"},
    {SLUICE_ARG(v.stride[2], 129), SLUICE_INVALID_ARGUMENT, "v.stride[2]", "it must be a multiple of 8"},
    {SLUICE_ARG(k.stride[0], int64_t{1} << 62), SLUICE_INVALID_ARGUMENT, "k.stride",
     "beyond the address space"},
    {SLUICE_ARG(k.stride[1], int64_t{1} << 47), SLUICE_INVALID_ARGUMENT, "k.stride",
     "beyond the address space"},
    {SLUICE_ARG(v.data, reinterpret_cast<void *>(uint64_t{1} << 63)), SLUICE_INVALID_ARGUMENT, "v.stride",
     "beyond the address space"},
    {SLUICE_ARG(q.stride[1], int64_t{1} << 61), SLUICE_INVALID_ARGUMENT, "q.stride[1]",
     "beyond 2^63 elements"},
    {SLUICE_ARG(o.stride[1], 0), SLUICE_INVALID_ARGUMENT, "o.stride[1]",
     "elements of an output would overlap"},
    {SLUICE_ARG(o.stride[2], 120), SLUICE_INVALID_ARGUMENT, "o.stride[2]", "would overlap"},
    {SLUICE_ARG(o.stride[0], 4 * 8 * 128), SLUICE_INVALID_ARGUMENT, "o.stride[0]", "would overlap"},
    {SLUICE_ARG(lse.stride[0], 0), SLUICE_INVALID_ARGUMENT, "lse.stride[0]", "would overlap"},
    {SLUICE_ARG(lse.stride[2], 4), SLUICE_INVALID_ARGUMENT, "lse.stride[2]", "would overlap"},
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
  const PlanHandle plan = make_plan(context, good_problem());
  const sluice_args args = good_args();
  const sluice_launch launch = good_launch();
  hip.forget_calls();
  Error error;
  const sluice_status status = sluice_run(plan.get(), &args, &launch, &error);
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
  CHECK(k.q == reinterpret_cast<uint64_t>(args.q.data));
  CHECK(k.k == reinterpret_cast<uint64_t>(args.k.data));
  CHECK(k.v == reinterpret_cast<uint64_t>(args.v.data));
  CHECK(k.o == reinterpret_cast<uint64_t>(args.o.data));
  CHECK(k.lse == reinterpret_cast<uint64_t>(args.lse.data));
  CHECK(k.scale_log2e == 0.36067376f);
  CHECK(k.q_len == 5);
  CHECK(k.kv_len == 7);
  CHECK(k.window_right == 0);
  CHECK(k.group == 4);
}

TEST_CASE("a run without a launch is one on the default stream", "[run]") {
  FakeHip hip;
  const PlanHandle plan = make_plan(fake_context(), good_problem());
  const sluice_args args = good_args();
  hip.forget_calls();
  hip.launch.stream = FakeHip::handle(5);
  REQUIRE(sluice_run(plan.get(), &args, nullptr, nullptr) == SLUICE_OK);
  CHECK(hip.call_names() == std::vector<std::string>{"hipModuleLaunchKernel"});
  CHECK(hip.launch.stream == nullptr);
}

TEST_CASE("each stride reaches its own argument", "[run]") {
  FakeHip hip;
  const ContextHandle context = fake_context();
  const PlanHandle plan = make_plan(context, good_problem());
  sluice_args args = good_args();
  sluice_tensor *tensors[] = {&args.q, &args.k, &args.v, &args.o};
  for (int tensor = 0; tensor < 4; ++tensor) {
    for (int dim = 0; dim < 3; ++dim)
      tensors[tensor]->stride[dim] = (int64_t{1} << (20 + 4 * dim)) + 8 * (10 * tensor + dim + 1);
  }
  for (int dim = 0; dim < 3; ++dim)
    args.lse.stride[dim] = (1000 << (4 * dim)) + dim;
  const sluice_launch launch = good_launch();
  Error error;
  const sluice_status status = sluice_run(plan.get(), &args, &launch, &error);
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
    CHECK(passed[4][dim] == args.lse.stride[dim]);
  }
}

TEST_CASE("mask, scale and tiles become what the kernel expects", "[run]") {
  FakeHip hip;
  const ContextHandle context = fake_context();
  const sluice_launch launch = good_launch();
  const auto launched = [&](const sluice_problem &problem, const sluice_args &args) {
    const PlanHandle plan = make_plan(context, problem);
    Error error;
    const sluice_status status = sluice_run(plan.get(), &args, &launch, &error);
    INFO(error.message);
    REQUIRE(status == SLUICE_OK);
    return hip.launch;
  };
  sluice_problem problem = good_problem();
  sluice_args args = good_args();
  SECTION("causal at the bottom right, more queries than keys") {
    args.q_len = 65; // of 4 heads: 260 rows
    args.o.stride[0] = args.q.stride[0] = 65 * 8 * 128;
    args.lse.stride[0] = 8 * 65;
    args.lse.stride[2] = 65;
    const auto seen = launched(problem, args);
    CHECK(seen.kernargs.window_right == 0);
    CHECK(seen.kernargs.score_flags == 0);
    CHECK(seen.grid[1] == 2);
  }
  SECTION("causal at the top left") {
    problem.mask_alignment = SLUICE_TOP_LEFT;
    CHECK(launched(problem, args).kernargs.score_flags == sluice::package::score_top_left);
  }
  SECTION("not causal: every key is visible") {
    problem.flags = SLUICE_WRITE_LSE;
    CHECK(launched(problem, args).kernargs.window_right == sluice::package::kernarg_no_window);
  }
  SECTION("scale 0 is 1 / sqrt(head_dim_qk)") {
    args.scale = 0;
    const auto seen = launched(problem, args);
    CHECK(seen.kernargs.scale_log2e == float(std::log2(std::exp(1.0)) / std::sqrt(128.0)));
  }
  SECTION("without LSE its pointer is null") {
    problem.flags = SLUICE_CAUSAL;
    args.lse = {};
    CHECK(launched(problem, args).kernargs.lse == 0);
  }
  SECTION("a short problem has the low tile") {
    problem.max_q_len = 32;
    const auto seen = launched(problem, args);
    CHECK(seen.block[0] == 256);
    CHECK(hip.functions.back() == "attn_fwd_f16_d128_q128_kv64_w4");
  }
  SECTION("inputs may be broadcast with stride 0") {
    args.q.stride[0] = args.k.stride[0] = args.v.stride[0] = 0;
    args.k.stride[2] = 0;
    CHECK(launched(problem, args).kernargs.k_batch_stride == 0);
  }
}

TEST_CASE("the device's compute units decide which tiles a run halves", "[run]") {
  FakeHip hip;
  hip.attributes[63] = 6; // compute units
  const ContextHandle context = fake_context();
  const sluice_launch launch = good_launch();
  sluice_problem problem = good_problem();
  problem.determinism = SLUICE_DETERMINISM_BATCH_INVARIANT; // so that nothing else depends on them
  problem.max_batch = 2;
  problem.max_kv_len = 7;
  sluice_args args = good_args();
  args.q_len = 65; // of 4 heads: 260 rows
  args.o.stride[0] = args.q.stride[0] = 65 * 8 * 128;
  args.lse.stride[0] = 8 * 65;
  args.lse.stride[2] = 65;
  const auto halved_tiles = [&] {
    const PlanHandle plan = make_plan(context, problem);
    Error error;
    const sluice_status status = sluice_run(plan.get(), &args, &launch, &error);
    INFO(error.message);
    REQUIRE(status == SLUICE_OK);
    CHECK(hip.functions.back() == "attn_fwd_f16_d128_q256_kv64_w8");
    CHECK(hip.launch.grid[2] == 2 + uint32_t(hip.launch.kernargs.halved_tiles));
    return hip.launch.kernargs.halved_tiles;
  };
  CHECK(halved_tiles() == 0); // causal
  problem.flags = SLUICE_WRITE_LSE;
  CHECK(halved_tiles() == 1); // the last 2 of 8 workgroups
}

TEST_CASE("the group of query heads divides every head exactly", "[run]") {
  FakeHip hip;
  const ContextHandle context = fake_context();
  sluice_args args = good_args();
  const sluice_launch launch = good_launch();
  for (const int32_t ratio : {1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 31, 48, 64, 128, 1000, 32768}) {
    sluice_problem problem = good_problem();
    problem.flags = 0;
    args.lse = {};
    problem.kv_heads = 32768 / ratio;
    problem.q_heads = problem.kv_heads * ratio;
    args.q.stride[1] = args.o.stride[1] = int64_t{128} * problem.q_heads;
    args.q.stride[0] = args.o.stride[0] = 5 * args.q.stride[1];
    const PlanHandle plan = make_plan(context, problem);
    REQUIRE(sluice_run(plan.get(), &args, &launch, nullptr) == SLUICE_OK);
    const sluice::package::AttentionKernargs &k = hip.launch.kernargs;
    CHECK(k.group == uint32_t(ratio));
    for (int32_t head = 0; head < problem.q_heads; ++head) {
      if (((2 * uint64_t(head) * k.group_magic) >> 32) >> k.group_shift != uint64_t(head / ratio))
        FAIL("ratio " << ratio << ", head " << head);
    }
  }
}

TEST_CASE("every call that breaks a rule is refused by name, and enqueues nothing", "[run]") {
  FakeHip hip;
  const ContextHandle context = fake_context();
  const PlanHandle plan = make_plan(context, good_problem());
  hip.forget_calls();
  for (const Refusal &refusal : refusals) {
    sluice_args args = good_args();
    sluice_launch launch = good_launch();
    refusal.change(args, launch);
    Error error;
    check_refusal(sluice_run(plan.get(), &args, &launch, &error), error, refusal.status, refusal.field,
                  refusal.message);
  }
  CHECK(hip.call_count == 0);
  const sluice_args args = good_args();
  const sluice_launch launch = good_launch();
  Error error;
  check_refusal(sluice_run(nullptr, &args, &launch, &error), error, SLUICE_INVALID_ARGUMENT, "plan",
                "plan is NULL");
}

TEST_CASE("a call beyond the bounds of its plan is refused", "[run]") {
  FakeHip hip;
  const ContextHandle context = fake_context();
  const sluice_launch launch = good_launch();
  const sluice_args args = good_args(); // batch 2, q_len 5, kv_len 7
  const auto run = [&](const sluice_problem &problem, Error &error) {
    return sluice_run(make_plan(context, problem).get(), &args, &launch, &error);
  };
  sluice_problem problem = good_problem();
  problem.max_batch = 2;
  problem.max_q_len = 5;
  problem.max_kv_len = 7;
  problem.max_q_tokens = 10;
  Error error;
  CHECK(run(problem, error) == SLUICE_OK);
  hip.forget_calls();
  sluice_problem less = problem;
  less.max_batch = 1;
  check_refusal(run(less, error), error, SLUICE_INVALID_ARGUMENT, "batch",
                "batch is 2; the problem's max_batch is 1");
  less = problem;
  less.max_q_len = 4;
  check_refusal(run(less, error), error, SLUICE_INVALID_ARGUMENT, "q_len", "the problem's max_q_len is 4");
  less = problem;
  less.max_kv_len = 6;
  check_refusal(run(less, error), error, SLUICE_INVALID_ARGUMENT, "kv_len", "the problem's max_kv_len is 6");
  less = problem;
  less.max_q_tokens = 9;
  check_refusal(run(less, error), error, SLUICE_INVALID_ARGUMENT, "batch", "batch * q_len is 10");
  CHECK(hip.count("hipModuleLaunchKernel") == 0);
}

TEST_CASE("an LSE that the plan does not write is refused", "[run]") {
  FakeHip hip;
  const ContextHandle context = fake_context();
  sluice_problem problem = good_problem();
  problem.flags = SLUICE_CAUSAL;
  const PlanHandle plan = make_plan(context, problem);
  const sluice_args args = good_args();
  const sluice_launch launch = good_launch();
  Error error;
  check_refusal(sluice_run(plan.get(), &args, &launch, &error), error, SLUICE_INVALID_ARGUMENT, "lse.data",
                "lack SLUICE_WRITE_LSE");
}

TEST_CASE("rows of K and V that are too far apart are refused", "[run]") {
  FakeHip hip;
  const ContextHandle context = fake_context();
  const sluice_launch launch = good_launch();
  for (const int32_t head_dim : {64, 128}) {
    sluice_problem problem = good_problem();
    problem.head_dim_qk = problem.head_dim_v = head_dim;
    const PlanHandle plan = make_plan(context, problem);
    for (const bool is_v : {false, true}) {
      sluice_args args = good_args();
      int64_t &stride = is_v ? args.v.stride[1] : args.k.stride[1];
      stride = (int64_t{1} << 25) - 8;
      CHECK(sluice_run(plan.get(), &args, &launch, nullptr) == SLUICE_OK);
      stride = int64_t{1} << 25;
      Error error;
      check_refusal(sluice_run(plan.get(), &args, &launch, &error), error, SLUICE_UNSUPPORTED,
                    is_v ? "v.stride[1]" : "k.stride[1]", "nearest supported: 33554424");
    }
  }
}

TEST_CASE("a plan of a target cannot run", "[run]") {
  const PlanHandle plan = make_plan(target_context(), good_problem());
  const sluice_args args = good_args();
  const sluice_launch launch = good_launch();
  Error error;
  check_refusal(sluice_run(plan.get(), &args, &launch, &error), error, SLUICE_NO_DEVICE, "plan",
                "plan was made for the target gfx942, which has no device");
}

TEST_CASE("dependencies are waited for and the signal is recorded, in order", "[run]") {
  FakeHip hip;
  const ContextHandle context = fake_context();
  const PlanHandle plan = make_plan(context, good_problem());
  const sluice_args args = good_args();
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
  REQUIRE(sluice_run(plan.get(), &args, &launch, nullptr) == SLUICE_OK);
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
  const PlanHandle plan = make_plan(context, good_problem());
  const sluice_args args = good_args();
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
  check_refusal(sluice_run(plan.get(), &args, &launch, &error), error, SLUICE_INVALID_ARGUMENT,
                "dependencies[1].stream", "it cannot join the capture");
  dependencies[1].stream = nullptr; // the default stream never captures
  check_refusal(sluice_run(plan.get(), &args, &launch, &error), error, SLUICE_INVALID_ARGUMENT,
                "dependencies[1].stream", "it cannot join the capture");
  CHECK(enqueued() == 0);

  dependencies[1].stream = other;
  hip.capturing = {launch.stream, other};
  CHECK(sluice_run(plan.get(), &args, &launch, nullptr) == SLUICE_OK);
  // A run on a stream that is not capturing joins the capture of the one it depends on.
  hip.capturing = {other};
  CHECK(sluice_run(plan.get(), &args, &launch, nullptr) == SLUICE_OK);
}

TEST_CASE("errors of HIP come back with their code, and nothing is launched after them", "[run]") {
  FakeHip hip;
  const ContextHandle context = fake_context();
  const PlanHandle plan = make_plan(context, good_problem());
  const sluice_args args = good_args();
  sluice_launch launch = good_launch();
  const sluice_dependency dependency = {SLUICE_DEPENDS_ON_STREAM, 0, FakeHip::handle(12),
                                        FakeHip::handle(0x200)};
  launch.dependencies = &dependency;
  launch.dependency_count = 1;
  launch.signal_event = FakeHip::handle(13);
  const auto check = [&](const char *call, const char *field, size_t launches) {
    hip.failing = {{call, 719}};
    hip.forget_calls();
    Error error;
    check_refusal(sluice_run(plan.get(), &args, &launch, &error), error, SLUICE_HIP, field,
                  std::string(call) + " failed with hipErrorLaunchFailure (719)");
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

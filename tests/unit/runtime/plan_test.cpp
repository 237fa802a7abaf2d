//===- plan_test.cpp - the parts of a plan that do not need a device ------------------------------------===//
#include "calls/problem.h"
#include "runtime/attention_arguments.h"
#include "runtime/plan.h"

#include "runtime/dtype.h"
#include "support/failure.h"
#include "support/fake_hip.h"

#include <catch2/catch.hpp>

#include <set>

using namespace sluice;
using namespace sluice::runtime;

TEST_CASE("windows and the alignment of the mask become arguments", "[plan]") {
  package::KernelEntry kernel;
  kernel.name.head_dim_qk = kernel.name.head_dim_v = 128;
  calls::Problem problem = {};
  problem.q_heads = 12;
  problem.kv_heads = 4;
  problem.head_dim_qk = problem.head_dim_v = 128;
  const package::AttentionKernargs plain = problem_arguments(kernel, problem);
  CHECK(plain.window_left == package::kernarg_no_window);
  CHECK(plain.window_right == package::kernarg_no_window);
  CHECK(plain.sink_tokens == 0);
  CHECK(plain.score_flags == 0);
  CHECK(plain.group == 3);
  CHECK(plain.splits == 1);
  CHECK(plain.max_rows == INT32_MAX);

  problem.flags = calls::causal;
  problem.mask_alignment = SLUICE_TOP_LEFT;
  CHECK(problem_arguments(kernel, problem).window_right == 0);
  CHECK(problem_arguments(kernel, problem).score_flags == package::score_top_left);
  problem.flags = calls::window_left | calls::window_right;
  problem.mask_alignment = SLUICE_BOTTOM_RIGHT;
  problem.window_left = 0;
  problem.window_right = INT32_MAX;
  problem.sink_tokens = 4;
  const package::AttentionKernargs window = problem_arguments(kernel, problem);
  CHECK(window.window_left == 0);
  CHECK(window.window_right == package::kernarg_no_window);
  CHECK(window.sink_tokens == 4);
  CHECK(window.score_flags == 0);
}

TEST_CASE("changes of the scores and the type of O become arguments", "[plan]") {
  package::KernelEntry kernel;
  calls::Problem problem = {};
  problem.q_heads = problem.kv_heads = 1;
  const auto flags = [&] { return problem_arguments(kernel, problem).score_flags; };
  problem.bias_type = SLUICE_F32;
  CHECK(flags() == package::score_changed);
  problem.bias_type = SLUICE_F16;
  CHECK(flags() == (package::score_changed | package::score_bias_f16));
  problem.bias_type = SLUICE_BF16;
  CHECK(flags() == (package::score_changed | package::score_bias_bf16));
  problem.bias_type = 0;
  for (const uint32_t flag : {calls::alibi, calls::mask_bits}) {
    problem.flags = flag;
    CHECK(flags() == package::score_changed);
  }
  problem.flags = 0;
  problem.o_type = SLUICE_F32;
  CHECK(flags() == package::score_o_f32);
  problem.o_type = SLUICE_F16;
  CHECK(flags() == 0);
  problem.flags = calls::sinks;
  problem.q_scale_kind = SLUICE_SCALE_PER_HEAD;
  problem.k_scale_kind = SLUICE_SCALE_PER_TENSOR;
  CHECK(flags() == package::score_q_scale_heads);
  problem.soft_cap = 2;
  problem.flags |= calls::lse_log2;
  const package::AttentionKernargs args = problem_arguments(kernel, problem);
  CHECK(args.score_flags == (package::score_changed | package::score_q_scale_heads));
  CHECK(args.cap_log2e == 2.8853900f);
  CHECK(args.two_per_cap == 1);
  CHECK(args.lse_per_log2 == 1);
}

TEST_CASE("every element type has a name, and a name one type", "[dtype]") {
  std::set<std::string_view> names;
  for (uint32_t type = SLUICE_F16; type <= SLUICE_Q4_0; ++type) {
    CHECK(dtype_of_name(dtype_name(type)) == type);
    CHECK(names.insert(dtype_name(type)).second);
  }
  CHECK(dtype_name(0).empty());
  CHECK(dtype_name(SLUICE_Q4_0 + 1).empty());
  CHECK(dtype_of_name("f64") == 0);
}

TEST_CASE("the current device is restored, also after an exception, and not set if it is right", "[device]") {
  test::FakeHip hip;
  hip.device_count = 3;
  hip.current_device = 2;
  const Device device = open_device(SLUICE_DEVICE_HIP, 1, {test::FakeHip::resolve, nullptr, "test"});
  CHECK(hip.current_device == 2);
  try {
    const CurrentDevice current(device);
    CHECK(hip.current_device == 1);
    throw 1;
  } catch (int) {
  }
  CHECK(hip.current_device == 2);

  hip.current_device = 1;
  hip.forget_calls();
  {
    const CurrentDevice current(device);
  }
  CHECK(hip.call_names() == std::vector<std::string>{"hipGetDevice"});

  hip.current_device = 0;
  hip.failing = {{"hipSetDevice", 101}};
  CHECK_THROWS_AS(CurrentDevice(device), support::Failure);
}

//===- attention_call.cpp - one attention call on .npy files --------------------------------------------===//

#include "tools/sluice/attention_call.h"

#include "calls/values.h"
#include "tools/shared/progress.h"

#include <array>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <fmt/format.h>
#include <future>
#include <limits>

namespace sluice::tools {

namespace {

uint32_t dtype_of(const CallOptions &options) {
  return options.bf16 ? SLUICE_BF16 : SLUICE_F16;
}

int32_t as_extent(int64_t extent, const char *argument, const char *what) {
  if (extent < 1 || extent > std::numeric_limits<int32_t>::max())
    throw NpyError(fmt::format("{}: its {} is {}; it must be 1 to {}", argument, what, extent,
                               std::numeric_limits<int32_t>::max()));
  return int32_t(extent);
}

/// A tensor [batch, token, head, dim] without gaps.
sluice_tensor contiguous(void *data, const std::vector<int64_t> &shape) {
  return {.data = data, .stride = {shape[1] * shape[2] * shape[3], shape[2] * shape[3], shape[3], 1}};
}

} // namespace

float parse_scale(const std::string &text) {
  char *end = nullptr;
  errno = 0;
  const double value = std::strtod(text.c_str(), &end);
  if (text.empty() || *end != '\0')
    throw ToolError(fmt::format("--scale is '{}'; it must be a number", text));
  const float scale = float(value);
  if (errno == ERANGE || std::isinf(scale) != std::isinf(value) || (scale == 0) != (value == 0))
    throw ToolError(fmt::format("--scale is {}; it does not fit a float", text));
  return scale;
}

CallInputs load_inputs(const CallOptions &options) {
  const std::array types = {options.bf16 ? NpyType::u16 : NpyType::f16};
  CallInputs in{.q = read_npy(options.q_file, "--q", types, 4),
                .k = read_npy(options.k_file, "--k", types, 4),
                .v = read_npy(options.v_file, "--v", types, 4)};
  for (auto [array, argument] : {std::pair{&in.q, "--q"}, {&in.k, "--k"}, {&in.v, "--v"}}) {
    constexpr const char *names[] = {"batch", "length", "number of heads", "head size"};
    for (size_t i = 0; i < 4; ++i)
      as_extent(array->shape[i], argument, names[i]);
  }
  expect_shape(
      in.k, "--k",
      std::array{in.batch(), in.kv_len(), in.kv_heads(), in.head_dim_qk()}); // batch and head size of Q
  expect_shape(in.v, "--v",
               std::array{in.batch(), in.kv_len(), in.kv_heads(), in.head_dim_v()}); // tokens and heads of K
  return in;
}

calls::Problem make_problem(const CallOptions &options, const CallInputs &inputs) {
  calls::Problem problem;
  problem.q_type = problem.k_type = problem.v_type = problem.o_type = dtype_of(options);
  problem.q_heads = int32_t(inputs.q_heads());
  problem.kv_heads = int32_t(inputs.kv_heads());
  problem.head_dim_qk = int32_t(inputs.head_dim_qk());
  problem.head_dim_v = int32_t(inputs.head_dim_v());
  problem.max_batch = int32_t(inputs.batch());
  problem.max_q_len = int32_t(inputs.q_len());
  problem.max_kv_len = int32_t(inputs.kv_len());
  problem.flags = calls::write_lse;
  if (options.causal) {
    problem.flags |= calls::causal;
    if (options.alignment == "top-left")
      problem.mask_alignment = SLUICE_TOP_LEFT;
    else if (options.alignment != "bottom-right")
      throw ToolError(
          fmt::format("--alignment is '{}'; it must be 'bottom-right' or 'top-left'", options.alignment));
  } else if (options.alignment != "bottom-right") {
    throw ToolError("--alignment aligns a causal mask; it needs --causal");
  }
  return problem;
}

calls::Args make_args(const CallOptions &options, const CallInputs &inputs, void *q, void *k, void *v,
                      void *o, void *lse) {
  calls::Args args;
  args.batch = int32_t(inputs.batch());
  args.q_len = int32_t(inputs.q_len());
  args.kv_len = int32_t(inputs.kv_len());
  args.scale = options.scale ? double{*options.scale} : 1 / std::sqrt(double(inputs.q.shape.back()));
  args.q = contiguous(q, inputs.q.shape);
  args.k = contiguous(k, inputs.k.shape);
  args.v = contiguous(v, inputs.v.shape);
  args.o = contiguous(o, inputs.o_shape());
  args.lse = {.data = lse, .stride = {inputs.q_heads() * inputs.q_len(), 1, inputs.q_len(), 0}};
  return args;
}

CallResult run_call(const CallOptions &options, const CallInputs &inputs) {
  const calls::Problem problem = make_problem(options, inputs);
  const sluice_context_desc device = describe_device(options.device);
  if (device.kind == SLUICE_DEVICE_TARGET)
    throw ToolError(fmt::format("--device {} is a target without a device; 'emulated' and 'hip:N' can run",
                                options.device));
  const ContextHandle context = make_context(options.device);
  sluice_error error = make_error();
  sluice_plan *created = nullptr;
  check(sluice_attention_plan(context.get(), calls::ProblemValues(problem), &created, &error), error);
  const PlanHandle plan(created);
  sluice_plan_info info;
  sluice_plan_info_init(&info, sizeof info);
  check(sluice_plan_describe(created, &info, &error), error);

  CallResult result{.o = NpyArray(inputs.q.type, inputs.o_shape()),
                    .lse = NpyArray(NpyType::f32, inputs.lse_shape()),
                    .kernel = info.kernel,
                    .counters = std::nullopt};
  DeviceBuffer q(context.get(), inputs.q.bytes.size()), k(context.get(), inputs.k.bytes.size()),
      v(context.get(), inputs.v.bytes.size()), o(context.get(), result.o.bytes.size()),
      lse(context.get(), result.lse.bytes.size());
  q.upload(inputs.q.bytes.data(), inputs.q.bytes.size());
  k.upload(inputs.k.bytes.data(), inputs.k.bytes.size());
  v.upload(inputs.v.bytes.data(), inputs.v.bytes.size());
  sluice_launch launch;
  sluice_launch_init(&launch, sizeof launch);
  std::optional<DeviceBuffer> workspace;
  if (info.workspace_bytes != 0) {
    workspace.emplace(context.get(), info.workspace_bytes);
    launch.workspace = workspace->data();
    launch.workspace_bytes = info.workspace_bytes;
  }
  const calls::Args args = make_args(options, inputs, q.data(), k.data(), v.data(), o.data(), lse.data());

  // An emulated launch may do its work within the call, so another thread makes the call while this one
  // watches.
  const auto begin = std::chrono::steady_clock::now();
  std::future<void> done = std::async(std::launch::async, [&] {
    // The current device belongs to the thread.
    check_hip(context.get(), hip_symbol<int(int)>(context.get(), "hipSetDevice")(device.device_ordinal),
              "hipSetDevice");
    sluice_error run_error = make_error();
    check(sluice_attention_run(plan.get(), calls::ArgsValues(problem, args), &launch, &run_error), run_error);
    check_hip(context.get(), hip_symbol<int(void *)>(context.get(), "hipStreamSynchronize")(nullptr),
              "the run");
  });
  const double total = double(info.max_grid[0]) * info.max_grid[1] * info.max_grid[2];
  Progress progress(info.kernel);
  while (done.wait_for(std::chrono::milliseconds(100)) != std::future_status::ready) {
    const auto counters = emulator_counters(context.get());
    progress.update(counters && total > 0 ? double(counters->workgroups) / total : std::nan(""));
  }
  progress.finish();
  done.get();
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  o.download(result.o.bytes.data(), result.o.bytes.size());
  lse.download(result.lse.bytes.data(), result.lse.bytes.size());
  result.counters = emulator_counters(context.get());
  return result;
}

std::string describe(const CallResult &result) {
  std::string text = fmt::format("kernel {}, {:.2f} s", result.kernel, result.seconds);
  if (result.counters)
    text += fmt::format(", {} workgroups, {} waves, {} instructions", result.counters->workgroups,
                        result.counters->waves, result.counters->wave_instructions);
  return text;
}

} // namespace sluice::tools

//===- plan.cpp - the C ABI: plans and runs -------------------------------------------------------------===//
#include "abi/checks.h"
#include "abi/contents.h"
#include "abi/entry.h"
#include "abi/wall.h"
#include "calls/args.h"
#include "calls/problem.h"
#include "runtime/attention_arguments.h"
#include "runtime/call_rows.h"
#include "runtime/choose.h"
#include "runtime/kernel_features.h"

#include <string>

using namespace sluice;
using support::Failure;
using support::Status;
using support::text;

namespace {

[[noreturn]] void null_argument(const char *argument) {
  throw Failure(Status::invalid_argument, argument, text(argument, " is NULL"));
}

constexpr size_t grid_dimensions = 3;

} // namespace

sluice_plan *abi::make_plan(const std::shared_ptr<runtime::Context> &context,
                            const FlatAttention &attention) {
  check_problem(attention.problem);
  return new sluice_plan{attention, runtime::Plan(context, attention.problem)};
}

void abi::enqueue(const sluice_plan &plan, const calls::Args &call, const sluice_launch &where) {
  const runtime::Plan &prepared = plan.plan;
  const TensorRules rules = {runtime::pointer_alignment, runtime::stride_multiple, true,
                             prepared.kernel().name.tile_q};
  check_args(prepared.problem(), rules, call);
  const bool is_empty = runtime::has_no_rows(call);
  if (is_empty) {
    check_dependencies(where);
  } else {
    runtime::check_call_features(prepared.kernel(), prepared.problem(), call);
    check_launch(prepared.workspace_bytes(), runtime::workspace_alignment, where);
  }
  if (!prepared.can_run()) {
    throw Failure(
        Status::no_device, "plan",
        text("plan was made for the target ", prepared.context().device().arch, ", which has no device"));
  }
  const runtime::Device &device = prepared.context().device();
  if (is_empty) return runtime::enqueue_nothing(*device.hip, where);
  prepared.run(call, with_contents_check(device, where, prepared.problem(), call));
}

void abi::preload(sluice_context *context, const calls::Problem *problem) {
  runtime::Context &shared = *context_of(context);
  if (!shared.device().hip) {
    throw Failure(
        Status::no_device, "context",
        text("context is the target ", shared.device().arch, ", which has no device to load kernels onto"));
  }
  if (problem != nullptr) {
    check_problem(*problem);
    runtime::load_kernels(shared, runtime::choose_kernel(shared, *problem));
    return;
  }
  for (const package::PackedKernel *kernel : shared.kernels())
    shared.function(*kernel);
}

extern "C" {

sluice_status sluice_plan_info_init(sluice_plan_info *info, size_t size) noexcept {
  return abi::init(info, size);
}
sluice_status sluice_launch_init(sluice_launch *launch, size_t size) noexcept {
  return abi::init(launch, size);
}

void sluice_plan_destroy(sluice_plan *plan) noexcept {
  delete plan;
}

sluice_status sluice_plan_describe(const sluice_plan *plan, sluice_plan_info *info,
                                   sluice_error *error) noexcept {
  return abi::wall(error, [&] {
    if (plan == nullptr) null_argument("plan");
    abi::check_output(info, "info");
    const runtime::Plan &described = plan->plan;
    const package::KernelEntry &kernel = described.kernel();
    sluice_plan_info out = {};
    out.tile_q = kernel.name.tile_q;
    out.tile_kv = kernel.name.tile_kv;
    out.waves = kernel.name.waves;
    out.lds_bytes = kernel.lds_bytes;
    out.workspace_alignment = runtime::workspace_alignment;
    out.workspace_bytes = described.workspace_bytes();
    const runtime::Grid grid = described.grid(described.problem().max_batch, described.problem().max_q_len);
    for (size_t i = 0; i < grid_dimensions; ++i)
      out.max_grid[i] = grid[i];
    out.block[0] = kernel.threads;
    out.block[1] = out.block[2] = 1;
    abi::copy_text(out.kernel, described.kernel_name());
    abi::copy_text(out.reason, described.reason());
    abi::fill(info, out);
  });
}

sluice_status sluice_counters_init(sluice_counters *counters, size_t size) noexcept {
  return abi::init(counters, size);
}

sluice_status sluice_plan_counters(const sluice_plan *plan, sluice_counters *counters,
                                   sluice_error *error) noexcept {
  return abi::wall(error, [&] {
    if (plan == nullptr) null_argument("plan");
    abi::check_output(counters, "counters");
    abi::fill(counters, plan->plan.counters());
  });
}

} // extern "C"

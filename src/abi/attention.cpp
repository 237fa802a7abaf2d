//===- attention.cpp - the C ABI: the functions of attention.h ------------------------------------------===//
#include <sluice/attention.h>

#include "abi/attention_values.h"
#include "abi/checks.h"
#include "abi/entry.h"
#include "abi/wall.h"
#include "calls/args.h"
#include "calls/problem.h"

using namespace sluice;
using support::Failure;
using support::Status;

extern "C" {

sluice_status sluice_attention_support(const sluice_context *context, const sluice_attention *attention,
                                       sluice_support *support, sluice_error *error) noexcept {
  return abi::wall(error, [&] {
    if (support != nullptr) abi::check_output(support, "support");
    const calls::Problem problem = abi::flat_attention(attention).problem;
    abi::retelling(abi::problem_names, [&] { abi::answer_support(context, problem, support); });
  });
}

sluice_status sluice_attention_plan(sluice_context *context, const sluice_attention *attention,
                                    sluice_plan **out, sluice_error *error) noexcept {
  if (out != nullptr) *out = nullptr;
  return abi::wall(error, [&] {
    const std::shared_ptr<runtime::Context> &shared = abi::context_of(context);
    if (out == nullptr) throw Failure(Status::invalid_argument, "out", "out is NULL");
    const abi::FlatAttention flat = abi::flat_attention(attention);
    *out = abi::retelling(abi::problem_names, [&] { return abi::make_plan(shared, flat); });
  });
}

sluice_status sluice_attention_preload(sluice_context *context, const sluice_attention *attention,
                                       sluice_error *error) noexcept {
  return abi::wall(error, [&] {
    if (attention == nullptr) return abi::preload(context, nullptr);
    const calls::Problem problem = abi::flat_attention(attention).problem;
    abi::retelling(abi::problem_names, [&] { abi::preload(context, &problem); });
  });
}

sluice_status sluice_attention_run(const sluice_plan *plan, const sluice_attention_args *args,
                                   const sluice_launch *launch, sluice_error *error) noexcept {
  const sluice_status status = abi::wall(error, [&] {
    if (plan == nullptr) throw Failure(Status::invalid_argument, "plan", "plan is NULL");
    calls::Args call = {};
    sluice_launch launch_copy;
    abi::flat_args(plan->attention, args, call);
    const sluice_launch &where = abi::view_launch(launch, launch_copy);
    abi::retelling(abi::args_names, [&] { abi::enqueue(*plan, call, where); });
  });
  if (plan != nullptr) plan->plan.count_run(status);
  return status;
}

sluice_status sluice_attention_reference(const sluice_attention *attention, const sluice_attention_args *args,
                                         sluice_error *error) noexcept {
  return abi::wall(error, [&] {
    const abi::FlatAttention flat = abi::flat_attention(attention);
    abi::retelling(abi::problem_names, [&] { abi::check_problem(flat.problem); });
    calls::Args call = {};
    abi::flat_args(flat, args, call);
    abi::retelling(abi::args_names, [&] { abi::compute_on_host(flat.problem, call); });
  });
}

} // extern "C"

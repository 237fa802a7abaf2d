//===- cache_ops.cpp - the C ABI: cache operations ------------------------------------------------------===//
#include "calls/cache_ops.h"
#include "abi/cache_op_checks.h"
#include "abi/cache_values.h"
#include "abi/checks.h"
#include "abi/contents.h"
#include "abi/handles.h"
#include "abi/wall.h"
#include "runtime/cache_ops.h"

using namespace sluice;

namespace {

template <typename Call> using Check = void (*)(const Call &);
template <typename Call> using Run = void (*)(runtime::Context &, const Call &, const sluice_launch &);

template <typename Call>
void check_and_run(runtime::Context &context, const Call &call, const sluice_launch &where, Check<Call> check,
                   Run<Call> run) {
  check(call);
  abi::check_dependencies(where);
  run(context, call, where);
}

template <typename Call, typename Args>
sluice_status enqueue(sluice_context *context, const Args *args, void (*flatten)(const Args *, Call &),
                      abi::Names names, Check<Call> check, Run<Call> run, const sluice_launch *launch,
                      sluice_error *error) {
  return abi::wall(error, [&] {
    runtime::Context &shared = *abi::context_of(context);
    Call call = {};
    sluice_launch launch_copy;
    flatten(args, call);
    const sluice_launch &where = abi::view_launch(launch, launch_copy);
    abi::retelling(names, [&] { check_and_run(shared, call, where, check, run); });
  });
}

/// Runs a call after the check of its arrays that an emulated device makes.
template <typename Call, void (*run)(runtime::Context &, const Call &, const sluice_launch &)>
void checked(runtime::Context &shared, const Call &call, const sluice_launch &where) {
  run(shared, call,
      runtime::has_nothing_to_do(call) ? where : abi::with_contents_check(shared.device(), where, call));
}

} // namespace

extern "C" {

sluice_status sluice_cache_append(sluice_context *context, const sluice_append_args *args,
                                  const sluice_launch *launch, sluice_error *error) noexcept {
  return enqueue(context, args, abi::flat_append, abi::append_names, abi::check_append,
                 checked<calls::Append, runtime::append>, launch, error);
}

sluice_status sluice_cache_copy(sluice_context *context, const sluice_copy_args *args,
                                const sluice_launch *launch, sluice_error *error) noexcept {
  return enqueue(context, args, abi::flat_copy, abi::copy_names, abi::check_page_copy,
                 checked<calls::PageCopy, runtime::copy_pages>, launch, error);
}

sluice_status sluice_cache_gather(sluice_context *context, const sluice_gather_args *args,
                                  const sluice_launch *launch, sluice_error *error) noexcept {
  return enqueue(context, args, abi::flat_gather, abi::gather_names, abi::check_gather,
                 checked<calls::Gather, runtime::gather>, launch, error);
}

sluice_status sluice_attention_merge(sluice_context *context, const sluice_merge_args *args,
                                     const sluice_launch *launch, sluice_error *error) noexcept {
  return abi::wall(error, [&] {
    runtime::Context &shared = *abi::context_of(context);
    sluice_merge_args copy;
    sluice_launch launch_copy;
    const sluice_merge_args &call = abi::view(args, "args", copy);
    check_and_run(shared, call, abi::view_launch(launch, launch_copy), abi::check_merge,
                  checked<sluice_merge_args, runtime::merge>);
  });
}

} // extern "C"

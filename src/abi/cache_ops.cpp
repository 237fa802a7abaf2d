//===- cache_ops.cpp - the C ABI: cache operations ------------------------------------------------------===//
#include "runtime/cache_ops.h"
#include "abi/cache_op_checks.h"
#include "abi/cache_values.h"
#include "abi/checks.h"
#include "abi/contents.h"
#include "abi/handles.h"
#include "abi/wall.h"

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

template <typename Call>
sluice_status enqueue(sluice_context *context, const Call *given, const char *name, Check<Call> check,
                      Run<Call> run, const sluice_launch *launch, sluice_error *error) {
  return abi::wall(error, [&] {
    runtime::Context &shared = *abi::context_of(context);
    Call call_copy;
    sluice_launch launch_copy;
    const Call &call = abi::view(given, name, call_copy);
    check_and_run(shared, call, abi::view_launch(launch, launch_copy), check, run);
  });
}

/// The same for the values of cache.h.
template <typename Call, typename Args>
sluice_status enqueue_values(sluice_context *context, const Args *args, void (*flatten)(const Args *, Call &),
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

sluice_status sluice_append_init(sluice_append *append, size_t size) noexcept {
  return abi::init(append, size);
}
sluice_status sluice_page_copy_init(sluice_page_copy *copy, size_t size) noexcept {
  return abi::init(copy, size);
}
sluice_status sluice_gather_init(sluice_gather *gather, size_t size) noexcept {
  return abi::init(gather, size);
}
sluice_status sluice_merge_init(sluice_merge *merge, size_t size) noexcept {
  return abi::init(merge, size);
}

sluice_status sluice_kv_append(sluice_context *context, const sluice_append *append,
                               const sluice_launch *launch, sluice_error *error) noexcept {
  return enqueue(context, append, "append", abi::check_append, checked<sluice_append, runtime::append>,
                 launch, error);
}

sluice_status sluice_kv_copy(sluice_context *context, const sluice_page_copy *copy,
                             const sluice_launch *launch, sluice_error *error) noexcept {
  return enqueue(context, copy, "copy", abi::check_page_copy, checked<sluice_page_copy, runtime::copy_pages>,
                 launch, error);
}

sluice_status sluice_kv_gather(sluice_context *context, const sluice_gather *gather,
                               const sluice_launch *launch, sluice_error *error) noexcept {
  return enqueue(context, gather, "gather", abi::check_gather, checked<sluice_gather, runtime::gather>,
                 launch, error);
}

sluice_status sluice_cache_append(sluice_context *context, const sluice_append_args *args,
                                  const sluice_launch *launch, sluice_error *error) noexcept {
  return enqueue_values(context, args, abi::flat_append, abi::append_names, abi::check_append,
                        checked<sluice_append, runtime::append>, launch, error);
}

sluice_status sluice_cache_copy(sluice_context *context, const sluice_copy_args *args,
                                const sluice_launch *launch, sluice_error *error) noexcept {
  return enqueue_values(context, args, abi::flat_copy, abi::copy_names, abi::check_page_copy,
                        checked<sluice_page_copy, runtime::copy_pages>, launch, error);
}

sluice_status sluice_cache_gather(sluice_context *context, const sluice_gather_args *args,
                                  const sluice_launch *launch, sluice_error *error) noexcept {
  return enqueue_values(context, args, abi::flat_gather, abi::gather_names, abi::check_gather,
                        checked<sluice_gather, runtime::gather>, launch, error);
}

sluice_status sluice_attention_merge(sluice_context *context, const sluice_merge_args *args,
                                     const sluice_launch *launch, sluice_error *error) noexcept {
  return enqueue_values(context, args, abi::flat_merge, abi::merge_names, abi::check_merge, runtime::merge,
                        launch, error);
}

sluice_status sluice_merge_states(sluice_context *context, const sluice_merge *merge,
                                  const sluice_launch *launch, sluice_error *error) noexcept {
  return enqueue(context, merge, "merge", abi::check_merge, runtime::merge, launch, error);
}

} // extern "C"

//===- cache_ops.cpp - the C ABI: appends and merges ----------------------------------------------------===//
#include "runtime/cache_ops.h"
#include "abi/cache_op_checks.h"
#include "abi/checks.h"
#include "abi/contents.h"
#include "abi/handles.h"
#include "abi/wall.h"

using namespace sluice;

namespace {

template <typename Call>
sluice_status enqueue(sluice_context *context, const Call *given, const char *name,
                      void (*check)(const Call &),
                      void (*run)(runtime::Context &, const Call &, const sluice_launch &),
                      const sluice_launch *launch, sluice_error *error) {
  return abi::wall(error, [&] {
    runtime::Context &shared = *abi::context_of(context);
    Call call_copy;
    sluice_launch launch_copy;
    const Call &call = abi::view(given, name, call_copy);
    const sluice_launch &where = abi::view_launch(launch, launch_copy);
    check(call);
    abi::check_dependencies(where);
    run(shared, call, where);
  });
}

} // namespace

extern "C" {

sluice_status sluice_append_init(sluice_append *append, size_t size) noexcept {
  return abi::init(append, size);
}
sluice_status sluice_merge_init(sluice_merge *merge, size_t size) noexcept {
  return abi::init(merge, size);
}

sluice_status sluice_kv_append(sluice_context *context, const sluice_append *append,
                               const sluice_launch *launch, sluice_error *error) noexcept {
  const auto run = [](runtime::Context &shared, const sluice_append &call, const sluice_launch &where) {
    runtime::append(shared, call, abi::with_contents_check(shared.device(), where, call));
  };
  return enqueue(context, append, "append", abi::check_append, +run, launch, error);
}

sluice_status sluice_merge_states(sluice_context *context, const sluice_merge *merge,
                                  const sluice_launch *launch, sluice_error *error) noexcept {
  return enqueue(context, merge, "merge", abi::check_merge, runtime::merge, launch, error);
}

} // extern "C"

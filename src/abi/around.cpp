//===- around.cpp - the C ABI: appends and merges -------------------------------------------------------===//
#include "runtime/around.h"
#include "abi/around_checks.h"
#include "abi/checks.h"
#include "abi/handles.h"
#include "abi/wall.h"

using namespace sluice;

namespace {

runtime::Context &context_of(sluice_context *context) {
  if (context == nullptr)
    throw support::Failure(support::Status::invalid_argument, "context", "context is NULL");
  return *context->context;
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
  return abi::wall(error, [&] {
    runtime::Context &shared = context_of(context);
    sluice_append append_copy;
    sluice_launch launch_copy;
    const sluice_append &call = abi::view(append, "append", append_copy);
    const sluice_launch &where = abi::view(launch, "launch", launch_copy);
    abi::check_append(call);
    abi::check_dependencies(where);
    runtime::append(shared, call, where);
  });
}

sluice_status sluice_merge_states(sluice_context *context, const sluice_merge *merge,
                                  const sluice_launch *launch, sluice_error *error) noexcept {
  return abi::wall(error, [&] {
    runtime::Context &shared = context_of(context);
    sluice_merge merge_copy;
    sluice_launch launch_copy;
    const sluice_merge &call = abi::view(merge, "merge", merge_copy);
    const sluice_launch &where = abi::view(launch, "launch", launch_copy);
    abi::check_merge(call);
    abi::check_dependencies(where);
    runtime::merge(shared, call, where);
  });
}

} // extern "C"

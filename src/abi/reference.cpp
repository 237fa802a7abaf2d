//===- reference.cpp - the C ABI: the host reference ----------------------------------------------------===//
#include "abi/cache_op_checks.h"
#include "abi/cache_values.h"
#include "abi/checks.h"
#include "abi/entry.h"
#include "abi/wall.h"
#include "calls/args.h"
#include "calls/cache_ops.h"
#include "calls/problem.h"
#include "reference/append.h"
#include "reference/attention.h"
#include "reference/contents.h"
#include "reference/page_copy.h"
#include "runtime/cache_ops.h"
#include "runtime/call_rows.h"

using namespace sluice;

void abi::compute_on_host(const calls::Problem &problem, const calls::Args &call) {
  const TensorRules rules = {0, 1, false, 0};
  check_args(problem, rules, call);
  if (runtime::has_no_rows(call)) return;
  reference::check_contents(problem, call);
  reference::attention(problem, call);
}

namespace {

/// What all references of cache operations do with a call.
template <typename Call>
void compute(const Call &call, void (*check)(const Call &), void (*perform)(const Call &)) {
  check(call);
  if (runtime::has_nothing_to_do(call)) return;
  reference::check_contents(call);
  perform(call);
}

template <typename Call, typename Args>
sluice_status reference_of(const Args *args, void (*flatten)(const Args *, Call &), abi::Names names,
                           void (*check)(const Call &), void (*perform)(const Call &), sluice_error *error) {
  return abi::wall(error, [&] {
    Call call = {};
    flatten(args, call);
    abi::retelling(names, [&] { compute(call, check, perform); });
  });
}

} // namespace

extern "C" {

sluice_status sluice_cache_append_reference(const sluice_append_args *args, sluice_error *error) noexcept {
  return reference_of(args, abi::flat_append, abi::append_names, abi::check_append, reference::append, error);
}

sluice_status sluice_cache_copy_reference(const sluice_copy_args *args, sluice_error *error) noexcept {
  return reference_of(args, abi::flat_copy, abi::copy_names, abi::check_page_copy, reference::copy_pages,
                      error);
}

sluice_status sluice_cache_gather_reference(const sluice_gather_args *args, sluice_error *error) noexcept {
  return reference_of(args, abi::flat_gather, abi::gather_names, abi::check_gather, reference::gather, error);
}

} // extern "C"

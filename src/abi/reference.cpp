//===- reference.cpp - the C ABI: the host reference ----------------------------------------------------===//
#include "abi/cache_op_checks.h"
#include "abi/cache_values.h"
#include "abi/checks.h"
#include "abi/entry.h"
#include "abi/wall.h"
#include "reference/append.h"
#include "reference/attention.h"
#include "reference/contents.h"
#include "reference/page_copy.h"
#include "runtime/cache_ops.h"
#include "runtime/call_rows.h"

using namespace sluice;

void abi::compute_on_host(const sluice_problem &problem, const sluice_args &call) {
  const TensorRules rules = {0, 1, false, 0};
  check_args(problem, rules, call);
  if (runtime::has_no_rows(call)) return;
  reference::check_contents(problem, call);
  reference::attention(problem, call);
}

extern "C" sluice_status sluice_reference(const sluice_problem *problem, const sluice_args *args,
                                          sluice_error *error) noexcept {
  return abi::wall(error, [&] {
    sluice_problem problem_copy;
    sluice_args args_copy, lengths_copy;
    const sluice_problem &wanted = abi::view(problem, "problem", problem_copy);
    const sluice_args &given = abi::view(args, "args", args_copy);
    abi::check_problem(wanted);
    const sluice_args &call = abi::with_lengths(wanted, given, lengths_copy);
    abi::compute_on_host(wanted, call);
  });
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

template <typename Call>
sluice_status reference_of(const Call *given, const char *name, void (*check)(const Call &),
                           void (*perform)(const Call &), sluice_error *error) {
  return abi::wall(error, [&] {
    Call copy;
    compute(abi::view(given, name, copy), check, perform);
  });
}

template <typename Call, typename Args>
sluice_status reference_of_values(const Args *args, void (*flatten)(const Args *, Call &), abi::Names names,
                                  void (*check)(const Call &), void (*perform)(const Call &),
                                  sluice_error *error) {
  return abi::wall(error, [&] {
    Call call = {};
    flatten(args, call);
    abi::retelling(names, [&] { compute(call, check, perform); });
  });
}

} // namespace

extern "C" {

sluice_status sluice_reference_copy(const sluice_page_copy *copy, sluice_error *error) noexcept {
  return reference_of(copy, "copy", abi::check_page_copy, reference::copy_pages, error);
}

sluice_status sluice_reference_gather(const sluice_gather *gather, sluice_error *error) noexcept {
  return reference_of(gather, "gather", abi::check_gather, reference::gather, error);
}

sluice_status sluice_reference_append(const sluice_append *append, sluice_error *error) noexcept {
  return reference_of(append, "append", abi::check_append, reference::append, error);
}

sluice_status sluice_cache_append_reference(const sluice_append_args *args, sluice_error *error) noexcept {
  return reference_of_values(args, abi::flat_append, abi::append_names, abi::check_append, reference::append,
                             error);
}

sluice_status sluice_cache_copy_reference(const sluice_copy_args *args, sluice_error *error) noexcept {
  return reference_of_values(args, abi::flat_copy, abi::copy_names, abi::check_page_copy,
                             reference::copy_pages, error);
}

sluice_status sluice_cache_gather_reference(const sluice_gather_args *args, sluice_error *error) noexcept {
  return reference_of_values(args, abi::flat_gather, abi::gather_names, abi::check_gather, reference::gather,
                             error);
}

} // extern "C"

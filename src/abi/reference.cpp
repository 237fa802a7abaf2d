//===- reference.cpp - the C ABI: the host reference ----------------------------------------------------===//
#include "abi/cache_op_checks.h"
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

extern "C" sluice_status sluice_reference_copy(const sluice_page_copy *copy, sluice_error *error) noexcept {
  return abi::wall(error, [&] {
    sluice_page_copy view;
    const sluice_page_copy &call = abi::view(copy, "copy", view);
    abi::check_page_copy(call);
    if (runtime::has_nothing_to_do(call)) return;
    reference::check_contents(call);
    reference::copy_pages(call);
  });
}

extern "C" sluice_status sluice_reference_gather(const sluice_gather *gather, sluice_error *error) noexcept {
  return abi::wall(error, [&] {
    sluice_gather copy;
    const sluice_gather &call = abi::view(gather, "gather", copy);
    abi::check_gather(call);
    if (runtime::has_nothing_to_do(call)) return;
    reference::check_contents(call);
    reference::gather(call);
  });
}

extern "C" sluice_status sluice_reference_append(const sluice_append *append, sluice_error *error) noexcept {
  return abi::wall(error, [&] {
    sluice_append copy;
    const sluice_append &call = abi::view(append, "append", copy);
    abi::check_append(call);
    if (runtime::has_nothing_to_do(call)) return;
    reference::check_contents(call);
    reference::append(call);
  });
}

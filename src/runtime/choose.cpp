//===- choose.cpp - chooses the kernels of a plan -------------------------------------------------------===//
#include "runtime/choose.h"

#include "calls/problem.h"
#include "runtime/by_cost.h"
#include "runtime/by_rule.h"
#include "runtime/candidates.h"
#include "runtime/problem.h"
#include "support/failure.h"

#include <cmath>
#include <utility>

namespace sluice::runtime {
namespace {

using support::text;

OwnChoice choose_own(const Candidates &candidates, const calls::Problem &problem, uint32_t compute_units) {
  const bool is_bounded =
      problem.max_batch != 0 && problem.max_kv_len != 0 &&
      (problem.max_q_len != 0 || (!candidates.prefill.empty() && !candidates.decode.empty()));
  return is_bounded && !is_batch_invariant(problem) ? choose_by_cost(candidates, problem, compute_units)
                                                    : choose_by_rule(candidates, problem, compute_units);
}

PrefixChoice choose_prefix(const Candidates &candidates, const calls::Problem &problem, uint32_t own_splits,
                           uint32_t compute_units) {
  const Kernels kernels = find_prefix_candidates(candidates, problem);
  return is_batch_invariant(problem) ? choose_prefix_by_rule(kernels, problem, own_splits)
                                     : choose_prefix_by_cost(kernels, problem, own_splits, compute_units);
}

/// Whether results go to workspace, from where another kernel merges them.
bool has_merge(const calls::Problem &problem, const Splits &own_splits) {
  if (is_cascade(problem) || own_splits.count > 1) return true;
  // A sink logit joins the denominator in the merge or not at all. If bits must not depend on whether there
  // is a merge, there always is one.
  return own_splits.are_at_fixed_places() && problem.flags & calls::sinks;
}

const char *split_word(uint32_t count) {
  return count == 1 ? " split" : " splits";
}

/// The prefixes come first: a caller may cut the reason at its end.
std::string reason_of(const Choice &choice) {
  const OwnChoice &own = choice.own;
  const PrefixChoice &prefix = choice.prefix;
  std::string out;
  if (prefix.kernel != nullptr) {
    out = text("prefixes: ", package::format_kernel_name(prefix.kernel->entry.name), " in ",
               prefix.splits.count, split_word(prefix.splits.count));
    if (prefix.estimate) out += text(", ", uint64_t(std::llround(prefix.estimate->clk())), " clk");
    out += "; own keys: ";
  }
  out += own.reason;
  if (own.many != nullptr && own.few != nullptr) {
    out += text("; sequences of up to ", own.few_rows,
                " rows: ", package::format_kernel_name(own.few->entry.name));
  }
  if (choice.merging != nullptr) out += text("; keys in ", own.splits.count, split_word(own.splits.count));
  return out;
}

} // namespace

Choice choose_kernel(const Context &context, const calls::Problem &problem) {
  const uint32_t compute_units = context.device().compute_units;
  const Candidates candidates = find_candidates(context, problem);
  Choice choice;
  choice.own = choose_own(candidates, problem, compute_units);
  choice.parts = choice.own.splits.count;
  if (is_cascade(problem)) {
    choice.prefix = choose_prefix(candidates, problem, choice.own.splits.count, compute_units);
    choice.parts = choice.prefix.first_split + choice.prefix.splits.count;
  }
  if (has_merge(problem, choice.own.splits)) {
    choice.merging = candidates.merging;
    choice.workspace_bytes = splits_workspace(problem, choice.parts, choice.own.few_rows);
  }
  choice.reason = reason_of(choice);
  return choice;
}

void load_kernels(Context &context, const Choice &choice) {
  for (const package::PackedKernel *kernel : {choice.own.many, choice.own.few, choice.prefix.kernel,
                                              choice.merging != nullptr ? choice.merging->packed : nullptr})
    if (kernel != nullptr) context.function(*kernel);
}

} // namespace sluice::runtime

//===- attention_values.h - the values of attention.h as one problem and one call -----------------------===//
//
// The header describes attention by small structs that point to one another. The checks and the runtime know
// the flat ones of src/calls, one problem and one call; these functions make them, check what only the small
// structs can get wrong, and retell what the checks of the flat ones say with the paths of the small ones.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include "abi/kv_values.h"
#include "abi/retell.h"
#include "calls/args.h"
#include "calls/problem.h"

#include <sluice/attention.h>

namespace sluice::abi {

/// A sluice_attention as one problem, with what its calls would compute again and again.
struct FlatAttention {
  calls::Problem problem;
  PlanFormat kv; // of the keys of calls
  double usual_scale;
};

/// Throws support::Failure (invalid_argument or newer_struct) with the path of the member at fault.
FlatAttention flat_attention(const sluice_attention *attention);

/// Likewise for a call of a plan. `out` must be all zero.
void flat_args(const FlatAttention &plan, const sluice_attention_args *args, calls::Args &out);

/// The names that attention.h has for the members of a flat problem and a flat call.
extern const Names problem_names, args_names;

} // namespace sluice::abi

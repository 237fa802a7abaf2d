//===- args_checks.h - what a caller can get wrong in the parts of a call -------------------------------===//
//
// check_args (checks.h) calls these, in this order. On the path of every run: no allocation unless something
// is wrong.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include "abi/checks.h"
#include "calls/args.h"
#include "calls/problem.h"
#include "runtime/call_rows.h"

#include <sluice/sluice.h>

namespace sluice::abi {

// sequence_checks.cpp: which of the arrays that locate sequences, prefixes and their pages each mode takes.
void check_sequences(const calls::Problem &problem, const calls::Args &args);
void check_counts(const calls::Problem &problem, const TensorRules &rules, const calls::Args &args);
void check_prefixes(const calls::Problem &problem, const calls::Args &args);
/// Of a problem without calls::prefixes.
void check_no_prefixes(const calls::Args &args);

// operand_checks.cpp: the tensors. `rows` are those of q, `keys` those of k and v.
void check_tensors(const calls::Problem &problem, const TensorRules &rules, const calls::Args &args,
                   const runtime::Rows &rows, const runtime::Rows &keys);
void check_lse(const calls::Problem &problem, const calls::Args &args, const runtime::Rows &rows);
/// The keys of prefixes that are not in pages.
void check_prefix_tensors(const calls::Problem &problem, const TensorRules &rules, const calls::Args &args);

// score_checks.cpp: what changes the scores, the scales, and the masks of sequences.
void check_scores(const calls::Problem &problem, const TensorRules &rules, const calls::Args &args);
void check_scales(const calls::Problem &problem, const TensorRules &rules, const calls::Args &args,
                  const runtime::Rows &keys);
void check_sequence_masks(const calls::Problem &problem, const TensorRules &rules, const calls::Args &args);

} // namespace sluice::abi

//===- args_checks.h - what a caller can get wrong in the parts of a call -------------------------------===//
//
// check_args (checks.h) calls these, in this order. On the path of every run: no allocation unless something
// is wrong.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include "abi/checks.h"
#include "runtime/call_rows.h"

#include <sluice/sluice.h>

namespace sluice::abi {

// sequence_checks.cpp: which of the arrays that locate sequences, prefixes and their pages each mode takes.
void check_sequences(const sluice_problem &problem, const sluice_args &args);
void check_counts(const sluice_problem &problem, const TensorRules &rules, const sluice_args &args);
void check_prefixes(const sluice_problem &problem, const sluice_args &args);
/// Of a problem without SLUICE_SHARED_PREFIX.
void check_no_prefixes(const sluice_args &args);

// operand_checks.cpp: the tensors. `rows` are those of q, `keys` those of k and v.
void check_tensors(const sluice_problem &problem, const TensorRules &rules, const sluice_args &args,
                   const runtime::Rows &rows, const runtime::Rows &keys);
void check_lse(const sluice_problem &problem, const sluice_args &args, const runtime::Rows &rows);
/// The keys of prefixes that are not in pages.
void check_prefix_tensors(const sluice_problem &problem, const TensorRules &rules, const sluice_args &args);

// score_checks.cpp: what changes the scores, the scales, and the masks of sequences.
void check_scores(const sluice_problem &problem, const TensorRules &rules, const sluice_args &args);
void check_scales(const sluice_problem &problem, const TensorRules &rules, const sluice_args &args,
                  const runtime::Rows &keys);
void check_sequence_masks(const sluice_problem &problem, const TensorRules &rules, const sluice_args &args);

} // namespace sluice::abi

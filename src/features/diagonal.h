//===- diagonal.h - where the diagonal of a mask or of ALiBi is -----------------------------------------===//
#pragma once

#include "calls/args.h"
#include "calls/problem.h"
#include "features/feature.h"

namespace sluice::features {

inline constexpr Need diagonal_needs[] = {SLUICE_FIELD_NEED(
    names::given_diagonal, mask_alignment, p.mask_alignment == SLUICE_GIVEN_DIAGONAL, "SLUICE_TOP_LEFT (1)")};
inline constexpr Question diagonal_questions[] = {{"causal, with a diagonal per sequence", "`alignment`",
                                                   names::given_diagonal,
                                                   [](calls::Problem &p) {
                                                     p.flags |= calls::causal;
                                                     p.mask_alignment = SLUICE_GIVEN_DIAGONAL;
                                                   },
                                                   "*_diagonal_*"}};

inline void check_diagonal(const calls::Problem &problem) {
  tensors::check_known("mask_alignment", problem.mask_alignment, SLUICE_GIVEN_DIAGONAL,
                       "SLUICE_GIVEN_DIAGONAL (2)");
}

/// What depends on the place of a key among all of a row's keys would need the lengths of both its prefix and
/// its sequence.
inline void check_diagonal_with_prefix(const calls::Problem &problem) {
  if (!(problem.flags & (calls::causal | calls::causal_by_sequence)) ||
      problem.mask_alignment != SLUICE_TOP_LEFT)
    return;
  tensors::unsupported(
      "mask_alignment",
      support::text("mask_alignment is SLUICE_TOP_LEFT (1), and flags has ",
                    problem.flags & calls::causal ? "SLUICE_MASK_CAUSAL" : "SLUICE_MASK_CAUSAL_BY_SEQUENCE",
                    " and SLUICE_ATTENTION_PREFIXES; nearest supported: SLUICE_BOTTOM_RIGHT (0)"));
}

inline void check_diagonals(const calls::Problem &problem, const tensors::TensorRules &rules,
                            const calls::Args &args) {
  // Kernels add the number of a row to that of a key on the diagonal, which is at most as large.
  constexpr int32_t most_rows = 1 << 30;
  const bool has_diagonals = problem.mask_alignment == SLUICE_GIVEN_DIAGONAL;
  tensors::check_given("diagonals", args.diagonals, has_diagonals,
                       "the problem's mask_alignment is not SLUICE_GIVEN_DIAGONAL");
  if (rules.on_device() && has_diagonals && args.q_len > most_rows) {
    tensors::unsupported("q_len",
                         support::text("q_len is ", args.q_len,
                                       " with SLUICE_GIVEN_DIAGONAL; nearest supported: ", most_rows));
  }
}

inline void check_range_of_diagonals(const calls::Args &args) {
  constexpr int32_t most = package::kernarg_most_diagonal;
  for (int64_t b = 0; args.diagonals != nullptr && b < args.batch; ++b) {
    if (args.diagonals[b] < -most || args.diagonals[b] > most)
      tensors::bad_element("diagonals", b, args.diagonals[b], "it must be between -2^30 and 2^30");
  }
}

inline void fill_alignment(package::AttentionKernargs &out, const calls::Problem &problem) {
  if (problem.mask_alignment == SLUICE_TOP_LEFT) out.score_flags |= package::score_top_left;
  if (problem.mask_alignment == SLUICE_GIVEN_DIAGONAL) out.score_flags |= package::score_of_sequence;
}

/// The key on the diagonal of row 0 in a sequence of `rows` rows and `keys` keys.
inline int64_t first_diagonal(const calls::Problem &problem, const calls::Args &args, int64_t sequence,
                              int64_t rows, int64_t keys) {
  if (problem.mask_alignment == SLUICE_TOP_LEFT) return 0;
  return problem.mask_alignment == SLUICE_GIVEN_DIAGONAL ? args.diagonals[sequence] : keys - rows;
}

inline constexpr Feature diagonal = {
    .needs = diagonal_needs,
    .questions = diagonal_questions,
    .check_problem = check_diagonal,
    .check_with_prefix = check_diagonal_with_prefix,
    .check_sequences = check_diagonals,
    .check_contents = check_range_of_diagonals,
    .fill_problem = fill_alignment,
    .fill_call = [](package::AttentionKernargs &out, const calls::Problem &,
                    const calls::Args &call) { out.diagonals = address_of(call.diagonals); },
};

} // namespace sluice::features

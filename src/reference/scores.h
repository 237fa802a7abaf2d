//===- scores.h - the score of a row and a key ----------------------------------------------------------===//
#pragma once

#include "calls/args.h"
#include "calls/problem.h"
#include "reference/tensors.h"

#include <sluice/sluice.h>

#include <cstdint>
#include <span>

namespace sluice::reference {

/// The scale that a scale kind selects: the head's, the tensor's, or 1.
double scale_of(uint32_t scale_kind, const float *scales, int64_t head);

/// S[i][j] of the numerical contract; q and k are the rows of i and j. Key j may be a prefix's, so its scale
/// is given.
double score(const calls::Problem &problem, const calls::Args &args, const Sequence &sequence, int64_t q_head,
             int64_t i, int64_t j, std::span<const double> q, std::span<const double> k, double k_scale);

} // namespace sluice::reference

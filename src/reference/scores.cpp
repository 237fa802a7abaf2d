//===- scores.cpp - the score of a row and a key --------------------------------------------------------===//
#include "reference/scores.h"

#include "calls/args.h"
#include "calls/problem.h"
#include "features/all.h"
#include "reference/visibility.h"

#include <cmath>
#include <cstddef>

namespace sluice::reference {

double scale_of(uint32_t scale_kind, const float *scales, int64_t head) {
  if (scale_kind == SLUICE_SCALE_NONE) return 1;
  return scales[scale_kind == SLUICE_SCALE_PER_HEAD ? head : 0];
}

double score(const calls::Problem &problem, const calls::Args &args, const Sequence &sequence, int64_t q_head,
             int64_t i, int64_t j, std::span<const double> q, std::span<const double> k, double k_scale) {
  double dot = 0;
  for (size_t dim = 0; dim < q.size(); ++dim)
    dot += q[dim] * k[dim];

  double s = args.scale * scale_of(problem.q_scale_kind, args.q_scale, q_head) * k_scale * dot;
  const features::Place place = place_of(sequence, q_head, i, j);
  features::for_each<&features::Feature::changed_score>(
      [&](auto change) { s = change(problem, args, place, s); });
  return s;
}

} // namespace sluice::reference

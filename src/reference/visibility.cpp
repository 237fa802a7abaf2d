//===- visibility.cpp - which keys a row sees -----------------------------------------------------------===//
#include "reference/visibility.h"

#include "calls/args.h"
#include "calls/problem.h"
#include "features/all.h"

namespace sluice::reference {

using features::any;
using features::Feature;

features::Place place_of(const Sequence &sequence, int64_t q_head, int64_t i, int64_t j) {
  return {.sequence = sequence.number(),
          .q_head = q_head,
          .row = i,
          .key = j,
          .rows = sequence.q_len(),
          .keys = sequence.kv_len(),
          .diagonal = i + sequence.shift()};
}

bool is_visible(const calls::Problem &problem, const calls::Args &args, const Sequence &sequence,
                int64_t q_head, int64_t i, int64_t j) {
  const features::Place place = place_of(sequence, q_head, i, j);
  if (!any<&Feature::reveals>(problem, args, place) && any<&Feature::hides_by_distance>(problem, args, place))
    return false;
  if (sequence.is_missing(j, q_head / (problem.q_heads / problem.kv_heads))) return false;
  return !any<&Feature::hides>(problem, args, place);
}

} // namespace sluice::reference

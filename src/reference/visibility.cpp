//===- visibility.cpp - which keys a row sees -----------------------------------------------------------===//
#include "reference/visibility.h"

#include <limits>
#include <numbers>

namespace sluice::reference {
namespace {

/// `j` of the mask.
bool mask_bit(const sluice_args &args, const Sequence &sequence, int64_t q_head, int64_t i, int64_t j) {
  const int64_t byte = index_of(args.mask, sequence.number(), q_head, i, j / 8);
  return static_cast<const uint8_t *>(args.mask.data)[byte] >> (j % 8) & 1;
}

/// As kernels compute it, with scores to base 2: a finite bias also hides a key if it is beyond F32's range
/// then.
bool bias_hides(const sluice_problem &problem, const sluice_args &args, const Sequence &sequence,
                int64_t q_head, int64_t i, int64_t j) {
  const double bias =
      load(args.bias.data, problem.bias_type, index_of(args.bias, sequence.number(), q_head, i, j));
  return float(bias) * std::numbers::log2e_v<float> == -std::numeric_limits<float>::infinity();
}

} // namespace

int64_t distance(const Sequence &sequence, int64_t i, int64_t j) {
  return j - i - sequence.shift();
}

bool is_visible(const sluice_problem &problem, const sluice_args &args, const Sequence &sequence,
                int64_t q_head, int64_t i, int64_t j) {
  const int64_t d = distance(sequence, i, j);
  const Sequence::Span span = sequence.span_of(i + sequence.shift());
  if (j < span.first || j >= span.end) {
    if (sequence.is_causal() && d > 0) return false;
    if (problem.flags & SLUICE_HAS_WINDOW_RIGHT && d > problem.window_right) return false;
    if (problem.flags & SLUICE_HAS_WINDOW_LEFT && d < -int64_t{problem.window_left} &&
        j >= problem.sink_tokens)
      return false;
  }
  if (sequence.is_missing(j, q_head / (problem.q_heads / problem.kv_heads))) return false;
  const int64_t first_masked =
      problem.flags & SLUICE_MASK_NEW_ROWS ? sequence.kv_len() - sequence.q_len() : 0;
  if (problem.flags & SLUICE_BOOL_MASK && j >= first_masked &&
      !mask_bit(args, sequence, q_head, i, j - first_masked))
    return false;
  return problem.bias_type == 0 || !bias_hides(problem, args, sequence, q_head, i, j);
}

} // namespace sluice::reference

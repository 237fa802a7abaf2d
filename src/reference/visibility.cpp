//===- visibility.cpp - which keys a row sees -----------------------------------------------------------===//
#include "reference/visibility.h"

#include <limits>
#include <numbers>

namespace sluice::reference {
namespace {

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

int64_t distance(const sluice_problem &problem, const Sequence &sequence, int64_t i, int64_t j) {
  const int64_t shift = problem.mask_alignment == SLUICE_TOP_LEFT ? 0 : sequence.kv_len() - sequence.q_len();
  return j - i - shift;
}

bool is_visible(const sluice_problem &problem, const sluice_args &args, const Sequence &sequence,
                int64_t q_head, int64_t i, int64_t j) {
  const int64_t d = distance(problem, sequence, i, j);
  if (problem.flags & SLUICE_CAUSAL && d > 0) return false;
  if (problem.flags & SLUICE_HAS_WINDOW_RIGHT && d > problem.window_right) return false;
  if (problem.flags & SLUICE_HAS_WINDOW_LEFT && d < -int64_t{problem.window_left} && j >= problem.sink_tokens)
    return false;
  if (problem.flags & SLUICE_BOOL_MASK && !mask_bit(args, sequence, q_head, i, j)) return false;
  return problem.bias_type == 0 || !bias_hides(problem, args, sequence, q_head, i, j);
}

} // namespace sluice::reference

//===- accuracy.h - the difference between results and expectations -------------------------------------===//
//
// The bounds of docs/concepts/numerics.md, computed from the inputs: dtype, head size, length and the size of
// the numbers determine the largest effect of rounding, and an error beyond that is a defect.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include "tools/sluice/attention_call.h"

#include <span>
#include <string>
#include <vector>

namespace sluice::tools {

/// What limits the judgement of an element; combined by |.
enum Limit : uint8_t {
  may_be_nan = 1, // a NaN or an infinity in V reaches it: if infinity is expected, NaN is right, too
  unbounded = 2,  // its tolerance exceeds any value the row could hold: being within it means nothing
};

/// Results in double precision, with the largest error that a kernel's rounding can cause at each element. If
/// a value is not finite, its tolerance is 0.
struct Reference {
  std::vector<double> o, o_tolerance;     // [batch, q_len, q_heads, dim]
  std::vector<double> lse, lse_tolerance; // [batch, q_heads, q_len]
  std::vector<uint8_t> o_limits, lse_limits;
};

Reference compute_reference(const CallOptions &options, const CallInputs &inputs);

struct ErrorFigures {
  size_t count = 0;
  double max_absolute = 0;
  double max_relative = 0; // over elements whose expected value is not 0
  double rms = 0;
  double worst_ratio = 0; // the largest error relative to its tolerance: at most 1 passes
  size_t worst_at = 0;
  size_t beyond = 0;     // elements beyond their tolerance
  size_t not_judged = 0; // NaN where NaN is allowed
  size_t unbounded = 0;  // elements whose tolerance means nothing

  bool passed() const { return beyond == 0 && unbounded == 0; }
};

/// A NaN or infinite element is right if the same is expected, else an infinite error. `limits` has those of
/// each element, or is empty.
ErrorFigures measure(std::span<const double> got, std::span<const double> expected,
                     std::span<const double> tolerance, std::span<const uint8_t> limits = {});

/// Elements of any type as numbers; u16 counts as bf16.
std::vector<double> to_numbers(const NpyArray &array);

/// "O    131072 elements  max abs ...  ok"
std::string describe(const std::string &name, const ErrorFigures &figures, std::span<const int64_t> shape);

} // namespace sluice::tools

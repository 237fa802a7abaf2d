//===- compare.h - results against expectations ---------------------------------------------------------===//
#pragma once

#include "conformance/attention/memory.h"
#include "conformance/attention/oracle.h"
#include "conformance/shared/comparison.h"

namespace sluice::conformance {

/// Whose rounding errors are allowed.
enum class Judge : uint8_t {
  kernel,    // rounding of every operation in a kernel's types: the tolerances of compute_expected
  reference, // one rounding, of the result
};

Comparison compare(const Case &c, const Expected &expected, const Outputs &outputs, Judge judge);

} // namespace sluice::conformance

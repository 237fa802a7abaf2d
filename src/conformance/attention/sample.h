//===- sample.h - a representative sample of cases ------------------------------------------------------===//
#pragma once

#include "conformance/attention/cases.h"

namespace sluice::conformance {

/// One for each case: whether it is in the sample. This has every third case, and the first with each pair of
/// choice and mode that those lack.
std::vector<bool> sample_of(const std::vector<Case> &cases);

} // namespace sluice::conformance

//===- sample.h - a representative sample of cases ------------------------------------------------------===//
#pragma once

#include "cases.h"

namespace sluice::test {

/// One for each case: whether it is in the sample. The sample contains every third case, and for each choice
/// and mode that no third case combines, the first case that does.
std::vector<bool> sample_of(const std::vector<Case> &cases);

} // namespace sluice::test

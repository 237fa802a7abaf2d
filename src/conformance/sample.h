//===- sample.h - some cases that stand for all ---------------------------------------------------------===//
#pragma once

#include "cases.h"

namespace sluice::test {

/// One for each case: whether it is in the sample. Every third is, and the first of those that make a choice
/// in a mode which no third case makes in it.
std::vector<bool> sample_of(const std::vector<Case> &cases);

} // namespace sluice::test

//===- edge_cases.h - what is known to be difficult -----------------------------------------------------===//
#pragma once

#include "collector.h"

namespace sluice::test {

/// Shapes take turns.
std::vector<Case> edge_cases(const Collector &shapes);

} // namespace sluice::test

//===- edge_cases.h - cases known to be difficult -------------------------------------------------------===//
#pragma once

#include "collector.h"

namespace sluice::test {

/// Shapes rotate.
std::vector<Case> edge_cases(const Collector &shapes);

} // namespace sluice::test

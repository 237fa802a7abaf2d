//===- edge_cases.h - cases known to be difficult -------------------------------------------------------===//
#pragma once

#include "conformance/attention/collector.h"

namespace sluice::conformance {

/// Shapes rotate.
std::vector<Case> edge_cases(const Collector &shapes);

} // namespace sluice::conformance

//===- prefix_cases.h - prefixes of keys that rows share ------------------------------------------------===//
#pragma once

#include "conformance/attention/collector.h"

namespace sluice::conformance {

/// Shapes rotate.
std::vector<Case> prefix_cases(const Collector &shapes);

} // namespace sluice::conformance

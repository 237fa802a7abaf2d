//===- kernel_mutants.h - small defects that a single kernel might have ---------------------------------===//
#pragma once

#include "conformance/attention/mutant.h"

#include <vector>

namespace sluice::conformance {

/// Those of the changes of scores come last.
const std::vector<Mutant> &mutants();

} // namespace sluice::conformance

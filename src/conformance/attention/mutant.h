//===- mutant.h - small defects that a single kernel might have -----------------------------------------===//
#pragma once

#include "conformance/attention/inputs.h"
#include "conformance/attention/kernels.h"

namespace sluice::conformance {

/// A defect, as a case and inputs whose correct result is what the defective kernel would compute.
struct Mutant {
  const char *name;
  const char *claim; // the kernels that have the defective part; "" for all
  /// Where the defect could show at all.
  bool (*shows)(const Case &);
  void (*change)(Case &, Inputs &, const Kernel &);
  bool may_lack = false; // some kernels have no case where it could show, as no plan uses them that way
};

} // namespace sluice::conformance

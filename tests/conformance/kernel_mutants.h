//===- kernel_mutants.h - small defects that one kernel alone might have --------------------------------===//
#pragma once

#include "inputs.h"
#include "kernels.h"

#include <vector>

namespace sluice::test {

/// A defect as a case and inputs for which what is right is what the kernel would give.
struct Mutant {
  const char *name;
  const char *claim; // the kernels that have what is defective; "" for all
  /// Where the defect could show at all.
  bool (*shows)(const Case &);
  void (*change)(Case &, Inputs &, const Kernel &);
  bool may_lack = false; // some kernels have no case where it could show, as no plan has them so
};

const std::vector<Mutant> &mutants();

} // namespace sluice::test

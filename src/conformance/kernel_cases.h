//===- kernel_cases.h - every feature on every kernel that claims it ------------------------------------===//
//
// The other cases leave it to the library which kernel runs. These name theirs: extents and the bounds of the
// plan are such that the library takes it, which the target says beforehand, and it is a failure if another
// one runs.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include "kernels.h"

namespace sluice::test {

/// The features that a kernel is tested for, on finite inputs.
struct KernelFeature {
  const char *name;
  const char *claim; // of the library's list for a kernel; "" where all kernels have it
  /// Puts it into a case whose heads and rows are set.
  void (*set)(Case &, const Kernel &);
  Level level = Level::full;
  bool in_parts = false; // keys must be divided, else they need not be
};
const std::vector<KernelFeature> &kernel_features();

/// Cases of the kernel, one for each feature that it claims and that some plan has with it.
std::vector<Case> cases_of_kernel(const Target &target, const Kernel &kernel, Level level);

std::vector<Case> kernel_cases(const Target &target, Level level);

} // namespace sluice::test

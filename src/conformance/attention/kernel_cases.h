//===- kernel_cases.h - every feature on every kernel that claims it ------------------------------------===//
//
// The other cases let the library choose the kernel. These name one: their extents and plan bounds make the
// library choose it, which the target confirms beforehand, and it is a failure if another one runs.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include "conformance/attention/kernels.h"

namespace sluice::conformance {

/// The features with which a kernel is tested, on finite inputs.
struct KernelFeature {
  const char *name;
  const char *claim; // in the library's list for a kernel; "" if all kernels have it
  /// Adds it to a case whose heads and rows are set.
  void (*set)(Case &, const Kernel &);
  Level level = Level::full;
  bool in_parts = false; // keys must be split; otherwise they need not be
};
const std::vector<KernelFeature> &kernel_features();

/// Cases of the kernel, one for each feature that it claims and for which some plan uses it.
std::vector<Case> cases_of_kernel(const Target &target, const Kernel &kernel, Level level);

std::vector<Case> kernel_cases(const Target &target, Level level);

} // namespace sluice::conformance

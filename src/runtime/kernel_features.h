//===- kernel_features.h - features of kernels beyond plain attention -----------------------------------===//
//
// The names that manifests list and the parts of a problem or a call that need each: the choice of a kernel
// and its refusals both use this table. A kernel that gains a feature lists its name; nothing else changes.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include "package/manifest.h"

#include <sluice/sluice.h>

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::runtime {

/// A feature that a problem may need.
struct Feature {
  std::string_view name;
  std::string_view field; // of sluice_problem, for the refusal
  bool (*is_needed)(const sluice_problem &);
  std::string (*asked)(const sluice_problem &); // "soft_cap is 30"
  std::string_view nearest;                     // value of the field that needs no feature
};

std::span<const Feature> features();

/// The names that a kernel lists: those since ABI 1.1, or the others.
std::vector<std::string> features_of(const package::KernelEntry &kernel, bool newer);

bool has_feature(const package::KernelEntry &kernel, std::string_view name);

/// Checks features that only a call asks for: members of sluice_args that the problem does not name. Throws
/// support::Failure (unsupported) if the plan's kernel lacks one. On the path of every run: no allocation
/// unless something is wrong.
void check_call_features(const package::KernelEntry &kernel, const sluice_problem &problem,
                         const sluice_args &args);

} // namespace sluice::runtime

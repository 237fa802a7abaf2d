//===- kernel_features.h - what a kernel can do beyond plain attention ----------------------------------===//
//
// The names that manifests list and what of a problem or a call needs each: the one table behind the choice
// of a kernel and its refusals. A kernel that learns something lists the name; nothing else changes.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include "package/manifest.h"

#include <sluice/sluice.h>

#include <span>
#include <string>
#include <string_view>

namespace sluice::runtime {

/// What a problem may need.
struct Feature {
  std::string_view name;
  std::string_view field; // of sluice_problem, for the refusal
  bool (*is_needed)(const sluice_problem &);
  std::string (*asked)(const sluice_problem &); // "soft_cap is 30"
  std::string_view nearest;                     // value of the field that needs no feature
};

std::span<const Feature> features();

bool has_feature(const package::KernelEntry &kernel, std::string_view name);

/// What only a call says that it needs: members of sluice_args that the problem does not name. Throws
/// support::Failure (unsupported) if the plan's kernel cannot do it. On the path of every run: no allocation
/// unless something is wrong.
void check_call_features(const package::KernelEntry &kernel, const sluice_problem &problem,
                         const sluice_args &args);

} // namespace sluice::runtime

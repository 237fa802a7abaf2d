//===- kernel_features.h - features of kernels beyond plain attention -----------------------------------===//
//
// The names that manifests list and the parts of a problem or a call that need each: the choice of a kernel
// and its refusals both use this table. A kernel that gains a feature lists its name; nothing else changes.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include "calls/args.h"
#include "calls/problem.h"
#include "features/need.h"
#include "package/manifest.h"

#include <sluice/sluice.h>

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::runtime {

/// Everything in a problem that needs a feature, in the order in which a refusal names it.
std::span<const features::Need> needs();

/// The names that a kernel lists: those that sluice_kernel_info::features has no room for, or the others.
std::vector<std::string> features_of(const package::KernelEntry &kernel, bool newer);

bool has_feature(const package::KernelEntry &kernel, std::string_view name);

/// Checks features that only a call asks for: members of calls::Args that the problem does not name. Throws
/// support::Failure (unsupported) if the plan's kernel lacks one. On the path of every run: no allocation
/// unless something is wrong.
void check_call_features(const package::KernelEntry &kernel, const calls::Problem &problem,
                         const calls::Args &args);

} // namespace sluice::runtime

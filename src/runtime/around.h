//===- around.h - appends and merges: arguments of the kernels, and their launch ------------------------===//
#pragma once

#include "runtime/context.h"

#include <sluice/sluice.h>

namespace sluice::runtime {

/// Enqueue a call whose arguments have been checked. Throw support::Failure: unsupported if the context has
/// no kernel for the types, no_device for a target, hip, or invalid_argument for what capture does not allow.
void append(Context &context, const sluice_append &call, const sluice_launch &launch);
void merge(Context &context, const sluice_merge &call, const sluice_launch &launch);

} // namespace sluice::runtime

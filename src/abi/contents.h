//===- contents.h - checks of what is in device memory, where an emulator runs them ---------------------===//
//
// A run cannot look at lengths, starts and tables, since they are on the device and count when it executes.
// On an emulated device with the check "contents" the host does, right before the kernels.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include "runtime/device.h"

#include <sluice/sluice.h>

namespace sluice::abi {

/// The launch for the work itself. If the device checks contents, the check is on the stream behind what
/// `launch` depends on, and the work no longer has to wait for that. Throws support::Failure as
/// runtime::wait_for_dependencies does, or hip.
sluice_launch with_contents_check(const runtime::Device &device, const sluice_launch &launch,
                                  const sluice_problem &problem, const sluice_args &args);
sluice_launch with_contents_check(const runtime::Device &device, const sluice_launch &launch,
                                  const sluice_append &call);

} // namespace sluice::abi

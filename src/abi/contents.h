//===- contents.h - checks of the contents of device memory, on an emulator -----------------------------===//
//
// A run cannot check lengths, starts and tables: they are on the device, and their values count when it
// executes. On an emulated device with the check "contents" the host checks them, right before the kernels.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include "runtime/device.h"

#include <sluice/sluice.h>

namespace sluice::abi {

/// The launch for the work itself. If the device checks contents, the check is enqueued on the stream after
/// the dependencies of `launch`, and the work no longer has to wait for them. Throws support::Failure as
/// runtime::wait_for_dependencies does, or hip.
sluice_launch with_contents_check(const runtime::Device &device, const sluice_launch &launch,
                                  const sluice_problem &problem, const sluice_args &args);
sluice_launch with_contents_check(const runtime::Device &device, const sluice_launch &launch,
                                  const sluice_append &call);
sluice_launch with_contents_check(const runtime::Device &device, const sluice_launch &launch,
                                  const sluice_page_copy &call);
sluice_launch with_contents_check(const runtime::Device &device, const sluice_launch &launch,
                                  const sluice_gather &call);

} // namespace sluice::abi

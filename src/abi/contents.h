//===- contents.h - checks of the contents of device memory, on an emulator -----------------------------===//
//
// A run cannot check lengths, starts and tables: they are on the device, and their values count when it
// executes. On an emulated device with the check "contents" the host checks them, right before the kernels.
// That pointers are to memory of an emulated device is checked at once.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include "calls/args.h"
#include "calls/cache_ops.h"
#include "calls/problem.h"
#include "runtime/device.h"

#include <sluice/merge.h>

namespace sluice::abi {

/// The launch for the work itself. Throws support::Failure (invalid_argument) for pointers to other memory
/// than that of an emulated device. If the device checks contents, the check is enqueued on the stream after
/// the dependencies of `launch`, and the work no longer has to wait for them. Throws support::Failure as
/// runtime::wait_for_dependencies does, or hip.
sluice_launch with_contents_check(const runtime::Device &device, const sluice_launch &launch,
                                  const calls::Problem &problem, const calls::Args &args);
sluice_launch with_contents_check(const runtime::Device &device, const sluice_launch &launch,
                                  const calls::Append &call);
sluice_launch with_contents_check(const runtime::Device &device, const sluice_launch &launch,
                                  const calls::PageCopy &call);
sluice_launch with_contents_check(const runtime::Device &device, const sluice_launch &launch,
                                  const calls::Gather &call);
sluice_launch with_contents_check(const runtime::Device &device, const sluice_launch &launch,
                                  const sluice_merge_args &call);

} // namespace sluice::abi

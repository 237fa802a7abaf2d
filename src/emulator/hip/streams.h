//===- streams.h - stream handles -----------------------------------------------------------------------===//
//
// The null stream and each thread's own stream have handles without an object.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include "emulator/hip/scheduler.h"

namespace sluice::emulator::hip {

/// Throws Failure(hipErrorInvalidHandle).
std::shared_ptr<Stream> find_stream(hipStream_t stream);
/// The same for work: refuses the null stream while it would have to wait for a capture.
std::shared_ptr<Stream> work_stream(hipStream_t stream);

/// Closes the device's streams that programs created; their work still runs.
void destroy_streams(int device);

/// Counts handles that were created and not yet destroyed.
uint64_t live_streams();
uint64_t live_events();

} // namespace sluice::emulator::hip

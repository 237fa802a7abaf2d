//===- pools.h - memory pools ---------------------------------------------------------------------------===//
//
// A pool counts what was allocated from it. It keeps nothing that was freed: an address in use again would
// hide a use after the free.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include <cstddef>

#include "emulator/hip/types.h"

namespace sluice::emulator::hip {

/// From the device's current pool. Throws Failure.
void *allocate_from_pool(size_t size, int device);
/// To be called for every block of the device that is released.
void return_to_pool(const void *pointer);

} // namespace sluice::emulator::hip

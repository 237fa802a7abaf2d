//===- pools.h - memory pools ---------------------------------------------------------------------------===//
//
// A pool counts what was allocated from it. It does not keep freed memory: reusing an address would hide a
// use after free.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include <cstddef>

#include "emulator/hip/types.h"

namespace sluice::emulator::hip {

/// Allocates from the device's current pool. Throws Failure.
void *allocate_from_pool(size_t size, int device);
/// Call it for every released block of the device.
void return_to_pool(const void *pointer);

} // namespace sluice::emulator::hip

//===- pools.h - memory pools ---------------------------------------------------------------------------===//
//
// A pool counts what was allocated from it. It does not keep freed memory: reusing an address would hide a
// use after free.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include <cstddef>
#include <memory>

#include "emulator/hip/types.h"

namespace sluice::emulator::hip {

class Stream;

/// Allocates from the device's current pool. Throws Failure.
void *allocate_from_pool(size_t size, int device);
/// From this place of the stream's order on, the memory can be used. The host has its address at once: work
/// of other streams that does not wait for the allocation is reported.
void order_allocation(const std::shared_ptr<Stream> &stream, void *pointer, size_t size);
/// Call it for every released block of the device.
void return_to_pool(const void *pointer);

} // namespace sluice::emulator::hip

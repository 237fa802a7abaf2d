//===- written_map.h - which bytes of a block have been written, by whole lines -------------------------===//
#pragma once

#include <span>

#include "emulator/check/footprint.h"
#include "emulator/memory/memory.h"

namespace sluice::emulator {

// For parts that are in the block, which tracks what was written. Both are thread-safe.
bool all_written(const MemoryBlock &block, std::span<const LinePart> parts);
void mark_all_written(const MemoryBlock &block, std::span<const LinePart> parts);

} // namespace sluice::emulator

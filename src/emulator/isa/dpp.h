//===- dpp.h - which lanes a DPP instruction reads and writes -------------------------------------------===//
#pragma once

#include <cstdint>

#include "emulator/isa/op.h"

namespace sluice::emulator {

/// A DPP control as a table: the source of each lane, and the lanes that have one.
struct DppPattern {
  uint8_t source[64];
  uint64_t has_source;
};
const DppPattern &dpp_pattern(uint32_t control);

/// The lanes of the rows and banks that the masks name.
uint64_t dpp_lanes(const DppControl &dpp);

/// The lanes whose source is a lane of `exec`; the others read 0 or keep their old value.
uint64_t dpp_lanes_with_source(const DppPattern &pattern, uint64_t exec);

} // namespace sluice::emulator

//===- access_addresses.h - the bytes that a memory instruction is about to touch -----------------------===//
//
// Computed from the registers before the instruction runs, so that its routine need not report them.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include <array>

#include "emulator/isa/wave.h"

namespace sluice::emulator::timing {

/// One access per lane.
template <class Address> struct LaneAccess {
  uint64_t lanes = 0;
  uint32_t bytes = 0; // per lane
  alignas(64) std::array<Address, wave_lanes> at;
};

/// For a FLAT, MUBUF or MTBUF instruction. Lanes out of a buffer's range and flat lanes in LDS are left out.
/// Scratch is laid out as on the chip: a dword of all lanes, then the next one.
void vector_access(Wave &w, const Op &op, LaneAccess<uint64_t> &access);

/// For a DS instruction that reads its addresses from a register; `part` counts its accesses per lane.
void lds_access(const Wave &w, const Op &op, uint32_t part, LaneAccess<uint32_t> &access);

/// For an SMEM instruction.
uint64_t scalar_access(const Wave &w, const Op &op);

} // namespace sluice::emulator::timing

//===- bank_conflicts.h - LDS cycles lost to bank conflicts ---------------------------------------------===//
#pragma once

#include <cstdint>

namespace sluice::emulator {

/// Cycles beyond those of a conflict-free access of `bytes` (4, 8, 12 or 16; less counts as 4) per lane. LDS
/// serves a wave in groups of lanes. Within a group, each bank delivers one dword per cycle, to any number of
/// lanes.
uint32_t count_bank_conflicts(const uint32_t *addresses, uint64_t lanes, uint32_t bytes);

} // namespace sluice::emulator

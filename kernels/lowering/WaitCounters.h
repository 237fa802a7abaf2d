//===- WaitCounters.h - the operand of s_waitcnt on gfx9 --------------------------------------*- C++ -*-===//
#pragma once

#include <cstdint>

namespace sluice {

// Counter values that wait for nothing, because the counter cannot exceed them (CDNA3 ISA, S_WAITCNT).
constexpr unsigned maxVmcnt = 63;
constexpr unsigned maxLgkmcnt = 15;
constexpr unsigned maxExpcnt = 7;

/// simm16 of s_waitcnt: vmcnt in bits 15:14 and 3:0, expcnt in 6:4, lgkmcnt in 11:8. Values above a counter's
/// maximum are clamped to it, which waits for more, never for less.
uint32_t encodeWaitcnt(unsigned vmcnt, unsigned lgkmcnt);

} // namespace sluice

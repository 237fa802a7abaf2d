//===- WaitCounters.h - the operand of s_waitcnt on gfx9 --------------------------------------*- C++ -*-===//
#pragma once

#include <cstdint>

namespace sluice {

/// simm16 of s_waitcnt: vmcnt in bits 15:14 and 3:0, expcnt in 6:4, lgkmcnt in 11:8 (CDNA3 ISA, S_WAITCNT).
/// The initial values wait for nothing, because no counter can exceed them.
struct WaitCounters {
  static constexpr unsigned maxVmcnt = 63, maxLgkmcnt = 15, maxExpcnt = 7;

  unsigned vmcnt = maxVmcnt, lgkmcnt = maxLgkmcnt, expcnt = maxExpcnt;

  static WaitCounters decode(int64_t immediate);
  /// Values above a counter's maximum are clamped to it, which waits for more, never for less.
  uint32_t encode() const;

  bool isForLgkmcntOnly() const { return vmcnt == maxVmcnt && expcnt == maxExpcnt; }
};

} // namespace sluice

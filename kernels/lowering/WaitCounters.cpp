//===- WaitCounters.cpp - the operand of s_waitcnt on gfx9 ----------------------------------------------===//
#include "lowering/WaitCounters.h"

#include <algorithm>

namespace sluice {

uint32_t encodeWaitcnt(unsigned vmcnt, unsigned lgkmcnt) {
  vmcnt = std::min(vmcnt, maxVmcnt);
  lgkmcnt = std::min(lgkmcnt, maxLgkmcnt);
  return (vmcnt & 15) | (vmcnt >> 4) << 14 | maxExpcnt << 4 | lgkmcnt << 8;
}

} // namespace sluice

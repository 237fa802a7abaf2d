//===- WaitCounters.cpp - the operand of s_waitcnt on gfx9 ----------------------------------------------===//
#include "target/WaitCounters.h"

#include <algorithm>

namespace sluice {

WaitCounters WaitCounters::decode(int64_t immediate) {
  uint32_t bits = uint32_t(immediate);
  return {.vmcnt = (bits & 15) | (bits >> 14 & 3) << 4, .lgkmcnt = bits >> 8 & 15, .expcnt = bits >> 4 & 7};
}

uint32_t WaitCounters::encode() const {
  unsigned vm = std::min(vmcnt, maxVmcnt);
  return (vm & 15) | (vm >> 4) << 14 | std::min(expcnt, maxExpcnt) << 4 | std::min(lgkmcnt, maxLgkmcnt) << 8;
}

} // namespace sluice

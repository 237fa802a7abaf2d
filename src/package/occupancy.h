//===- occupancy.h - how much of a kernel fits on a compute unit ----------------------------------------===//
//
// Four SIMDs of 512 registers a lane, at most eight waves each; 64 KiB of LDS in pieces of 512 bytes; at most
// sixteen workgroups that need a barrier.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include <cstdint>

namespace sluice::package {

struct Occupancy {
  uint32_t workgroups_per_cu = 0; // 0: not even one fits
  uint32_t waves_per_simd = 0;    // with that many workgroups, on the fullest SIMD
  const char *limit = "";         // "vgprs", "lds", "waves" or "workgroups": the limit that excludes one more
};

/// `vgprs` counts registers of the unified file, `threads` the work-items of a workgroup (at least 1).
Occupancy occupancy(uint32_t vgprs, uint32_t lds_bytes, uint32_t threads);

} // namespace sluice::package

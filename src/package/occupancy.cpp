//===- occupancy.cpp - how much of a kernel fits on a compute unit --------------------------------------===//
//
// Waves of a workgroup are dealt to the SIMDs in turn, so the fullest SIMD limits registers.
//
//===----------------------------------------------------------------------------------------------------===//
#include "package/occupancy.h"

#include <algorithm>

namespace sluice::package {

namespace {

constexpr uint32_t simds = 4;
constexpr uint32_t registers_per_simd = 512;
constexpr uint32_t register_granule = 8;
constexpr uint32_t most_waves_per_simd = 8;
constexpr uint32_t most_workgroups = 16;
constexpr uint32_t lds_bytes_per_cu = 64 << 10;
constexpr uint32_t lds_granule = 512;

constexpr uint32_t round_up(uint32_t value, uint32_t granule) {
  return (value + granule - 1) / granule * granule;
}

} // namespace

Occupancy occupancy(uint32_t vgprs, uint32_t lds_bytes, uint32_t threads) {
  const uint32_t waves = (std::max(threads, 1u) + 63) / 64;
  const uint32_t registers = round_up(std::max(vgprs, 1u), register_granule);
  const uint32_t by_registers =
      registers > registers_per_simd ? 0 : registers_per_simd / registers * simds / waves;
  const uint32_t by_waves = most_waves_per_simd * simds / waves;
  const uint32_t by_lds = lds_bytes == 0 ? UINT32_MAX
                          : lds_bytes > lds_bytes_per_cu
                              ? 0
                              : lds_bytes_per_cu / round_up(lds_bytes, lds_granule);
  const uint32_t by_workgroups = waves == 1 ? UINT32_MAX : most_workgroups;

  Occupancy result;
  result.workgroups_per_cu = std::min({by_registers, by_waves, by_lds, by_workgroups});
  result.waves_per_simd = (result.workgroups_per_cu * waves + simds - 1) / simds;
  if (result.workgroups_per_cu == by_lds)
    result.limit = "lds";
  else if (result.workgroups_per_cu == by_waves)
    result.limit = "waves";
  else if (result.workgroups_per_cu == by_registers)
    result.limit = "vgprs";
  else
    result.limit = "workgroups";
  return result;
}

} // namespace sluice::package

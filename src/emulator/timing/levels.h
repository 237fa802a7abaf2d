//===- levels.h - bandwidth and latency of each memory level --------------------------------------------===//
//
// Vector path, LDS and L2 run on the engine clock: they move a number of bytes per clk. The Infinity Cache
// and HBM do not: they move a number of bytes per second, and a latency's part beyond L2 is in nanoseconds.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "emulator/isa/timing_constants.h"

namespace sluice::emulator::timing {

/// The device to time: eight XCDs, each with the same number of compute units.
struct Device {
  uint32_t clock_mhz = timing::clock_mhz;
  uint32_t compute_units = device_xcds * xcd_compute_units;

  uint32_t compute_units_of_xcd() const { return compute_units / device_xcds; }
  /// Throws std::invalid_argument.
  void expect_valid() const;
};

enum class Level : uint8_t { lds, vector_cache, l2, mall, hbm };
inline constexpr size_t level_count = size_t(Level::hbm) + 1;
std::string_view level_name(Level level);

/// The even share of one compute unit, in bytes per clk of the device.
double share(Level level, const Device &device);
/// For all compute units together, in TB/s.
double terabytes_per_second(double bytes_per_clk_of_compute_unit, const Device &device);
/// For the memory levels: clk of the device from an instruction's issue to its data, if the level has it.
uint32_t latency_clk(Level level, const Device &device);
/// How far a compute unit may run ahead of its share after it was quiet.
double burst_clk_of(Level level, const Device &device);

} // namespace sluice::emulator::timing

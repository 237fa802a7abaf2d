//===- levels.cpp - bandwidth and latency of each memory level ------------------------------------------===//
#include "emulator/timing/levels.h"

#include <cmath>
#include <stdexcept>
#include <string>

#include "package/chips.h"

namespace sluice::emulator::timing {

namespace {

static_assert(device_xcds * xcd_compute_units == package::find_chip("gfx942")->compute_units);

constexpr Device reference; // the device on which the constants were measured

/// The clk of a device in the time that `clk` take at the constants' clock.
double same_time(double clk, const Device &device) {
  return clk * device.clock_mhz / reference.clock_mhz;
}

} // namespace

void Device::expect_valid() const {
  if (clock_mhz == 0) throw std::invalid_argument("the clock is 0 MHz; it must be at least 1 MHz");
  constexpr uint32_t most = device_xcds * xcd_compute_units;
  if (compute_units == 0 || compute_units > most || compute_units % device_xcds != 0)
    throw std::invalid_argument("the device has " + std::to_string(compute_units) +
                                " compute units; it must be a multiple of " + std::to_string(device_xcds) +
                                ", one at least for each XCD, and " + std::to_string(most) + " at most");
}

std::string_view level_name(Level level) {
  constexpr std::string_view names[level_count] = {"lds", "vector_cache", "l2", "mall", "hbm"};
  return names[size_t(level)];
}

double share(Level level, const Device &device) {
  auto even = [&](double device_terabytes, uint32_t clock) {
    return device_terabytes * 1e6 / clock / device.compute_units;
  };
  switch (level) {
  case Level::lds:
    return double(lds_ports) * lds_port_read_bytes;
  case Level::vector_cache:
    return vector_path_bytes;
  case Level::l2:
    return even(l2_device_terabytes, reference.clock_mhz);
  case Level::mall:
    return even(mall_device_terabytes, device.clock_mhz);
  case Level::hbm:
    return even(hbm_device_terabytes, device.clock_mhz);
  }
  __builtin_unreachable();
}

double terabytes_per_second(double bytes_per_clk_of_compute_unit, const Device &device) {
  return bytes_per_clk_of_compute_unit * device.compute_units * device.clock_mhz * 1e-6;
}

uint32_t latency_clk(Level level, const Device &device) {
  auto beyond_l2 = [&](uint32_t latency) {
    return l2_latency_clk + uint32_t(std::lround(same_time(latency - l2_latency_clk, device)));
  };
  switch (level) {
  case Level::lds:
    return lds_latency_clk;
  case Level::vector_cache:
    return vector_cache_latency_clk;
  case Level::l2:
    return l2_latency_clk;
  case Level::mall:
    return beyond_l2(mall_latency_clk);
  case Level::hbm:
    return beyond_l2(hbm_latency_clk);
  }
  __builtin_unreachable();
}

double burst_clk_of(Level level, const Device &device) {
  return level == Level::mall || level == Level::hbm ? same_time(burst_clk, device) : burst_clk;
}

} // namespace sluice::emulator::timing

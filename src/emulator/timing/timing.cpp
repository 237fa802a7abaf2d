//===- timing.cpp - names and figures of a timing -------------------------------------------------------===//
#include "emulator/timing/timing.h"

#include <algorithm>

#include "emulator/isa/timing_constants.h"

namespace sluice::emulator::timing {

namespace {

constexpr std::string_view pipe_names[pipe_count] = {
    "matrix", "valu", "transcendental", "packed_f32", "salu", "smem", "vmem", "lds", "branch", "internal"};
constexpr std::string_view stall_names[stall_count] = {"vmcnt",     "lgkmcnt",    "barrier", "nop", "fetch",
                                                       "pipe_busy", "dependency", "queue",   "slot"};

double percent(double part, double whole) {
  return whole == 0 ? 0 : 100 * part / whole;
}

} // namespace

std::string_view pipe_name(Pipe pipe) {
  return pipe_names[size_t(pipe)];
}

std::string_view stall_name(Stall stall) {
  return stall_names[size_t(stall)];
}

uint64_t MemoryTraffic::bytes(Level level) const {
  const std::array<uint64_t, level_count> by_level = {lds_bytes, l1_bytes, l2_bytes, mall_bytes, hbm_bytes};
  return by_level[size_t(level)];
}

void MemoryTraffic::add_since(const MemoryTraffic &now, const MemoryTraffic &before) {
  lds_bytes += now.lds_bytes - before.lds_bytes;
  l1_bytes += now.l1_bytes - before.l1_bytes;
  l2_bytes += now.l2_bytes - before.l2_bytes;
  mall_bytes += now.mall_bytes - before.mall_bytes;
  hbm_bytes += now.hbm_bytes - before.hbm_bytes;
  stored_bytes += now.stored_bytes - before.stored_bytes;
}

double TimingResult::busy_percent(Pipe pipe) const {
  const uint32_t per_unit = pipe == Pipe::lds ? lds_ports : pipe == Pipe::vmem ? 1 : simds;
  return percent(double(busy_clk[size_t(pipe)]), double(simulated_clk) * compute_units * per_unit);
}

double TimingResult::bytes_per_clk(Level level) const {
  return simulated_clk == 0 ? 0 : double(traffic.bytes(level)) / double(simulated_clk) / compute_units;
}

double TimingResult::simulated_mfma_percent() const {
  return busy_percent(Pipe::matrix);
}

double TimingResult::device_mfma_percent() const {
  return percent(device_matrix_clk, double(device_clk) * device.compute_units * simds);
}

double TimingResult::tail_percent() const {
  return 100 - percent(device_occupied_clk, double(device_clk) * device_places);
}

double TimingResult::device_terabytes_per_second(Level level) const {
  return device_clk == 0 ? 0 : device_bytes[size_t(level)] / microseconds() * 1e-6;
}

double TimingResult::device_level_percent(Level level) const {
  return percent(device_terabytes_per_second(level), terabytes_per_second(share(level, device), device));
}

double TimingResult::xcd_imbalance_percent() const {
  double slowest = 0, sum = 0;
  for (const XcdTime &xcd : xcds) {
    slowest = std::max(slowest, xcd.end_clk);
    sum += xcd.end_clk;
  }
  return sum == 0 ? 0 : percent(slowest * double(xcds.size()) - sum, sum);
}

double TimingResult::microseconds() const {
  return double(device_clk) / device.clock_mhz;
}

double TimingResult::tflops() const {
  return device_clk == 0 ? 0 : device_flops / microseconds() * 1e-6;
}

} // namespace sluice::emulator::timing

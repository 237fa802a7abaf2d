//===- text.cpp - a timing in a few lines ---------------------------------------------------------------===//
#include <fmt/format.h>

#include "timing_report/report.h"

namespace sluice::timing_report {

using namespace emulator::timing;

namespace {

std::string busy_line(const TimingResult &r) {
  std::string line = "  busy:";
  for (size_t i = 0; i < size_t(Pipe::internal); ++i)
    line += fmt::format(" {} {:.1f} %", pipe_name(Pipe(i)), r.busy_percent(Pipe(i)));
  return line + "\n";
}

std::string waits_line(const TimingResult &r) {
  double all = 0;
  for (uint64_t clk : r.stall_clk)
    all += double(clk);
  std::string line = "  waves waited for:";
  for (size_t i = 0; i < stall_count; ++i)
    line +=
        fmt::format(" {} {:.1f} %", stall_name(Stall(i)), all == 0 ? 0 : 100 * double(r.stall_clk[i]) / all);
  return line + "\n";
}

std::string levels_line(const TimingResult &r) {
  std::string line = "  moved:";
  for (size_t i = 0; i < level_count; ++i) {
    const double moved = r.bytes_per_clk(Level(i));
    line += fmt::format("{} {} {:.3f} TB/s ({:.1f} %)", i == 0 ? "" : ",", level_name(Level(i)),
                        terabytes_per_second(moved, r.device), 100 * moved / share(Level(i), r.device));
  }
  return line + "\n";
}

} // namespace

std::string to_text(const TimingResult &r) {
  std::string text = fmt::format("{}: about {} clk, {:.1f} us at {} MHz on {} compute units\n", r.kernel,
                                 r.device_clk, r.microseconds(), r.device.clock_mhz, r.device.compute_units);
  text += fmt::format("  matrix cores busy {:.1f} %, {:.1f} TFLOPS in MFMAs\n", r.device_mfma_percent(),
                      r.tflops());
  text += fmt::format("  simulated: {} of {} workgroups on {} compute unit{}, {} clk, {} instructions\n",
                      r.simulated.size(), r.workgroups, r.compute_units, r.compute_units == 1 ? "" : "s",
                      r.simulated_clk, r.wave_instructions);
  text += fmt::format("  occupancy: {} workgroups per compute unit, {} waves per SIMD, limited by {}\n",
                      r.workgroups_per_cu, r.waves_per_simd, r.occupancy_limit);
  return text + busy_line(r) + waits_line(r) + levels_line(r);
}

} // namespace sluice::timing_report

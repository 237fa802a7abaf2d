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

/// In brackets, what is known about the error.
std::string error_of(const TimingResult &r) {
  if (r.is_complete) return "all of the launch was simulated";
  return r.error_percent ? fmt::format("error of the sample about {:.1f} %", *r.error_percent)
                         : "error of the sample unknown";
}

std::string launch_line(const TimingResult &r) {
  std::string line = fmt::format("  launch: {}", error_of(r));
  for (const Level level : {Level::l2, Level::mall, Level::hbm})
    line += fmt::format(", {} {:.3f} TB/s ({:.1f} %)", level_name(level),
                        r.device_terabytes_per_second(level), r.device_level_percent(level));
  if (!r.limited_by.empty()) line += fmt::format(", as long as {} needs", r.limited_by);
  return line + "\n";
}

/// For each XCD, how long it works in per cent of the launch.
std::string xcds_line(const TimingResult &r) {
  std::string line = "  XCDs work:";
  for (const XcdTime &xcd : r.xcds)
    line += fmt::format(" {:.0f} %", 100 * xcd.end_clk / double(r.device_clk));
  return line +
         fmt::format(" of the launch; the slowest is {:.1f} % above the mean\n", r.xcd_imbalance_percent());
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
  text += busy_line(r) + waits_line(r) + levels_line(r) + launch_line(r) + xcds_line(r);
  for (const std::string &warning : r.warnings)
    text += fmt::format("  warning: {}\n", warning);
  return text;
}

} // namespace sluice::timing_report

//===- timing_report.cpp - what a timing says, as text --------------------------------------------------===//
#include <algorithm>
#include <cstdio>

#include "emulator/machine/program.h"
#include "emulator/stats/kernel_stats.h"
#include "emulator/timing/constants.h"
#include "emulator/timing/timing.h"

namespace sluice::emulator::timing {

namespace {

constexpr std::string_view pipe_names[pipe_count] = {
    "matrix", "valu", "transcendental", "packed_f32", "salu", "smem", "vmem", "lds", "branch", "internal"};
constexpr std::string_view stall_names[stall_count] = {"vmcnt",     "lgkmcnt",    "barrier", "nop", "fetch",
                                                       "pipe_busy", "dependency", "queue",   "slot"};

template <class... Values> std::string format(const char *text, Values... values) {
  char line[512];
  std::snprintf(line, sizeof line, text, values...);
  return line;
}

double percent(double part, double whole) {
  return whole == 0 ? 0 : 100 * part / whole;
}

/// Of a pipe: the simulated time of all there are of it.
double pipe_capacity(const TimingResult &result, Pipe pipe) {
  const uint32_t per_unit = pipe == Pipe::lds ? lds_ports : pipe == Pipe::vmem ? 1 : simds;
  return double(result.simulated_clk) * result.compute_units * per_unit;
}

double busy_percent(const TimingResult &result, size_t pipe) {
  return percent(double(result.busy_clk[pipe]), pipe_capacity(result, Pipe(pipe)));
}

} // namespace

std::string_view pipe_name(Pipe pipe) {
  return pipe_names[size_t(pipe)];
}

std::string_view stall_name(Stall stall) {
  return stall_names[size_t(stall)];
}

std::span<const Constant> constants() {
#define SLUICE_TIMING_CONSTANT(type, name, value, unit, source) {#name, double(value), unit, source},
  static constexpr Constant all[] = {SLUICE_TIMING_CONSTANTS(SLUICE_TIMING_CONSTANT)};
#undef SLUICE_TIMING_CONSTANT
  return all;
}

double TimingResult::simulated_mfma_percent() const {
  return busy_percent(*this, size_t(Pipe::matrix));
}

double TimingResult::device_mfma_percent() const {
  return percent(device_matrix_clk, double(device_clk) * device_xcds * xcd_compute_units * simds);
}

double TimingResult::microseconds() const {
  return double(device_clk) / clock_mhz;
}

double TimingResult::tflops() const {
  return device_clk == 0 ? 0 : device_flops / microseconds() * 1e-6;
}

std::string to_text(const TimingResult &r) {
  std::string text = format("%s: about %llu clk, %.1f us at %u MHz on %u compute units\n", r.kernel.c_str(),
                            static_cast<unsigned long long>(r.device_clk), r.microseconds(), clock_mhz,
                            device_xcds * xcd_compute_units);
  text += format("  matrix cores busy %.1f %%, %.1f TFLOPS in MFMAs\n", r.device_mfma_percent(), r.tflops());
  text += format("  simulated: %zu of %llu workgroups on %u compute unit%s, %llu clk, %llu instructions\n",
                 r.simulated.size(), static_cast<unsigned long long>(r.workgroups), r.compute_units,
                 r.compute_units == 1 ? "" : "s", static_cast<unsigned long long>(r.simulated_clk),
                 static_cast<unsigned long long>(r.wave_instructions));
  text += format("  occupancy: %u workgroups per compute unit, %u waves per SIMD, limited by %s\n",
                 r.workgroups_per_cu, r.waves_per_simd, r.occupancy_limit);
  text += "  busy:";
  for (size_t i = 0; i < size_t(Pipe::internal); ++i)
    text += format(" %s %.1f %%", pipe_names[i].data(), busy_percent(r, i));
  double stalls = 0;
  for (uint64_t clk : r.stall_clk)
    stalls += double(clk);
  text += "\n  waves waited for:";
  for (size_t i = 0; i < stall_count; ++i)
    text += format(" %s %.1f %%", stall_names[i].data(), percent(double(r.stall_clk[i]), stalls));
  text += format("\n  bytes: L1 %llu, L2 %llu, MALL %llu, HBM %llu\n",
                 static_cast<unsigned long long>(r.traffic.l1_bytes),
                 static_cast<unsigned long long>(r.traffic.l2_bytes),
                 static_cast<unsigned long long>(r.traffic.mall_bytes),
                 static_cast<unsigned long long>(r.traffic.hbm_bytes));
  return text;
}

std::string to_json(const TimingResult &r) {
  auto number = [](uint64_t value) { return std::to_string(value); };
  std::string text = "{\"kernel\": " + json_string(r.kernel) + ", \"clk\": " + number(r.device_clk);
  text += format(", \"clock_mhz\": %u, \"compute_units\": %u, \"microseconds\": %.3f, \"tflops\": %.3f, "
                 "\"mfma_percent\": %.3f",
                 clock_mhz, device_xcds * xcd_compute_units, r.microseconds(), r.tflops(),
                 r.device_mfma_percent());
  text += ", \"workgroups\": " + number(r.workgroups);
  text += format(", \"occupancy\": {\"workgroups_per_cu\": %u, \"waves_per_simd\": %u, \"limit\": \"%s\"}",
                 r.workgroups_per_cu, r.waves_per_simd, r.occupancy_limit);
  text += ", \"simulated\": {\"compute_units\": " + number(r.compute_units) +
          ", \"workgroups\": " + number(r.simulated.size()) + ", \"clk\": " + number(r.simulated_clk) +
          ", \"wave_instructions\": " + number(r.wave_instructions) + ", \"busy_percent\": {";
  for (size_t i = 0; i < pipe_count; ++i)
    text += format("%s\"%s\": %.3f", i == 0 ? "" : ", ", pipe_names[i].data(), busy_percent(r, i));
  text += "}, \"stall_clk\": {";
  for (size_t i = 0; i < stall_count; ++i)
    text += format("%s\"%s\": ", i == 0 ? "" : ", ", stall_names[i].data()) + number(r.stall_clk[i]);
  text += "}, \"bytes\": {\"l1\": " + number(r.traffic.l1_bytes) + ", \"l2\": " + number(r.traffic.l2_bytes) +
          ", \"mall\": " + number(r.traffic.mall_bytes) + ", \"hbm\": " + number(r.traffic.hbm_bytes) + "}}}";
  return text;
}

std::string listing(const Program &program, const TimingResult &r) {
  std::string text = "    issued   clk lost  mostly for  instruction\n";
  for (uint32_t i = 0; i < r.instructions.size(); ++i) {
    const InstructionTime &time = r.instructions[i];
    if (time.issued == 0) continue;
    uint64_t lost = 0;
    for (uint64_t clk : time.stall_clk)
      lost += clk;
    const auto most = std::max_element(time.stall_clk.begin(), time.stall_clk.end());
    const std::string_view reason = lost == 0 ? "" : stall_names[size_t(most - time.stall_clk.begin())];
    text += format("%10llu %10llu  %-10s  %06llx: ", static_cast<unsigned long long>(time.issued),
                   static_cast<unsigned long long>(lost), reason.data(),
                   static_cast<unsigned long long>(program.impl().address_of(i)));
    text += program.impl().text(i) + "\n";
  }
  return text;
}

} // namespace sluice::emulator::timing

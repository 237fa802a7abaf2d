//===- json.cpp - a timing for programs -----------------------------------------------------------------===//
#include <nlohmann/json.hpp>

#include "emulator/machine/program.h"
#include "emulator/timing/control_flow.h"
#include "timing_report/report.h"

namespace sluice::timing_report {

using namespace emulator::timing;
using nlohmann::ordered_json;

namespace {

ordered_json pipes(const TimingResult &r) {
  ordered_json json = ordered_json::object();
  for (size_t i = 0; i < pipe_count; ++i)
    json[std::string(pipe_name(Pipe(i)))] = {{"clk", r.busy_clk[i]}, {"percent", r.busy_percent(Pipe(i))}};
  return json;
}

ordered_json stalls(const std::array<uint64_t, stall_count> &clk) {
  ordered_json json = ordered_json::object();
  for (size_t i = 0; i < stall_count; ++i)
    json[std::string(stall_name(Stall(i)))] = clk[i];
  return json;
}

ordered_json levels(const TimingResult &r) {
  ordered_json json = ordered_json::object();
  for (size_t i = 0; i < level_count; ++i) {
    const double moved = r.bytes_per_clk(Level(i));
    const double most = share(Level(i), r.device);
    json[std::string(level_name(Level(i)))] = {
        {"bytes", r.traffic.bytes(Level(i))},
        {"terabytes_per_second", terabytes_per_second(moved, r.device)},
        {"percent", 100 * moved / most},
        {"most_terabytes_per_second", terabytes_per_second(most, r.device)}};
  }
  return json;
}

ordered_json launch_levels(const TimingResult &r) {
  ordered_json json = ordered_json::object();
  for (size_t i = 0; i < level_count; ++i)
    json[std::string(level_name(Level(i)))] = {
        {"bytes", r.device_bytes[i]},
        {"terabytes_per_second", r.device_terabytes_per_second(Level(i))},
        {"percent", r.device_level_percent(Level(i))}};
  return json;
}

ordered_json xcds(const TimingResult &r) {
  ordered_json json = ordered_json::array();
  for (const XcdTime &xcd : r.xcds)
    json.push_back(
        {{"workgroups", xcd.workgroups}, {"occupied_clk", xcd.occupied_clk}, {"end_clk", xcd.end_clk}});
  return json;
}

ordered_json workgroups(const TimingResult &r) {
  ordered_json json = ordered_json::array();
  for (const WorkgroupTime &time : r.simulated)
    json.push_back({{"number", time.number},
                    {"compute_unit", time.compute_unit},
                    {"start", time.start},
                    {"end", time.end},
                    {"flops", time.flops},
                    {"matrix_clk", time.matrix_clk}});
  return json;
}

} // namespace

ordered_json to_json(const TimingResult &r) {
  return {{"kernel", r.kernel},
          {"clk", r.device_clk},
          {"clock_mhz", r.device.clock_mhz},
          {"compute_units", r.device.compute_units},
          {"microseconds", r.microseconds()},
          {"flops", r.device_flops},
          {"tflops", r.tflops()},
          {"mfma_percent", r.device_mfma_percent()},
          {"workgroups", r.workgroups},
          {"complete", r.is_complete},
          {"error_percent", r.error_percent ? ordered_json(*r.error_percent) : ordered_json()},
          {"extrapolated_along", r.extrapolated_along},
          {"limited_by", r.limited_by},
          {"levels", launch_levels(r)},
          {"xcds", xcds(r)},
          {"xcd_imbalance_percent", r.xcd_imbalance_percent()},
          {"warnings", r.warnings},
          {"occupancy",
           {{"workgroups_per_cu", r.workgroups_per_cu},
            {"waves_per_simd", r.waves_per_simd},
            {"limit", r.occupancy_limit}}},
          {"simulated",
           {{"compute_units", r.compute_units},
            {"workgroups", r.simulated.size()},
            {"clk", r.simulated_clk},
            {"wave_instructions", r.wave_instructions},
            {"busy", pipes(r)},
            {"stall_clk", stalls(r.stall_clk)},
            {"levels", levels(r)},
            {"workgroup_times", workgroups(r)}}}};
}

ordered_json to_json(const emulator::Program &program, const TimingResult &r) {
  const emulator::ProgramImpl &code = program.impl();
  const ControlFlow flow = control_flow(code, code.ops_of(*code.object.find_kernel(r.kernel)));
  ordered_json instructions = ordered_json::array();
  for (uint32_t op = 0; op < r.instructions.size(); ++op) {
    if (r.instructions[op].issued == 0) continue;
    ordered_json loops = ordered_json::array();
    if (const Block *const block = flow.block_of(op))
      for (uint32_t loop : block->loops)
        loops.push_back(code.address_of(flow.loops[loop].header));
    instructions.push_back({{"address", code.address_of(op)},
                            {"text", code.text(op)},
                            {"loops", loops},
                            {"issued", r.instructions[op].issued},
                            {"stall_clk", stalls(r.instructions[op].stall_clk)}});
  }
  ordered_json json = to_json(r);
  json["instructions"] = instructions;
  return json;
}

} // namespace sluice::timing_report

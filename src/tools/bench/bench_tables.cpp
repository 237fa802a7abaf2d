//===- bench_tables.cpp - timings of attention as tables ------------------------------------------------===//
#include "tools/bench/bench_tables.h"

#include "tools/bench/text_table.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <span>

namespace sluice::tools {

using namespace emulator::timing;

namespace {

using Column = TextColumn<AttentionTiming>;

std::string share(double percent) {
  return fmt::format("{:.1f} %", percent);
}

std::string reasons_of(const AttentionTiming &timing) {
  std::string text;
  const auto reasons = wait_reasons(timing.result);
  for (size_t i = 0; i < 3 && reasons[i].percent > 0; ++i)
    text +=
        fmt::format("{}{} {:.0f} %", i == 0 ? "" : ", ", stall_name(reasons[i].stall), reasons[i].percent);
  return text;
}

const std::vector<Column> problem_columns = {
    {"kernel", -31, [](const AttentionTiming &t) { return package::format_kernel_name(t.kernel.name); }},
    {"length", 6, [](const AttentionTiming &t) { return std::to_string(t.problem.length); }},
    {"causal", 6, [](const AttentionTiming &t) { return std::string(t.problem.causal ? "yes" : "no"); }},
    {"bound", 7, [](const AttentionTiming &t) { return share(t.bound_percent); }},
};

const std::vector<Column> speed_columns = {
    {"clk", 9, [](const AttentionTiming &t) { return std::to_string(t.result.device_clk); }},
    {"error", 7, [](const AttentionTiming &t) { return error_text(t.result.error_percent); }},
    {"MFMA busy while full", 20,
     [](const AttentionTiming &t) { return share(t.result.simulated_mfma_percent()); }},
    {"of the launch", 13, [](const AttentionTiming &t) { return share(t.result.device_mfma_percent()); }},
    {"TFLOPS at 2.1 GHz", 17,
     [](const AttentionTiming &t) { return fmt::format("{:.0f}", t.useful_tflops(peak_mhz)); }},
    {"at 1.2 GHz", 10,
     [](const AttentionTiming &t) { return fmt::format("{:.0f}", t.useful_tflops(power_limited_mhz)); }},
    {"waves per SIMD", 14, [](const AttentionTiming &t) { return std::to_string(t.result.waves_per_simd); }},
    {"waves wait for", -1, reasons_of},
};

/// The reasons for waits in loops that have no separate column.
std::string others_of(const TimeParts &parts) {
  double others = 0;
  for (const Stall stall : {Stall::nop, Stall::fetch, Stall::dependency, Stall::slot})
    others += parts.waiting_for(stall);
  return share(others);
}

const std::vector<Column> part_columns = {
    {"useful", 7, [](const AttentionTiming &t) { return share(t.parts.useful); }},
    {"masked", 7, [](const AttentionTiming &t) { return share(t.parts.masked); }},
    {"issuing", 7, [](const AttentionTiming &t) { return share(t.parts.issuing); }},
    {"port", 7, [](const AttentionTiming &t) { return share(t.parts.waiting_for(Stall::pipe_busy)); }},
    {"barrier", 7, [](const AttentionTiming &t) { return share(t.parts.waiting_for(Stall::barrier)); }},
    {"lgkmcnt", 7, [](const AttentionTiming &t) { return share(t.parts.waiting_for(Stall::lgkmcnt)); }},
    {"queue", 7, [](const AttentionTiming &t) { return share(t.parts.waiting_for(Stall::queue)); }},
    {"vmcnt", 7, [](const AttentionTiming &t) { return share(t.parts.waiting_for(Stall::vmcnt)); }},
    {"others", 7, [](const AttentionTiming &t) { return others_of(t.parts); }},
    {"outside", 7, [](const AttentionTiming &t) { return share(t.parts.outside); }},
    {"start", 7, [](const AttentionTiming &t) { return share(t.parts.start); }},
    {"tail", 7, [](const AttentionTiming &t) { return share(t.parts.tail); }},
};

std::vector<Column> columns_of(bool parts) {
  std::vector<Column> columns = problem_columns;
  const std::vector<Column> &others = parts ? part_columns : speed_columns;
  columns.insert(columns.end(), others.begin(), others.end());
  return columns;
}

} // namespace

std::string BenchTable::head() const {
  return table_head(columns_of(parts), markdown);
}

std::string BenchTable::row(const AttentionTiming &timing) const {
  return table_row(columns_of(parts), markdown, timing);
}

std::string bench_json(const std::vector<AttentionTiming> &timings) {
  using Json = nlohmann::ordered_json;
  Json all = Json::array();
  for (const AttentionTiming &t : timings) {
    const TimeParts &parts = t.parts;
    Json waits = Json::object(), waiting = Json::object();
    for (const WaitReason &reason : wait_reasons(t.result))
      waits[std::string(stall_name(reason.stall))] = reason.percent;
    for (size_t i = 0; i < stall_count; ++i)
      waiting[std::string(stall_name(Stall(i)))] = parts.waiting[i];
    all.push_back(
        {{"kernel", package::format_kernel_name(t.kernel.name)},
         {"length", t.problem.length},
         {"causal", t.problem.causal},
         {"batch", t.problem.batch},
         {"heads", t.problem.q_heads},
         {"kv_heads", t.problem.kv_heads},
         {"clk", t.result.device_clk},
         {"useful_flops", t.useful_flops()},
         {"executed_flops", t.result.device_flops},
         {"tflops",
          {{"2100_mhz", t.useful_tflops(peak_mhz)}, {"1200_mhz", t.useful_tflops(power_limited_mhz)}}},
         {"bound_percent", t.bound_percent},
         {"mfma_percent",
          {{"while_full", t.result.simulated_mfma_percent()}, {"launch", t.result.device_mfma_percent()}}},
         {"occupancy",
          {{"workgroups_per_cu", t.result.workgroups_per_cu},
           {"waves_per_simd", t.result.waves_per_simd},
           {"limit", t.result.occupancy_limit}}},
         {"workgroups", t.result.workgroups},
         {"simulated",
          {{"compute_units", t.result.compute_units},
           {"workgroups", t.result.simulated.size()},
           {"wave_instructions", t.result.wave_instructions},
           {"seconds", t.seconds}}},
         {"extrapolated_along", t.result.extrapolated_along},
         {"error_percent", t.result.error_percent ? Json(*t.result.error_percent) : Json()},
         {"warnings", t.result.warnings},
         {"wait_percent", waits},
         {"matrix_core_percent",
          {{"useful", parts.useful},
           {"masked", parts.masked},
           {"issuing", parts.issuing},
           {"waiting", waiting},
           {"outside", parts.outside},
           {"start", parts.start},
           {"tail", parts.tail}}}});
  }
  return all.dump(2) + "\n";
}

} // namespace sluice::tools

//===- workload_tables.cpp - timings of workloads as tables and JSON ------------------------------------===//
#include "tools/bench/workload_tables.h"

#include "tools/bench/text_table.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace sluice::tools {

using namespace emulator::timing;

namespace {

using Json = nlohmann::ordered_json;

using Column = TextColumn<WorkloadTiming>;

std::string number(double value, int digits = 0) {
  return fmt::format("{:.{}f}", value, digits);
}

std::string percent_text(double percent) {
  return fmt::format("{:.1f} %", percent);
}

/// The rates for a time; the share of HBM's limit is that of needed_bytes over the time.
double tflops(const Workload &work, double microseconds) {
  return work.useful_flops() / microseconds * 1e-6;
}
double gigabytes(const Workload &work, double microseconds) {
  return work.needed_bytes() / microseconds * 1e-3;
}
double hbm_share(const Workload &work, double microseconds) {
  return gigabytes(work, microseconds) / (hbm_terabytes_per_second() * 1e3) * 100;
}

std::string clk_of(const PlanTiming &timing) {
  std::string text = std::to_string(timing.launches.front().result.device_clk);
  if (timing.launches.size() > 1) text += fmt::format(" + {}", timing.merge_clk());
  return text;
}

std::string reasons_of(const TimingResult &result) {
  std::string text;
  const auto reasons = wait_reasons(result);
  for (size_t i = 0; i < 3 && reasons[i].percent > 0; ++i)
    text +=
        fmt::format("{}{} {:.0f} %", i == 0 ? "" : ", ", stall_name(reasons[i].stall), reasons[i].percent);
  return text;
}

const TimingResult &attention(const WorkloadTiming &timing) {
  return timing.model->launches.front().result;
}

const Column work_column = {"work", -68, [](const WorkloadTiming &t) { return t.work.name(); }};

const std::vector<Column> model_columns = {
    {"kernel", -52, [](const WorkloadTiming &t) { return t.model->kernel; }},
    {"splits", 6, [](const WorkloadTiming &t) { return std::to_string(t.model->splits); }},
    {"workgroups", 10, [](const WorkloadTiming &t) { return std::to_string(attention(t).workgroups); }},
    {"clk, attention + merge", 22, [](const WorkloadTiming &t) { return clk_of(*t.model); }},
    {"error", 7, [](const WorkloadTiming &t) { return error_text(t.model->error_percent()); }},
    {"us at 2.1 GHz", 13, [](const WorkloadTiming &t) { return number(t.model->microseconds(), 1); }},
    {"HBM share", 9,
     [](const WorkloadTiming &t) { return percent_text(hbm_share(t.work, t.model->microseconds())); }},
    {"GB/s", 6, [](const WorkloadTiming &t) { return number(gigabytes(t.work, t.model->microseconds())); }},
    {"TFLOPS", 6, [](const WorkloadTiming &t) { return number(tflops(t.work, t.model->microseconds()), 1); }},
    {"MFMA busy", 9, [](const WorkloadTiming &t) { return percent_text(t.model->mfma_percent()); }},
    {"waves wait for", -1, [](const WorkloadTiming &t) { return reasons_of(attention(t)); }},
};

const std::vector<Column> device_columns = {
    {"kernel", -52, [](const WorkloadTiming &t) { return t.device->kernel; }},
    {"us, median", 11, [](const WorkloadTiming &t) { return number(t.device->median(), 1); }},
    {"least to most", 19,
     [](const WorkloadTiming &t) {
       return fmt::format("{:.1f} to {:.1f}", t.device->least(), t.device->most());
     }},
    {"TFLOPS", 6, [](const WorkloadTiming &t) { return number(tflops(t.work, t.device->median()), 1); }},
    {"GB/s", 6, [](const WorkloadTiming &t) { return number(gigabytes(t.work, t.device->median())); }},
    {"HBM share", 9,
     [](const WorkloadTiming &t) { return percent_text(hbm_share(t.work, t.device->median())); }},
};

const std::vector<Column> model_beside_columns = {
    {"model, us at 2.1 GHz", 20, [](const WorkloadTiming &t) { return number(t.model->microseconds(), 1); }},
    {"device / model", 14,
     [](const WorkloadTiming &t) { return number(t.device->median() / t.model->microseconds(), 2); }},
};

std::vector<Column> columns_of(bool device, bool model) {
  std::vector<Column> columns = {work_column};
  const auto add = [&](const std::vector<Column> &more) {
    columns.insert(columns.end(), more.begin(), more.end());
  };
  if (!device) add(model_columns);
  if (device) add(device_columns);
  if (device && model) add(model_beside_columns);
  return columns;
}

Json json_of(const std::optional<double> &number) {
  return number ? Json(*number) : Json();
}

Json json_of(const LaunchTiming &launch) {
  const TimingResult &result = launch.result;
  Json waits = Json::object();
  for (const WaitReason &reason : wait_reasons(result))
    waits[std::string(stall_name(reason.stall))] = reason.percent;
  Json busy = Json::object(), levels = Json::object();
  for (size_t i = 0; i < size_t(Pipe::internal); ++i)
    busy[std::string(pipe_name(Pipe(i)))] = result.busy_percent(Pipe(i));
  for (size_t i = 0; i < level_count; ++i) {
    const Level level = Level(i);
    levels[std::string(level_name(level))] = 100 * result.bytes_per_clk(level) / share(level, result.device);
  }
  return {{"kernel", launch.kernel},
          {"clk", result.device_clk},
          {"workgroups", result.workgroups},
          {"workgroups_per_cu", result.workgroups_per_cu},
          {"waves_per_simd", result.waves_per_simd},
          {"occupancy_limit", result.occupancy_limit},
          {"executed_flops", result.device_flops},
          {"mfma_percent", result.device_mfma_percent()},
          {"bound_percent", launch.bound_percent},
          {"tail_percent", result.tail_percent()},
          {"wait_percent", waits},
          {"busy_percent", busy},
          {"level_percent", levels},
          {"simulated",
           {{"compute_units", result.compute_units},
            {"workgroups", result.simulated.size()},
            {"wave_instructions", result.wave_instructions},
            {"seconds", launch.seconds}}},
          {"complete", result.is_complete},
          {"extrapolated_along", result.extrapolated_along},
          {"error_percent", json_of(result.error_percent)},
          {"limited_by", result.limited_by},
          {"warnings", result.warnings}};
}

Json json_of(const PlanTiming &timing) {
  Json launches = Json::array();
  for (const LaunchTiming &launch : timing.launches)
    launches.push_back(json_of(launch));
  return {{"kernel", timing.kernel},
          {"reason", timing.reason},
          {"splits", timing.splits},
          {"clk", timing.clk()},
          {"error_percent", json_of(timing.error_percent())},
          {"clock_mhz", timing.launches.front().result.device.clock_mhz},
          {"compute_units", timing.launches.front().result.device.compute_units},
          {"microseconds", timing.microseconds()},
          {"tflops", tflops(timing.work, timing.microseconds())},
          {"needed_gigabytes_per_second", gigabytes(timing.work, timing.microseconds())},
          {"hbm_share_percent", hbm_share(timing.work, timing.microseconds())},
          {"mfma_percent", timing.mfma_percent()},
          {"launches", launches}};
}

Json json_of(const Workload &work, const DeviceTiming &timing) {
  const double median = timing.median();
  return {{"kernel", timing.kernel},
          {"reason", timing.reason},
          {"median_microseconds", median},
          {"microseconds", timing.microseconds},
          {"tflops", tflops(work, median)},
          {"needed_gigabytes_per_second", gigabytes(work, median)},
          {"hbm_share_percent", hbm_share(work, median)}};
}

Json json_of(const WorkloadTiming &timing) {
  const Workload &work = timing.work;
  Json row = {{"work", work.name()},
              {"kind", work_kind_name(work.kind)},
              {"type", work.types.name},
              {"head_dim_qk", work.dims.qk},
              {"head_dim_v", work.dims.v},
              {"v_in_k", work.dims.v_in_k},
              {"heads", work.q_heads},
              {"kv_heads", work.kv_heads},
              {"batch", work.batch},
              {"q_len", work.q_len},
              {"kv_len", work.kv_len},
              {"shared_prefix", work.prefix_len},
              {"cascade", work.prefix_len != 0 && work.cascade},
              {"causal", work.causal},
              {"page_size", work.page_size},
              {"shuffled_pages", work.page_size != 0 && work.shuffled_pages},
              {"sparse", work.sparse},
              {"useful_flops", work.useful_flops()},
              {"needed_bytes", work.needed_bytes()}};
  if (timing.device) row["device"] = json_of(work, *timing.device);
  if (timing.model) row["model"] = json_of(*timing.model);
  return row;
}

Json json_of(const sluice_device_info &info) {
  return {{"name", info.name},
          {"chip", info.chip},
          {"arch", info.arch},
          {"compute_units", info.compute_units},
          {"runtime", info.runtime},
          {"runtime_version", info.hip_runtime_version},
          {"emulated", is_emulated(info)}};
}

} // namespace

std::string WorkloadTable::head() const {
  return table_head(columns_of(device, model), markdown);
}

std::string WorkloadTable::row(const WorkloadTiming &timing) const {
  return table_row(columns_of(device, model), markdown, timing);
}

std::string workloads_json(const std::vector<WorkloadTiming> &timings,
                           const std::optional<sluice_device_info> &device,
                           const std::optional<DeviceRuns> &runs) {
  sluice_build build;
  sluice_build_init(&build, sizeof build);
  sluice_error error = make_error();
  check(sluice_build_info(&build, &error), error);
  Json all = {
      {"format", "sluice-bench"},
      {"format_version", 2},
      {"library", {{"version", build.version}, {"git_commit", build.git_commit}, {"pack_id", build.pack_id}}},
      {"hbm_terabytes_per_second", hbm_terabytes_per_second()}};
  if (device) all["device"] = json_of(*device);
  if (runs)
    all["runs"] = {
        {"warm_up", runs->warm_up}, {"repetitions", runs->repetitions}, {"flush_mib", runs->flush_mib}};
  Json rows = Json::array();
  for (const WorkloadTiming &timing : timings)
    rows.push_back(json_of(timing));
  all["rows"] = rows;
  return all.dump(2) + "\n";
}

} // namespace sluice::tools

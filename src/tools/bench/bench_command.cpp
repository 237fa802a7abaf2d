//===- bench_command.cpp - sluice bench: the speed of attention -----------------------------------------===//

#include "tools/bench/bench_command.h"

#include "calls/values.h"
#include "package/chips.h"
#include "tools/bench/bench_tables.h"
#include "tools/bench/workload_tables.h"
#include "tools/shared/output_file.h"
#include "tools/shared/pack_file.h"

#include <fmt/format.h>
#include <fnmatch.h>
#include <optional>

namespace sluice::tools {

namespace {

constexpr uint32_t modelled_compute_units = package::find_chip("gfx942")->compute_units;

void write(OutputFile &file, const std::string &text) {
  file.write({std::as_bytes(std::span(text))});
  file.publish();
}

/// Warnings that belong to a row of the table.
void warn(const std::string &row, const emulator::timing::TimingResult &result) {
  for (const std::string &warning : result.warnings)
    fmt::print(stderr, "sluice: {}: {}: {}\n", row, result.kernel, warning);
}

SampleSize sample_of(const BenchOptions &options) {
  if (options.xcds != 0 && !options.compute_units && !options.workgroups)
    return {emulator::timing::Device{}.compute_units_of_xcd(), 0, options.xcds};
  return {options.compute_units.value_or(usual_sample.compute_units),
          options.workgroups.value_or(usual_sample.workgroups), options.xcds};
}

//===--- One kernel, without a plan ---------------------------------------------------------------------===//

std::vector<TimedProblem> problems_of(const BenchOptions &options) {
  const WorkloadOptions &work = options.work;
  const uint32_t kv_heads = work.kv_heads.value_or(8);
  std::vector<TimedProblem> problems;
  for (const uint32_t heads : work.heads) {
    check_heads(heads, kv_heads);
    for (const uint32_t length : prefill_lengths(work))
      for (const bool causal : {false, true}) {
        if (work.causal == (causal ? "off" : "on")) continue;
        problems.push_back({prefill_batch(work, length), length, heads, kv_heads, causal});
      }
  }
  return problems;
}

std::vector<const package::PackedKernel *> kernels_of(const BenchOptions &options, const PackFile &pack) {
  std::vector<const package::PackedKernel *> kernels;
  // This times prefill of contiguous tensors: kernels for pages and for few rows serve other work.
  for (const package::PackedKernel &kernel : pack.reader().manifest().kernels)
    if (kernel.entry.name.is_attention() && kernel.entry.name.form.empty() &&
        fnmatch(options.kernel_filter->c_str(), package::format_kernel_name(kernel.entry.name).c_str(), 0) ==
            0)
      kernels.push_back(&kernel);
  if (kernels.empty())
    throw ToolError(
        fmt::format("--kernel is '{}'; no kernel for prefill of contiguous tensors of {} has such "
                    "a name",
                    *options.kernel_filter, pack.path()));
  return kernels;
}

int bench_kernels(const BenchOptions &options, const PackFile &pack, std::optional<OutputFile> &json) {
  const std::vector<TimedProblem> problems = problems_of(options);
  const auto kernels = kernels_of(options, pack);
  for (const package::PackedKernel *kernel : kernels)
    for (const TimedProblem &problem : problems)
      check_size(kernel->entry, problem);
  const BenchTable table(options.markdown, options.parts);
  fmt::print("{}", table.head());
  std::vector<AttentionTiming> timings;
  for (const package::PackedKernel *kernel : kernels) {
    const std::vector<std::byte> elf = pack.elf(*kernel, "gfx942");
    for (const TimedProblem &problem : problems) {
      timings.push_back(time_attention(kernel->entry, elf, problem, sample_of(options)));
      fmt::print("{}", table.row(timings.back()));
      std::fflush(stdout);
      warn(fmt::format("{} tokens{}", problem.length, problem.causal ? ", causal" : ""),
           timings.back().result);
    }
  }
  if (json) write(*json, bench_json(timings));
  return 0;
}

//===--- Workloads, through plans -----------------------------------------------------------------------===//

/// A device on which kernels can be timed, and its description.
struct TimedDevice {
  ContextHandle context;
  sluice_device_info info;
};

std::optional<TimedDevice> open_device(const BenchOptions &options, const PackFile &pack) {
  if (options.device.empty()) return std::nullopt;
  const sluice_context_desc desc = describe_device(options.device);
  if (desc.kind == SLUICE_DEVICE_EMULATED)
    throw ToolError(
        "--device is 'emulated'; a launch there takes as long as this machine needs to emulate it, "
        "not as long as on a GPU; use --timing for the model of the chip, or 'hip:N' for a GPU");
  if (desc.kind == SLUICE_DEVICE_TARGET)
    throw ToolError(
        fmt::format("--device is '{}', a target without a device; use 'hip:N' for a GPU, or --timing for "
                    "the model of a gfx942:{}",
                    options.device, modelled_compute_units));
  TimedDevice device{make_context(options.device, pack.content()), {}};
  device.info = device_info(device.context.get());
  if (!options.no_model &&
      (std::string_view(device.info.chip) != "gfx942" || device.info.compute_units != modelled_compute_units))
    throw ToolError(
        fmt::format("{} is a {} with {} compute units, and the model is a gfx942 with {}; --no-model "
                    "only times it",
                    options.device, device.info.chip, device.info.compute_units, modelled_compute_units));
  return device;
}

/// Refusals come before the first row costs time.
void check_support(const std::vector<Workload> &works, const PackFile &pack) {
  const ContextHandle context =
      make_context(fmt::format("gfx942:{}", modelled_compute_units), pack.content());
  for (const Workload &work : works) {
    const calls::Problem problem = work.problem();
    sluice_error error = make_error();
    const sluice_status status =
        sluice_attention_support(context.get(), calls::ProblemValues(problem), nullptr, &error);
    if (status != SLUICE_OK)
      throw ToolError(fmt::format("{}: {}: {}", work.name(), sluice_status_name(status), error.message));
  }
}

int bench_workloads(const BenchOptions &options, const PackFile &pack, std::optional<OutputFile> &json) {
  const std::vector<Workload> works = workloads_of(options.work, pack.reader().manifest());
  check_support(works, pack);
  const std::optional<TimedDevice> device = open_device(options, pack);
  WantedSample sample;
  if (options.workgroups || options.compute_units || options.xcds != 0) sample = sample_of(options);

  const WorkloadTable table(options.markdown, device.has_value(), !options.no_model);
  if (device) {
    fmt::print("{} ({}), {} compute units, through {}; {} runs after {} to warm up\n", device->info.name,
               device->info.arch, device->info.compute_units, device->info.runtime, options.runs.repetitions,
               options.runs.warm_up);
    if (is_emulated(device->info))
      fmt::print("The device is emulated: its times are those of this machine, not of a GPU.\n");
    fmt::print("\n");
  }
  fmt::print("{}", table.head());
  std::vector<WorkloadTiming> timings;
  for (const Workload &work : works) {
    WorkloadTiming timing{.work = work, .model = {}, .device = {}};
    if (device) timing.device = time_on_device(device->context.get(), work, options.runs);
    if (!options.no_model) timing.model = time_plan(pack, work, modelled_compute_units, sample);
    fmt::print("{}", table.row(timing));
    std::fflush(stdout);
    if (timing.model)
      for (const LaunchTiming &launch : timing.model->launches)
        warn(work.name(), launch.result);
    timings.push_back(std::move(timing));
  }
  if (json)
    write(*json, workloads_json(timings, device ? std::optional(device->info) : std::nullopt,
                                device ? std::optional(options.runs) : std::nullopt));
  return 0;
}

} // namespace

int bench_command(const BenchOptions &options) {
  if (!options.timing && options.device.empty())
    throw ToolError(
        "bench needs --timing for the model of the chip, or --device hip:N for a GPU. A launch on the "
        "emulated device takes as long as this machine needs to emulate it, not as long as on a GPU");
  const PackFile pack(options.pack_file);
  std::optional<OutputFile> json;
  if (!options.json_file.empty()) json.emplace("--json", options.json_file);
  return options.kernel_filter ? bench_kernels(options, pack, json) : bench_workloads(options, pack, json);
}

} // namespace sluice::tools

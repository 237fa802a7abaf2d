//===- time_command.cpp - sluice-emu run --timing -------------------------------------------------------===//
#include "tools/emu/time_command.h"

#include "emulator/timing/clock_curve.h"
#include "emulator/timing/timeline.h"
#include "timing_report/report.h"
#include "timing_report/roofline.h"
#include "timing_report/timeline_picture.h"
#include "tools/emu/argument.h"
#include "tools/emu/counted.h"
#include "tools/shared/output_file.h"
#include "tools/shared/tool_error.h"

#include <cstdlib>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <sys/ioctl.h>
#include <unistd.h>

namespace sluice::tools::emu {

namespace {

using emulator::timing::TimedLaunch;
using emulator::timing::TimelineRequest;
using emulator::timing::TimingOptions;

std::pair<uint64_t, uint64_t> parse_window(const std::string &text) {
  try {
    const size_t comma = text.find(',');
    if (comma == std::string::npos) throw ToolError("has one number");
    const std::string_view view = text;
    return {parse_unsigned(view.substr(0, comma)), parse_unsigned(view.substr(comma + 1))};
  } catch (const ToolError &error) {
    throw ToolError(fmt::format("--timing-window is '{}': {}; it must be BEGIN,END", text, error.what()));
  }
}

TimelineRequest timeline_request(const RunOptions &options) {
  TimelineRequest request;
  request.iteration = options.timing_iteration;
  if (!options.timing_window.empty()) request.window = parse_window(options.timing_window);
  return request;
}

timing_report::TerminalStyle terminal_style() {
  timing_report::TerminalStyle style;
  if (isatty(STDOUT_FILENO) == 0) return style;
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col != 0) style.columns = size.ws_col;
  style.colours = std::getenv("NO_COLOR") == nullptr;
  return style;
}

/// A requested picture: its name is tried before the work.
class PictureFile {
public:
  PictureFile(const char *option, const std::string &path) {
    if (!path.empty()) file.emplace(option, path);
  }
  bool wanted() const { return file.has_value(); }
  void write(const std::string &svg) { file->write({std::as_bytes(std::span(svg))}); }
  void publish() {
    if (file) file->publish();
  }
  static void refuse_same(const PictureFile &a, const PictureFile &b) {
    if (a.file && b.file) OutputFile::refuse_same(*a.file, *b.file);
  }

private:
  std::optional<OutputFile> file;
};

} // namespace

int time_kernel(const emulator::Program &program, const RunOptions &options, const TimedCall &call) {
  const bool in_terminal = options.timing_timeline == "-";
  if (in_terminal && options.json)
    throw ToolError(
        "--timing-timeline - and --json would both write to stdout; --timing-timeline FILE writes "
        "to a file");
  PictureFile timeline("--timing-timeline", in_terminal ? "" : options.timing_timeline);
  PictureFile roofline("--timing-roofline", options.timing_roofline);
  PictureFile::refuse_same(timeline, roofline);

  TimingOptions timing;
  timing.compute_units = options.timing_compute_units;
  timing.compute_unit_stride = options.compute_unit_stride;
  timing.workgroups = options.timing_workgroups;
  timing.xcds = options.timing_xcds;
  timing.instruction_budget = options.budget;
  timing.device = {options.clock_mhz, options.device_compute_units};
  TimedLaunch launch;
  const auto time_at = [&](uint32_t clock_mhz) {
    timing.device.clock_mhz = clock_mhz;
    return emulator::timing::time_launch(program, options.kernel, call.grid, call.block, options.lds_bytes,
                                         call.kernarg, call.memory, timing);
  };
  try {
    // It leaves in `timing` the clock that the timeline uses.
    if (options.clock_curve)
      launch.result = emulator::timing::time_at_published_clock(call.memory, time_at);
    else if (options.timing_timeline.empty())
      launch.result = time_at(options.clock_mhz);
    if (!options.timing_timeline.empty() && launch.result.reports.empty())
      launch = emulator::timing::time_launch_with_timeline(program, options.kernel, call.grid, call.block,
                                                           options.lds_bytes, call.kernarg, call.memory,
                                                           timing, timeline_request(options));
    if (!launch.result.reports.empty()) {
      for (const emulator::Report &report : launch.result.reports)
        fmt::print("{}\n", emulator::to_text(report));
      return 1;
    }
    if (timeline.wanted()) timeline.write(timing_report::timeline_svg(program, launch.timeline, true));
    if (roofline.wanted()) {
      timing_report::Roofline picture;
      picture.title =
          fmt::format("{}, {}", launch.result.kernel, counted(launch.result.workgroups, "workgroup"));
      picture.add(launch.result.kernel, program, launch.result);
      roofline.write(timing_report::roofline_svg(picture));
    }
  } catch (const emulator::timing::GlobalCounterError &error) {
    throw ToolError(fmt::format("{} (--timing-compute-units {} --timing-xcds {}, no --timing-workgroups)",
                                error.what(), timing.device.compute_units_of_xcd(),
                                emulator::timing::device_xcds));
  } catch (const std::invalid_argument &error) {
    throw ToolError(error.what());
  }
  timeline.publish();
  roofline.publish();
  if (options.json) {
    const nlohmann::ordered_json json = options.timing_listing
                                            ? timing_report::to_json(program, launch.result)
                                            : timing_report::to_json(launch.result);
    fmt::print("{}\n", json.dump(2));
    return 0;
  }
  fmt::print("{}", timing_report::to_text(launch.result));
  if (options.timing_listing) fmt::print("\n{}", timing_report::listing(program, launch.result));
  if (in_terminal) fmt::print("\n{}", timing_report::timeline_text(launch.timeline, terminal_style()));
  return 0;
}

} // namespace sluice::tools::emu

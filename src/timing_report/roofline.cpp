//===- roofline.cpp - compares launches with the device's limits ----------------------------------------===//
#include "timing_report/roofline.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <map>
#include <stdexcept>

#include "emulator/isa/mfma_shapes.h"
#include "emulator/timing/op_timing.h"
#include "timing_report/legend.h"
#include "timing_report/svg.h"

namespace sluice::timing_report {

using namespace emulator::timing;

namespace {

/// "f16", "sparse bf16", "fp8_bf8".
std::string matrix_type(const emulator::MfmaShape &shape) {
  std::string type = shape.sparse ? "sparse " : "";
  type += input_name(shape.input);
  const bool names_both = shape.input == emulator::MfmaInput::fp8 || shape.input == emulator::MfmaInput::bf8;
  return names_both ? type.append("_").append(input_name(shape.b_input)) : type;
}

std::map<std::string, double> peaks_of(const emulator::Program &program, const TimingResult &result) {
  const std::vector<OpTiming> timings = op_timings(program.impl());
  std::map<std::string, double> peaks;
  for (uint32_t op = 0; op < timings.size(); ++op) {
    if (timings[op].pipe != Pipe::matrix || result.instructions[op].issued == 0) continue;
    const auto &shape = emulator::mfma_instructions()[program.impl().fast[op].mfma.shape].shape;
    double &peak = peaks[matrix_type(shape)];
    peak = std::max(peak, terabytes_per_second(simds * double(timings[op].flops) / timings[op].matrix_clk,
                                               result.device));
  }
  return peaks;
}

//===--- The picture ------------------------------------------------------------------------------------===//

constexpr double left = 70;
constexpr double top = 40;
constexpr double plot_width = 620;
constexpr double plot_height = 420;
constexpr double legend_width = 360; // its longest line in a wide font
constexpr double legend_row = 17;

struct Axis {
  double low; // limits as decades
  double high;
  double from; // coordinates of the limits
  double to;

  double at(double value) const { return from + (std::log10(value) - low) / (high - low) * (to - from); }
};

double ceiling_of(Level level, const Device &device) {
  return terabytes_per_second(share(level, device), device);
}

class Picture {
public:
  explicit Picture(const Roofline &roofline)
      : roofline(roofline), labels(labels_of(roofline)),
        svg(left + plot_width + 20 + legend_width, height()) {
    for (const MatrixPeak &peak : roofline.peaks)
      highest = std::max(highest, peak.tflops);
    double least_x = highest / ceiling_of(Level::lds, roofline.device),
           most_x = highest / ceiling_of(Level::hbm, roofline.device);
    double least_y = highest;
    for (const RooflinePoint &point : roofline.points) {
      least_x = std::min(least_x, point.flops_per_byte);
      most_x = std::max(most_x, point.flops_per_byte);
      least_y = std::min(least_y, point.tflops);
    }
    // Leaves some room on all sides.
    x = {std::log10(least_x / 2), std::log10(most_x * 2.5), left, left + plot_width};
    y = {std::log10(least_y / 3), std::log10(highest * 1.6), top + plot_height, top};
  }

  std::string draw() && {
    define_styles();
    svg.text("title", left, 20, roofline.title);
    draw_grid();
    for (size_t level = 0; level < level_count; ++level)
      draw_bandwidth(Level(level));
    for (const MatrixPeak &peak : roofline.peaks)
      draw_peak(peak);
    for (const std::string &label : labels)
      draw_launch(label);
    draw_legend();
    return std::move(svg).finish();
  }

private:
  static std::vector<std::string> labels_of(const Roofline &roofline) {
    std::vector<std::string> labels;
    for (const RooflinePoint &point : roofline.points)
      if (std::find(labels.begin(), labels.end(), point.label) == labels.end()) labels.push_back(point.label);
    return labels;
  }
  double height() const {
    const double rows = 2 + level_count + double(roofline.peaks.size()) + 2.5 * double(labels.size()) +
                        double(roofline.points.size());
    return std::max(top + plot_height + 50, top + legend_row * rows);
  }

  void define_styles() {
    std::string rules =
        ".title{font-size:14px;font-weight:bold}.grid{stroke:#e6e6e6}.fine{stroke:#f3f3f3}.frame{stroke:#"
        "888888}"
        ".note{fill:#444444}.head{font-weight:bold}.peak{stroke:#1f4fa3;stroke-width:2}"
        ".peak_text{fill:#1f4fa3}.launch{stroke:#888888;stroke-dasharray:3 3}.marker{fill:#555555}\n";
    for (size_t i = 0; i < level_count; ++i)
      rules += fmt::format(".{0}{{stroke:{1};stroke-width:1.5}}.{0}_text{{fill:{1};font-size:10px}}"
                           ".{0}_point{{fill:{1};stroke:#ffffff;stroke-width:0.8}}\n",
                           level_name(Level(i)), colour_of(Level(i)));
    svg.style(rules);
  }

  void draw_grid() {
    auto lines = [&](const Axis &axis, auto draw) {
      for (int decade = int(std::floor(axis.low)); decade <= int(axis.high); ++decade)
        for (int digit = 1; digit < 10; ++digit) {
          const double value = digit * std::pow(10, decade);
          if (std::log10(value) < axis.low || std::log10(value) > axis.high) continue;
          const bool labelled = digit == 1 || digit == 2 || digit == 5;
          draw(digit == 1 ? "grid" : "fine", axis.at(value), labelled ? fmt::format("{:g}", value) : "");
        }
    };
    lines(x, [&](std::string_view classes, double at, const std::string &number) {
      svg.line(classes, at, top, at, top + plot_height);
      if (!number.empty()) svg.text("note", at, top + plot_height + 15, number, Svg::Anchor::middle);
    });
    lines(y, [&](std::string_view classes, double at, const std::string &number) {
      svg.line(classes, left, at, left + plot_width, at);
      if (!number.empty()) svg.text("note", left - 6, at + 4, number, Svg::Anchor::end);
    });
    svg.line("frame", left, top + plot_height, left + plot_width, top + plot_height);
    svg.line("frame", left, top, left, top + plot_height);
    svg.text("note", left + plot_width / 2, top + plot_height + 35, "matrix FLOP per byte of the level",
             Svg::Anchor::middle);
    svg.text("note", 20, top + plot_height / 2, "TFLOPS in MFMAs", Svg::Anchor::middle, -90);
  }

  /// From the left or lower edge to the highest peak.
  void draw_bandwidth(Level level) {
    const double terabytes = ceiling_of(level, roofline.device);
    const double first = std::max(std::pow(10, x.low), std::pow(10, y.low) / terabytes);
    const double last = std::min(std::pow(10, x.high), highest / terabytes);
    if (first >= last) return;
    svg.line(level_name(level), x.at(first), y.at(first * terabytes), x.at(last), y.at(last * terabytes));
    const double degrees =
        std::atan2(y.at(last * terabytes) - y.at(first * terabytes), x.at(last) - x.at(first)) * 180 / M_PI;
    // Ceilings are close together, so the labels' positions along them differ.
    const double along =
        std::pow(first, 0.75 - 0.15 * double(level)) * std::pow(last, 0.25 + 0.15 * double(level));
    svg.text(fmt::format("{}_text", level_name(level)), x.at(along), y.at(along * terabytes) - 4,
             fmt::format("{} {:.1f} TB/s", level_name(level), terabytes), Svg::Anchor::middle, degrees);
  }

  void draw_peak(const MatrixPeak &peak) {
    const double first =
        std::min(std::pow(10, x.high), peak.tflops / ceiling_of(Level::lds, roofline.device));
    svg.line("peak", x.at(std::max(first, std::pow(10, x.low))), y.at(peak.tflops), left + plot_width,
             y.at(peak.tflops));
    svg.text("peak_text", left + plot_width - 4, y.at(peak.tflops) - 5,
             fmt::format("{} {:.0f} TFLOPS", peak.type, peak.tflops), Svg::Anchor::end);
  }

  size_t shape_of(const std::string &label) const {
    return size_t(std::find(labels.begin(), labels.end(), label) - labels.begin());
  }

  /// A polygon for each launch.
  static std::string marker(double at_x, double at_y, size_t shape) {
    const size_t corners = shape == 0 ? 16 : 2 + shape;
    std::string points;
    for (size_t i = 0; i < corners; ++i) {
      const double angle = 2 * M_PI * double(i) / double(corners) - M_PI / 2;
      points += fmt::format("{}{:.2f},{:.2f}", i == 0 ? "" : " ", at_x + 6 * std::cos(angle),
                            at_y + 6 * std::sin(angle));
    }
    return points;
  }

  void draw_launch(const std::string &label) {
    double first = HUGE_VAL, last = 0, tflops = 0;
    for (const RooflinePoint &point : roofline.points) {
      if (point.label != label) continue;
      first = std::min(first, point.flops_per_byte);
      last = std::max(last, point.flops_per_byte);
      tflops = point.tflops;
    }
    svg.begin_group(label);
    svg.line("launch", x.at(first), y.at(tflops), x.at(last), y.at(tflops));
    for (const RooflinePoint &point : roofline.points)
      if (point.label == label)
        svg.polygon(fmt::format("{}_point", level_name(point.level)),
                    marker(x.at(point.flops_per_byte), y.at(point.tflops), shape_of(label)),
                    fmt::format("{}, {}: {:.1f} FLOP a byte, {:.1f} TFLOPS", label, level_name(point.level),
                                point.flops_per_byte, point.tflops));
    svg.end_group();
  }

  void draw_legend() {
    const double at_x = left + plot_width + 24;
    double at_y = top + 8;
    auto head = [&](std::string_view text) {
      svg.text("head", at_x, at_y, text);
      at_y += legend_row;
    };
    head(fmt::format("{} compute units at {} MHz", roofline.device.compute_units, roofline.device.clock_mhz));
    for (const MatrixPeak &peak : roofline.peaks) {
      svg.line("peak", at_x, at_y - 4, at_x + 18, at_y - 4);
      svg.text("", at_x + 25, at_y, fmt::format("MFMA {}: {:.0f} TFLOPS", peak.type, peak.tflops));
      at_y += legend_row;
    }
    for (size_t i = 0; i < level_count; ++i) {
      svg.line(level_name(Level(i)), at_x, at_y - 4, at_x + 18, at_y - 4);
      svg.text("", at_x + 25, at_y,
               fmt::format("{}: {:.1f} TB/s", level_name(Level(i)), ceiling_of(Level(i), roofline.device)));
      at_y += legend_row;
    }
    for (const std::string &label : labels) {
      at_y += legend_row / 2;
      svg.polygon("marker", marker(at_x + 9, at_y - 4, shape_of(label)));
      svg.text("head", at_x + 25, at_y, label);
      at_y += legend_row;
      for (const RooflinePoint &point : roofline.points) {
        if (point.label != label) continue;
        const double share_percent =
            100 * point.tflops / point.flops_per_byte / ceiling_of(point.level, roofline.device);
        svg.polygon(fmt::format("{}_point", level_name(point.level)),
                    marker(at_x + 9, at_y - 4, shape_of(label)));
        svg.text("", at_x + 25, at_y,
                 fmt::format("{}: {:.1f} FLOP/byte, {:.1f} % of its TB/s", level_name(point.level),
                             point.flops_per_byte, share_percent));
        at_y += legend_row;
      }
      const auto tflops =
          std::find_if(roofline.points.begin(), roofline.points.end(), [&](const RooflinePoint &point) {
            return point.label == label;
          })->tflops;
      svg.text("", at_x + 25, at_y, fmt::format("{:.1f} TFLOPS", tflops));
      at_y += legend_row;
    }
  }

  const Roofline &roofline;
  const std::vector<std::string> labels; // by launch
  Svg svg;
  double highest = 0; // highest peak
  Axis x{}, y{};
};

} // namespace

void Roofline::add(const std::string &label, const emulator::Program &program, const TimingResult &result) {
  double flops = 0;
  for (const WorkgroupTime &time : result.simulated)
    flops += double(time.flops);
  if (flops == 0)
    throw std::invalid_argument("kernel \"" + result.kernel +
                                "\" ran no MFMA; a roofline shows matrix FLOPS");
  // Loads go through each level to the next, except for LDS.
  if (result.traffic.lds_bytes + result.traffic.l1_bytes + result.traffic.l2_bytes == 0)
    throw std::invalid_argument("kernel \"" + result.kernel +
                                "\" moved no bytes; a roofline shows FLOPS over bytes");
  if (points.empty())
    device = result.device;
  else if (device.clock_mhz != result.device.clock_mhz || device.compute_units != result.device.compute_units)
    throw std::invalid_argument(fmt::format(
        "\"{}\" was timed on {} compute units at {} MHz; the roofline is that of {} at {}", label,
        result.device.compute_units, result.device.clock_mhz, device.compute_units, device.clock_mhz));
  for (const auto &[type, tflops] : peaks_of(program, result))
    if (std::none_of(peaks.begin(), peaks.end(), [&](const MatrixPeak &peak) { return peak.type == type; }))
      peaks.push_back({type, tflops});
  for (size_t i = 0; i < level_count; ++i)
    if (const uint64_t bytes = result.traffic.bytes(Level(i)))
      points.push_back({label, Level(i), flops / double(bytes), result.tflops()});
}

std::string roofline_svg(const Roofline &roofline) {
  if (roofline.points.empty()) throw std::invalid_argument("a roofline needs one launch at least");
  return Picture(roofline).draw();
}

} // namespace sluice::timing_report

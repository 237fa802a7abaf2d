//===- timeline_svg.cpp - draws a timeline as SVG -------------------------------------------------------===//
#include <algorithm>
#include <fmt/format.h>
#include <map>

#include "emulator/machine/program.h"
#include "emulator/timing/lds_ports.h"
#include "timing_report/legend.h"
#include "timing_report/svg.h"
#include "timing_report/timeline_picture.h"

namespace sluice::timing_report {

using namespace emulator::timing;

namespace {

constexpr double left = 130;       // left of the plot
constexpr double right = 60;       // right of it
constexpr double top = 44;         // above the first strip
constexpr double axis_height = 22; // above the rows of each strip
constexpr double strip_gap = 14;   // below the rows
constexpr double lane = 6;         // a third of a wave's row
constexpr double gap = 4;          // between rows
constexpr double simd_gap = 8;     // between SIMDs
constexpr double pipe_row = 11;
constexpr double plot_width = 1200;
constexpr uint64_t most_strip_clk = 3200; // a turn is one and a half pixels
constexpr double legend_column = 132;
constexpr double legend_row = 16;

/// The third of a wave's row.
uint32_t lane_of(Pipe pipe) {
  switch (pipe) {
  case Pipe::matrix:
    return 0;
  case Pipe::valu:
  case Pipe::transcendental:
  case Pipe::packed_f32:
    return 1;
  default:
    return 2;
  }
}

std::string wait_class(Stall reason) {
  return fmt::format("wait_{}", stall_name(reason));
}

/// A round number of clk between ticks, for about ten ticks.
uint64_t tick_clk(uint64_t clk) {
  uint64_t step = 1;
  while (clk / step > 12)
    step *= step * 10 > clk ? 2 : 10;
  return step;
}

/// A stretch of the timeline, drawn across the whole width.
struct Strip {
  uint64_t begin;
  uint64_t end;
  uint64_t full_clk; // of a strip that reaches the right side

  bool shows(uint64_t first, uint64_t last) const { return first < end && last > begin; }
  double x_of(uint64_t clk) const {
    return left + plot_width * double(std::clamp(clk, begin, end) - begin) / double(full_clk);
  }
};

class Picture {
public:
  Picture(const emulator::Program &program, const Timeline &timeline, bool tips)
      : program(program.impl()), timeline(timeline), tips(tips), strips(make_strips(timeline)),
        svg(left + plot_width + right, height()) {}

  std::string draw() && {
    define_styles();
    svg.text("title", 8, 18, timeline_title(timeline));
    svg.text("note", 8, 33,
             fmt::format("clk {} to {} of the launch; a bar is as long as its pipe or slot is taken",
                         timeline.begin, timeline.end));
    double y = top;
    for (const Strip &strip : strips) {
      draw_strip(strip, y);
      y += strip_height();
    }
    draw_legend(y);
    return std::move(svg).finish();
  }

private:
  static std::vector<Strip> make_strips(const Timeline &timeline) {
    const uint64_t clk = timeline.end - timeline.begin;
    const uint64_t count = (clk + most_strip_clk - 1) / most_strip_clk;
    const uint64_t full = (clk + count - 1) / count;
    std::vector<Strip> strips;
    for (uint64_t begin = timeline.begin; begin < timeline.end; begin += full)
      strips.push_back({begin, std::min(begin + full, timeline.end), full});
    return strips;
  }

  double rows_height() const {
    return simds * (pipe_row + gap + simd_gap) + double(timeline.waves.size()) * (3 * lane + gap) +
           (lds_ports + 1) * (pipe_row + gap);
  }
  double strip_height() const { return axis_height + rows_height() + strip_gap; }
  static uint32_t legend_columns() { return uint32_t((left + plot_width) / legend_column); }
  double height() const {
    const auto entries = uint32_t(pipe_count + stall_count);
    const uint32_t rows = (entries + legend_columns() - 1) / legend_columns();
    return top + double(strips.size()) * strip_height() + rows * legend_row + 4;
  }

  void define_styles() {
    std::string rules = ".title{font-size:13px;font-weight:bold}.note{fill:#555555}\n"
                        ".axis{stroke:#999999;stroke-width:0.5}.row{fill:#f4f4f4}.simd{font-weight:bold}\n";
    auto kind = [&](std::string_view name, std::string_view paint) {
      rules += fmt::format(".{0}{{fill:{1}}}path.{0}{{fill:none;stroke:{1}}}\n", name, paint);
    };
    for (size_t i = 0; i < pipe_count; ++i)
      kind(pipe_name(Pipe(i)), style_of(Pipe(i)).colour);
    // Shading distinguishes neighbours on a pipe by their waves.
    rules += ".odd{fill-opacity:0.6;stroke-opacity:0.6}\n";
    for (size_t i = 0; i < stall_count; ++i) {
      kind(wait_class(Stall(i)), fmt::format("url(#{})", wait_class(Stall(i))));
      svg.hatch(wait_class(Stall(i)), style_of(Stall(i)).colour, i % 2 == 0 ? 45 : -45);
    }
    svg.style(rules);
  }

  //===--- A strip --------------------------------------------------------------------------------------===//

  void draw_strip(const Strip &strip, double y) {
    svg.begin_group(fmt::format("strip-{}", strip.begin - timeline.begin));
    draw_axis(strip, y);
    y += axis_height;
    for (uint32_t simd = 0; simd < simds; ++simd) {
      svg.text("simd", 8, y + 9, fmt::format("SIMD {}", simd));
      y = draw_pipe(strip, fmt::format("matrix-{}", simd), "matrix core", y, [&](const IssuedBar &bar) {
        return bar.pipe == Pipe::matrix && timeline.waves[bar.wave].simd == simd;
      });
      for (uint32_t wave = 0; wave < timeline.waves.size(); ++wave)
        if (timeline.waves[wave].simd == simd) y = draw_wave(strip, wave, y);
      y += simd_gap;
    }
    for (uint32_t port = 0; port < lds_ports; ++port)
      y = draw_pipe(
          strip, fmt::format("lds-{}", port), fmt::format("LDS port {}", port), y, [&](const IssuedBar &bar) {
            return bar.pipe == Pipe::lds && LdsPorts::port_of(timeline.waves[bar.wave].simd) == port;
          });
    draw_pipe(strip, "vmem", "vector memory", y, [](const IssuedBar &bar) { return bar.pipe == Pipe::vmem; });
    svg.end_group();
  }

  void draw_axis(const Strip &strip, double y) {
    const uint64_t step = tick_clk(strip.full_clk);
    const uint64_t first = strip.begin - timeline.begin;
    svg.text("note", left - 8, y + 12, "clk", Svg::Anchor::end);
    for (uint64_t clk = (first + step - 1) / step * step; clk <= strip.end - timeline.begin; clk += step) {
      const double x = strip.x_of(timeline.begin + clk);
      svg.line("axis", x, y + 16, x, y + axis_height + rows_height());
      svg.text("note", x, y + 12, std::to_string(clk), Svg::Anchor::middle);
    }
  }

  /// A bar of a row, before it is drawn.
  struct Bar {
    std::string classes;
    uint32_t op;
    std::string what;
    uint64_t begin;
    uint64_t end;
  };

  void draw_bars(const Strip &strip, const std::vector<Bar> &bars, double y, double high) {
    if (!tips) return draw_strokes(strip, bars, y, high);
    for (const Bar &bar : bars)
      svg.rectangle(bar.classes, strip.x_of(bar.begin), y, strip.x_of(bar.end) - strip.x_of(bar.begin), high,
                    fmt::format("{:06x}: {}\n{}, clk {} to {}", program.address_of(bar.op),
                                program.text(bar.op), bar.what, bar.begin, bar.end));
  }

  /// Uses as few bytes as possible: bars of one kind are one path, and adjacent bars are one stroke of it.
  void draw_strokes(const Strip &strip, const std::vector<Bar> &bars, double y, double high) {
    std::map<std::string, std::vector<std::pair<uint64_t, uint64_t>>> by_class;
    for (const Bar &bar : bars) {
      auto &strokes = by_class[bar.classes];
      if (!strokes.empty() && strokes.back().second == bar.begin)
        strokes.back().second = bar.end;
      else
        strokes.emplace_back(bar.begin, bar.end);
    }
    for (const auto &[classes, strokes] : by_class) {
      std::vector<std::pair<double, double>> from_to;
      for (const auto &[begin, end] : strokes)
        from_to.emplace_back(strip.x_of(begin), strip.x_of(end));
      svg.strokes(classes, y + high / 2, high, from_to);
    }
  }

  double draw_wave(const Strip &strip, uint32_t wave, double y) {
    const WaveName &name = timeline.waves[wave];
    svg.text("", left - 8, y + 2 * lane, fmt::format("wg {} wave {}", name.workgroup, name.wave),
             Svg::Anchor::end);
    svg.begin_group(fmt::format("wave-{}-{}-{}", name.workgroup, name.wave, strip.begin - timeline.begin));
    svg.rectangle("row", left, y, strip.x_of(strip.end) - left, 3 * lane);
    std::vector<Bar> waits;
    for (const WaitingBar &wait : timeline.waiting)
      if (wait.wave == wave && strip.shows(wait.begin, wait.end))
        waits.push_back({wait_class(wait.reason), wait.op, fmt::format("waits: {}", stall_name(wait.reason)),
                         wait.begin, wait.end});
    draw_bars(strip, waits, y, 3 * lane);
    std::array<std::vector<Bar>, 3> lanes;
    for (const IssuedBar &issued : timeline.issued) {
      const uint32_t in_lane = lane_of(issued.pipe);
      const uint64_t end = in_lane == 2 ? issued.clk + turn_clk : issued.busy.end;
      if (issued.wave == wave && strip.shows(issued.clk, end))
        lanes[in_lane].push_back({std::string(pipe_name(issued.pipe)), issued.op,
                                  std::string(pipe_name(issued.pipe)), issued.clk, end});
    }
    for (uint32_t i = 0; i < lanes.size(); ++i)
      draw_bars(strip, lanes[i], y + i * lane, lane);
    svg.end_group();
    return y + 3 * lane + gap;
  }

  template <class Select>
  double draw_pipe(const Strip &strip, const std::string &id, std::string_view label, double y,
                   Select select) {
    svg.text("", left - 8, y + 9, label, Svg::Anchor::end);
    svg.begin_group(fmt::format("{}-{}", id, strip.begin - timeline.begin));
    svg.rectangle("row", left, y, strip.x_of(strip.end) - left, pipe_row);
    uint64_t busy = 0;
    std::vector<Bar> bars;
    for (const IssuedBar &issued : timeline.issued) {
      const auto [begin, end] = issued.busy;
      if (!select(issued) || !strip.shows(begin, end)) continue;
      busy += std::min(end, strip.end) - std::max(begin, strip.begin);
      bars.push_back({fmt::format("{}{}", pipe_name(issued.pipe), issued.wave % 2 == 0 ? "" : " odd"),
                      issued.op, fmt::format("wave {}", timeline.waves[issued.wave].wave), begin, end});
    }
    draw_bars(strip, bars, y, pipe_row);
    svg.end_group();
    svg.text("note", left + plot_width + 6, y + 9,
             fmt::format("{:.1f} %", 100 * double(busy) / double(strip.end - strip.begin)));
    return y + pipe_row + gap;
  }

  void draw_legend(double y) {
    uint32_t entry = 0;
    auto add = [&](const std::string &classes, std::string_view name) {
      const double x = 8 + legend_column * (entry % legend_columns());
      const double row = y + legend_row * (entry / legend_columns());
      svg.rectangle(classes, x, row, 18, 10);
      svg.text("", x + 23, row + 9, name);
      ++entry;
    };
    svg.begin_group("legend");
    for (size_t i = 0; i < pipe_count; ++i)
      add(std::string(pipe_name(Pipe(i))), pipe_name(Pipe(i)));
    for (size_t i = 0; i < stall_count; ++i)
      add(wait_class(Stall(i)), fmt::format("waits: {}", stall_name(Stall(i))));
    svg.end_group();
  }

  const emulator::ProgramImpl &program;
  const Timeline &timeline;
  const bool tips;
  const std::vector<Strip> strips;
  Svg svg;
};

} // namespace

std::string timeline_title(const Timeline &timeline) {
  std::string title = fmt::format("{}, compute unit {}", timeline.kernel, timeline.compute_unit);
  if (timeline.iteration) {
    const LoopIteration &i = *timeline.iteration;
    title += fmt::format(": iteration {} of 0 to {} of loop {:06x} by wave {} of workgroup {}", i.number,
                         i.count - 1, i.loop, i.wave, i.workgroup);
  }
  return title;
}

std::string timeline_svg(const emulator::Program &program, const Timeline &timeline, bool tips) {
  return Picture(program, timeline, tips).draw();
}

} // namespace sluice::timing_report

//===- timeline_text.cpp - draws a timeline in a terminal -----------------------------------------------===//
#include <algorithm>
#include <fmt/format.h>
#include <map>

#include "emulator/timing/lds_ports.h"
#include "timing_report/legend.h"
#include "timing_report/timeline_picture.h"

namespace sluice::timing_report {

using namespace emulator::timing;

namespace {

constexpr uint32_t label_columns = 22;
constexpr uint32_t least_cells = 20;

class Lines {
public:
  Lines(const Timeline &timeline, const TerminalStyle &style)
      : timeline(timeline), clk(timeline.end - timeline.begin), colours(style.colours),
        cells(std::min(clk, uint64_t(std::max(style.columns, label_columns + least_cells) - label_columns))) {
  }

  std::string draw() && {
    text = timeline_title(timeline) + "\n";
    text += fmt::format("clk {} to {}, {:.1f} clk a column\n", timeline.begin, timeline.end,
                        double(clk) / double(cells));
    for (uint32_t simd = 0; simd < simds; ++simd) {
      add_pipe(fmt::format("SIMD {} matrix core", simd), Pipe::matrix,
               [&](const WaveName &wave) { return wave.simd == simd; });
      for (uint32_t wave = 0; wave < timeline.waves.size(); ++wave)
        if (timeline.waves[wave].simd == simd) add_wave(wave);
    }
    for (uint32_t port = 0; port < lds_ports; ++port)
      add_pipe(fmt::format("LDS port {}", port), Pipe::lds,
               [&](const WaveName &wave) { return LdsPorts::port_of(wave.simd) == port; });
    add_pipe("vector memory", Pipe::vmem, [](const WaveName &) { return true; });
    add_legend();
    return std::move(text);
  }

private:
  using Moments = std::vector<char>; // by clk of the window

  void paint(Moments &row, uint64_t begin, uint64_t end, char letter) const {
    const uint64_t first = std::max(begin, timeline.begin), last = std::min(end, timeline.end);
    for (uint64_t at = first; at < last; ++at)
      row[at - timeline.begin] = letter;
  }

  std::pair<uint64_t, uint64_t> clk_of_cell(uint64_t cell) const {
    return {cell * clk / cells, (cell + 1) * clk / cells};
  }

  std::string coloured(char letter) const {
    const auto found = terminal_colours().find(letter);
    if (!colours || found == terminal_colours().end()) return std::string(1, letter);
    return fmt::format("\x1b[38;5;{}m{}\x1b[0m", found->second, letter);
  }

  static const std::map<char, uint8_t> &terminal_colours() {
    static const std::map<char, uint8_t> by_letter = [] {
      std::map<char, uint8_t> all;
      for (size_t i = 0; i < pipe_count; ++i)
        all[style_of(Pipe(i)).letter] = style_of(Pipe(i)).terminal;
      for (size_t i = 0; i < stall_count; ++i)
        all[style_of(Stall(i)).letter] = style_of(Stall(i)).terminal;
      return all;
    }();
    return by_letter;
  }

  /// Shows what takes the wave's time: the shortest of its activities, or what it waits for.
  void add_wave(uint32_t wave) {
    Moments row(clk, ' ');
    for (const WaitingBar &wait : timeline.waiting)
      if (wait.wave == wave) paint(row, wait.begin, wait.end, style_of(wait.reason).letter);
    auto paint_issued = [&](auto select, bool whole) {
      for (const IssuedBar &bar : timeline.issued)
        if (bar.wave == wave && select(bar.pipe))
          paint(row, bar.clk, whole ? bar.busy.end : bar.clk + turn_clk, style_of(bar.pipe).letter);
    };
    auto is_vector = [](Pipe pipe) {
      return pipe == Pipe::valu || pipe == Pipe::transcendental || pipe == Pipe::packed_f32;
    };
    paint_issued([](Pipe pipe) { return pipe == Pipe::matrix; }, true);
    paint_issued(is_vector, true);
    paint_issued([&](Pipe pipe) { return pipe != Pipe::matrix && !is_vector(pipe); }, false);
    const WaveName &name = timeline.waves[wave];
    add_label(fmt::format("  wg {} wave {}", name.workgroup, name.wave));
    for (uint64_t cell = 0; cell < cells; ++cell) {
      const auto [first, last] = clk_of_cell(cell);
      std::map<char, uint64_t> count;
      for (uint64_t at = first; at < last; ++at)
        ++count[row[at]];
      const auto most = std::max_element(count.begin(), count.end(),
                                         [](const auto &a, const auto &b) { return a.second < b.second; });
      text += coloured(most->first);
    }
    text += "\n";
  }

  template <class Select> void add_pipe(const std::string &label, Pipe pipe, Select select) {
    Moments row(clk, ' ');
    for (const IssuedBar &bar : timeline.issued)
      if (bar.pipe == pipe && select(timeline.waves[bar.wave])) paint(row, bar.busy.begin, bar.busy.end, 'x');
    add_label(label);
    for (uint64_t cell = 0; cell < cells; ++cell) {
      const auto [first, last] = clk_of_cell(cell);
      const auto busy =
          uint64_t(std::count(row.begin() + ptrdiff_t(first), row.begin() + ptrdiff_t(last), 'x'));
      text += busy == 0 ? '.' : busy == last - first ? '#' : char('0' + 10 * busy / (last - first));
    }
    text += "\n";
  }

  void add_label(const std::string &label) {
    text += fmt::format("{:<{}.{}} ", label, label_columns - 1, label_columns - 1);
  }

  void add_legend() {
    text += "pipes:";
    for (size_t i = 0; i < pipe_count; ++i)
      text += fmt::format(" {} {}", coloured(style_of(Pipe(i)).letter), pipe_name(Pipe(i)));
    text += "\nwaits:";
    for (size_t i = 0; i < stall_count; ++i)
      text += fmt::format(" {} {}", coloured(style_of(Stall(i)).letter), stall_name(Stall(i)));
    text += "\nbusy: . not, 0 to 9 tenths, # all of the time\n";
  }

  const Timeline &timeline;
  const uint64_t clk;
  const bool colours;
  const uint64_t cells;
  std::string text;
};

} // namespace

std::string timeline_text(const Timeline &timeline, const TerminalStyle &style) {
  return Lines(timeline, style).draw();
}

} // namespace sluice::timing_report

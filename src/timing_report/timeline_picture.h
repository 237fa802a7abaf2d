//===- timeline_picture.h - a timeline to look at -------------------------------------------------------===//
//
// Waves downwards, by SIMD; clk to the right. Above the waves of a SIMD stands what its matrix core does, and
// below all of them what the ports of LDS and the address path of vector memory do.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include <string>

#include "emulator/timing/timeline.h"

namespace sluice::timing_report {

/// One line that says what is shown.
std::string timeline_title(const emulator::timing::Timeline &timeline);

/// Of a wave's row, the upper part has its matrix instructions, the middle its vector ones, each as long as
/// it keeps its pipe, and the lower part the turns of all else. What a wave waits for lies behind them. With
/// `tips`, a viewer shows the instruction of each bar.
std::string timeline_svg(const emulator::Program &program, const emulator::timing::Timeline &timeline,
                         bool tips);

struct TerminalStyle {
  uint32_t columns = 120;
  bool colours = false;
};
/// A letter for each stretch of time: of what the wave did, or waited for, most of it. A row of a pipe has
/// the tenths of the stretch that it was busy.
std::string timeline_text(const emulator::timing::Timeline &timeline, const TerminalStyle &style);

} // namespace sluice::timing_report

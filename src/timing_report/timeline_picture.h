//===- timeline_picture.h - draws a timeline ------------------------------------------------------------===//
//
// Waves are rows, by SIMD; clk goes to the right. The activity of a SIMD's matrix core is above its waves;
// that of the LDS ports and of the address path of vector memory is below all waves.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include <string>

#include "emulator/timing/timeline.h"

namespace sluice::timing_report {

/// One line that describes what is shown.
std::string timeline_title(const emulator::timing::Timeline &timeline);

/// The upper part of a wave's row has its matrix instructions, the middle its vector ones, each as long as it
/// keeps its pipe, and the lower part the turns of all others. Waits are in the background. With `tips`,
/// viewers show the instruction of each bar.
std::string timeline_svg(const emulator::Program &program, const emulator::timing::Timeline &timeline,
                         bool tips);

struct TerminalStyle {
  uint32_t columns = 120;
  bool colours = false;
};
/// A letter for each stretch of time: what the wave did, or waited for, during most of it. The row of a pipe
/// shows in tenths how much of the stretch it was busy.
std::string timeline_text(const emulator::timing::Timeline &timeline, const TerminalStyle &style);

} // namespace sluice::timing_report

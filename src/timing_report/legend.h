//===- legend.h - colours and letters of pipes, waits and levels ----------------------------------------===//
#pragma once

#include <string_view>

#include "emulator/timing/timing.h"

namespace sluice::timing_report {

struct Style {
  std::string_view colour; // as #rrggbb
  char letter;             // upper case for pipes, lower case for waits
  uint8_t terminal;        // one of the 256 colours of terminals
};

Style style_of(emulator::timing::Pipe pipe);
Style style_of(emulator::timing::Stall stall);
std::string_view colour_of(emulator::timing::Level level);

} // namespace sluice::timing_report

//===- legend.cpp - colours and letters of pipes, waits and levels --------------------------------------===//
#include "timing_report/legend.h"

namespace sluice::timing_report {

using namespace emulator::timing;

Style style_of(Pipe pipe) {
  static constexpr Style styles[pipe_count] = {
      {"#1f4fa3", 'M', 27},  // matrix
      {"#2a9d4e", 'V', 34},  // valu
      {"#f08a1d", 'T', 208}, // transcendental
      {"#c7b300", 'P', 184}, // packed_f32
      {"#7a7a7a", 'S', 245}, // salu
      {"#7b52ab", 'K', 97},  // smem
      {"#c8321f", 'G', 160}, // vmem
      {"#0fa3b1", 'L', 37},  // lds
      {"#2b2b2b", 'B', 250}, // branch
      {"#b3a18f", 'I', 137}, // internal
  };
  return styles[size_t(pipe)];
}

Style style_of(Stall stall) {
  static constexpr Style styles[stall_count] = {
      {"#e08a80", 'v', 174}, // vmcnt
      {"#74c3cb", 'l', 116}, // lgkmcnt
      {"#b79bd6", 'b', 183}, // barrier
      {"#c9b9a6", 'n', 180}, // nop
      {"#8a8a8a", 'f', 244}, // fetch
      {"#8fa9d8", 'p', 110}, // pipe_busy
      {"#d9cc5a", 'd', 185}, // dependency
      {"#f2b774", 'q', 215}, // queue
      {"#c4c4c4", 's', 252}, // slot
  };
  return styles[size_t(stall)];
}

std::string_view colour_of(Level level) {
  static constexpr std::string_view colours[level_count] = {"#0b7a85", "#2a9d4e", "#7b52ab", "#d9730d",
                                                            "#c8321f"};
  return colours[size_t(level)];
}

} // namespace sluice::timing_report

//===- timeline.h - what the waves of a compute unit do, clk by clk -------------------------------------===//
//
// A window of a launch: by default one iteration of the loop in which most instructions are issued, in the
// midst of the launch. The launch is simulated three times on the same memory: to find the loop and a
// workgroup, to find when the workgroup's iterations begin (which a given window does without), and to record
// the window.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "emulator/timing/observer.h"
#include "emulator/timing/timing.h"

namespace sluice::emulator::timing {

/// A longer one is refused: it would hold more than a picture shows.
inline constexpr uint64_t most_window_clk = 1 << 16;

struct TimelineRequest {
  /// Of the loop, counted from 0. Without: the iteration whose length is the median.
  std::optional<uint64_t> iteration;
  /// Clk since the launch, the second excluded, in place of an iteration.
  std::optional<std::pair<uint64_t, uint64_t>> window;
};

/// An instruction that was issued in the window, or whose pipe was busy then.
struct IssuedBar {
  uint32_t wave; // by index
  uint32_t op;
  Pipe pipe;
  uint64_t clk; // of the issue, which takes a turn
  Occupation busy;
};

struct WaitingBar {
  uint32_t wave; // by index
  uint32_t op;
  Stall reason;
  uint64_t begin;
  uint64_t end;
};

struct LoopIteration {
  uint64_t loop;      // address of the loop's first instruction
  uint64_t workgroup; // whose wave runs it
  uint32_t wave;
  uint64_t number; // from 0
  uint64_t count;  // of that wave
};

/// Bars are as long as they were; those at the window's ends may reach beyond it.
struct Timeline {
  std::string kernel;
  uint32_t compute_unit = 0;
  uint64_t begin = 0; // clk since the launch
  uint64_t end = 0;   // excluded
  std::optional<LoopIteration> iteration;
  std::vector<WaveName> waves; // that were there: by SIMD, then age
  std::vector<IssuedBar> issued;
  std::vector<WaitingBar> waiting;
};

struct TimedLaunch {
  TimingResult result;
  Timeline timeline; // empty if the result has reports
};

/// Arguments as for `time_launch`; `memory` is what it was before between simulations. Throws
/// std::invalid_argument if the request asks for what the launch does not have.
TimedLaunch time_launch_with_timeline(const Program &program, std::string_view kernel,
                                      std::array<uint32_t, 3> grid, std::array<uint32_t, 3> block,
                                      uint32_t dynamic_lds_bytes, std::span<const std::byte> kernarg,
                                      const Memory &memory, const TimingOptions &options,
                                      const TimelineRequest &request);

} // namespace sluice::emulator::timing

//===- timeline.h - the activity of a compute unit's waves, clk by clk ----------------------------------===//
//
// Records a window of a launch: by default one iteration of the loop in which most instructions are issued,
// in the middle of the launch. The launch is simulated three times on the same memory: to find the loop and a
// workgroup, to find when the workgroup's iterations begin (not needed if the window is given), and to record
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

/// A longer window is refused: it would contain more than a picture can show.
inline constexpr uint64_t most_window_clk = 1 << 16;

struct TimelineRequest {
  /// The loop's iteration, counted from 0. If not set: the iteration of median length.
  std::optional<uint64_t> iteration;
  /// Clk since the launch, the second excluded, instead of an iteration.
  std::optional<std::pair<uint64_t, uint64_t>> window;
};

/// An instruction that was issued in the window, or whose pipe was busy in it.
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
  uint64_t workgroup; // of the wave that runs it
  uint32_t wave;
  uint64_t number; // from 0
  uint64_t count;  // iterations of that wave
};

/// Bars have their full length; those at the window's ends may extend beyond it.
struct Timeline {
  std::string kernel;
  uint32_t compute_unit = 0;
  uint64_t begin = 0; // clk since the launch
  uint64_t end = 0;   // excluded
  std::optional<LoopIteration> iteration;
  std::vector<WaveName> waves; // in the window: by SIMD, then age
  std::vector<IssuedBar> issued;
  std::vector<WaitingBar> waiting;
};

struct TimedLaunch {
  TimingResult result;
  Timeline timeline; // empty if the result has reports
};

/// Arguments as for `time_launch`; `memory` is restored between simulations. Throws std::invalid_argument if
/// the launch does not have what the request asks for.
TimedLaunch time_launch_with_timeline(const Program &program, std::string_view kernel,
                                      std::array<uint32_t, 3> grid, std::array<uint32_t, 3> block,
                                      uint32_t dynamic_lds_bytes, std::span<const std::byte> kernarg,
                                      const Memory &memory, const TimingOptions &options,
                                      const TimelineRequest &request);

} // namespace sluice::emulator::timing

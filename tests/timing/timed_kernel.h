//===- timed_kernel.h - short programs on the timing model ----------------------------------------------===//
#pragma once

#include <cmath>
#include <cstdio>

#include "emulator/isa/timing_constants.h"
#include "emulator/timing/timeline.h"
#include "emulator/timing/timing.h"
#include "isa/kernel_fixture.h"

namespace sluice::test {

using emulator::timing::Timeline;
using emulator::timing::TimelineRequest;
using emulator::timing::TimingOptions;
using emulator::timing::TimingResult;

struct TimedShape {
  uint32_t waves = 1; // of a workgroup
  uint32_t workgroups = 1;
  uint32_t lds_bytes = 0;
  std::string_view kernel = "small"; // eight waves on a SIMD; "slot": one
  uint32_t threads = 0;              // of a workgroup, if that is not a whole number of waves
  std::array<uint32_t, 3> grid{};    // if it is not a row of `workgroups`
};

inline TimingResult time_program(std::string_view source, const TimedShape &shape = {},
                                 std::array<uint64_t, 8> arguments = {}, const TimingOptions &options = {},
                                 const Memory &memory = Memory()) {
  const emulator::Program program(code_object_of(source));
  const TimingResult result = emulator::timing::time_launch(
      program, shape.kernel, shape.grid[0] ? shape.grid : std::array{shape.workgroups, 1u, 1u},
      {shape.threads ? shape.threads : 64 * shape.waves, 1, 1}, shape.lds_bytes,
      std::as_bytes(std::span(arguments)), memory, options);
  if (!result.reports.empty()) throw std::runtime_error(to_text(result.reports.front()));
  return result;
}

inline Timeline timeline_of(std::string_view source, const TimelineRequest &request,
                            const TimedShape &shape = {}, std::array<uint64_t, 8> arguments = {},
                            const TimingOptions &options = {}, const Memory &memory = Memory()) {
  const emulator::Program program(code_object_of(source));
  const emulator::timing::TimedLaunch launch = emulator::timing::time_launch_with_timeline(
      program, shape.kernel, {shape.workgroups, 1, 1}, {64 * shape.waves, 1, 1}, shape.lds_bytes,
      std::as_bytes(std::span(arguments)), memory, options, request);
  if (!launch.result.reports.empty()) throw std::runtime_error(to_text(launch.result.reports.front()));
  return launch.timeline;
}

inline std::string repeat(uint32_t times, std::string_view text) {
  std::string all;
  for (uint32_t i = 0; i < times; ++i)
    all += text;
  return all;
}

/// From the start of the only workgroup to its end.
inline uint64_t clk_of(std::string_view source, const TimedShape &shape = {}) {
  const TimingResult result = time_program(source, shape);
  return result.simulated.at(0).end - result.simulated.at(0).start;
}

/// The cost of one more repetition of `body`. `before` and `after` enclose all of them.
inline double clk_each(const std::string &before, std::string_view body, const std::string &after,
                       const TimedShape &shape = {}, uint32_t times = 64) {
  const uint64_t once = clk_of(before + repeat(times, body) + after, shape);
  const uint64_t twice = clk_of(before + repeat(2 * times, body) + after, shape);
  return double(twice - once) / times;
}

/// Bodies start at the beginning of a fetch.
inline const std::string aligned = ".p2align 5\n";
/// ... or four bytes later, so that every fourth instruction of eight bytes spans two fetches.
inline const std::string misaligned = aligned + "s_nop 0\n";
inline const std::string end_program = "s_endpgm\n";

/// Two waves of one SIMD with a separate program each, in a workgroup of eight; the other waves end.
inline std::string two_waves(const std::string &first, const std::string &second) {
  return "v_readfirstlane_b32 s8, v0\n s_lshr_b32 s8, s8, 6\n s_cmp_eq_u32 s8, 0\n s_cbranch_scc1 first\n"
         "s_cmp_eq_u32 s8, 4\n s_cbranch_scc1 second\n s_endpgm\n" +
         aligned + "first:\n" + first + "s_endpgm\n" + aligned + "s_nop 0\n second:\n" + second +
         "s_endpgm\n";
}

} // namespace sluice::test

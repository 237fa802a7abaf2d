//===- attention_timing.h - an attention launch on the timing model -------------------------------------===//
//
// The figures of `sluice bench --kernel` for one kernel, without a plan, and one prefill problem: how busy
// the matrix cores are, what their instructions would allow, and where the rest of the time goes.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include "package/attention_launch.h"
#include "tools/bench/launch_timing.h"

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace sluice::tools {

struct TimedProblem {
  uint32_t batch = 1;
  uint32_t length = 0; // of queries and keys
  uint32_t q_heads = 1;
  uint32_t kv_heads = 1; // divides q_heads
  bool causal = false;
};

/// How the matrix cores' time on the device is spent, in per cent of the launch: the parts add up to 100.
struct TimeParts {
  double useful = 0; // busy with scores that are used
  double masked = 0; // busy with scores that the causal mask hides
  // Idle in loops, by what the wave that used them next was doing.
  double issuing = 0; // its other instructions
  std::array<double, emulator::timing::stall_count> waiting{};
  double outside = 0; // idle before and after the waves' loops
  double start = 0;   // idle while workgroups start
  double tail = 0;    // places of the device that have no workgroup

  double waiting_for(emulator::timing::Stall stall) const { return waiting[size_t(stall)]; }
  double sum() const;
};

struct AttentionTiming {
  package::KernelEntry kernel;
  TimedProblem problem;
  emulator::timing::TimingResult result;
  double bound_percent = 0; // of the usual path through the main loop
  TimeParts parts;
  double seconds = 0; // the model took

  /// 4 batch heads length^2 d, half of it with a causal mask.
  double useful_flops() const;
  /// For all compute units at a clock.
  double useful_tflops(double mhz) const;
};

/// Throws ToolError for tensors that are too large.
void check_size(const package::KernelEntry &kernel, const TimedProblem &problem);

/// Throws ToolError if the machine reports something or memory for the tensors is missing.
AttentionTiming time_attention(const package::KernelEntry &kernel, std::span<const std::byte> elf,
                               const TimedProblem &problem, const SampleSize &size);

} // namespace sluice::tools

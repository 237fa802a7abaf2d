//===- attention_timing.h - an attention launch on the timing model -------------------------------------===//
//
// What `sluice bench --kernel` says of one kernel, without a plan, and one problem of prefill: how busy the
// matrix cores are, what their instructions would allow, and where the rest of the time goes.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include "package/attention_launch.h"
#include "tools/launch_timing.h"

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

/// Where the time of the device's matrix cores goes, in per cent of the launch: the parts add up to 100.
struct TimeParts {
  double useful = 0; // busy with scores that count
  double masked = 0; // busy with scores behind the causal mask
  // In loops, idle, by what the wave that used them next was doing.
  double issuing = 0; // its other instructions
  std::array<double, emulator::timing::stall_count> waiting{};
  double outside = 0; // idle before and behind the loops of waves
  double start = 0;   // idle while workgroups start
  double tail = 0;    // places of the device without a workgroup

  double waiting_for(emulator::timing::Stall stall) const { return waiting[size_t(stall)]; }
  double sum() const;
};

struct AttentionTiming {
  package::KernelEntry kernel;
  TimedProblem problem;
  emulator::timing::TimingResult result;
  double bound_percent = 0; // of the usual way around the main loop
  TimeParts parts;
  double seconds = 0; // the model took

  /// 4 batch heads length^2 d, half of it with a causal mask.
  double useful_flops() const;
  /// Of all compute units at a clock.
  double useful_tflops(double mhz) const;
};

/// Throws ToolError for tensors that are too large.
void check_size(const package::KernelEntry &kernel, const TimedProblem &problem);

/// Throws ToolError if the machine reports something or the tensors find no memory.
AttentionTiming time_attention(const package::KernelEntry &kernel, std::span<const std::byte> elf,
                               const TimedProblem &problem, const SampleSize &size);

} // namespace sluice::tools

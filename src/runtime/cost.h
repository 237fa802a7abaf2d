//===- cost.h - the estimated cost of a launch ----------------------------------------------------------===//
//
// The choice of a kernel and of the splits of its keys compares estimates. docs/concepts/cost.md explains the
// model and how far it is from the timing model.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include "calls/problem.h"
#include "package/chips.h"
#include "package/manifest.h"

#include <sluice/sluice.h>

#include <cstdint>

namespace sluice::runtime {

/// A chip as the estimate sees it. The numbers are those of the timing model, which gives their sources
/// (src/emulator/isa/timing_constants.h, docs/concepts/timing.md); a test checks that they agree.
namespace chip {
inline constexpr double clock_mhz = 2100;
inline constexpr double compute_units =
    package::find_chip("gfx942")->compute_units; // share the bandwidths below
inline constexpr double simds = 4;               // of a compute unit
inline constexpr double hbm_terabytes = 4.14, mall_terabytes = 17.2;
inline constexpr double hbm_latency_clk = 860, vector_cache_latency_clk = 116, workgroup_start_clk = 188;
/// FLOP of a SIMD's matrix core per clk: v_mfma_f32_16x16x16_f16 takes 16 clk, and so does 16x16x32_fp8.
inline constexpr double matrix_flop_16_bit = 512, matrix_flop_8_bit = 1024;
} // namespace chip

/// The time of the kernel that merges splits, besides the time of its bytes: from its launch to its end, and
/// more for each further round that a workgroup needs, which has this many elements of a row's splits in
/// flight. Read off the timing model.
inline constexpr double merge_clk = 3600, merge_round_clk = 3000, merge_round_elements = 8192;
/// The time instead of merge_clk if the kernel reads splits before it knows which of them count: those of one
/// round that have at most this many bytes. HBM needs two and a half of its latencies to read them, and at
/// least one is saved.
inline constexpr double merge_at_once_clk = 1800, merge_at_once_bytes = 4 << 20;

/// The calls for which a plan is optimized. Counts are 1 or more.
struct Workload {
  const calls::Problem &problem;
  int64_t batch;
  int64_t rows; // of each sequence
  int64_t keys; // of each sequence
};

struct Estimate {
  double attention_clk = 0;
  double merge_clk = 0;
  double workgroups = 0; // of attention, those with keys

  double clk() const { return attention_clk + merge_clk; }
  double microseconds() const { return clk() / chip::clock_mhz; }
};

/// Tiles of keys that a row tile of the kernel sees, on average; its splits divide these.
uint64_t tiles_seen(const package::KernelName &name, const Workload &work);

/// Estimates the work on one kernel, with `splits` (1 or more) of the keys, on this many compute units.
Estimate estimate(const package::KernelEntry &kernel, const Workload &work, uint64_t splits,
                  uint32_t compute_units);

} // namespace sluice::runtime

//===- timing.h - how long a launch would take ----------------------------------------------------------===//
//
// A cycle-approximate model of the chip. Compute units run their workgroups instruction by instruction on the
// machine's waves, in the order and at the times that the model determines; the rest of the device is
// extrapolated from them. docs/concepts/timing.md describes the model and compares it with published
// measurements.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "emulator/isa/instructions.h"
#include "emulator/machine/machine.h"
#include "emulator/timing/levels.h"

namespace sluice::emulator::timing {

using emulator::Pipe;
using emulator::pipe_count;
std::string_view pipe_name(Pipe pipe);

/// Why a wave did not issue.
enum class Stall : uint8_t {
  vmcnt,
  lgkmcnt,
  barrier,
  nop,        // s_nop and s_sleep
  fetch,      // an instruction in two fetches, a taken branch
  pipe_busy,  // vector port or matrix core
  dependency, // waits for a packed f32 result
  queue,      // LDS, address path or counter full
  slot,       // another wave took the slot this turn
};
inline constexpr size_t stall_count = size_t(Stall::slot) + 1;
std::string_view stall_name(Stall stall);

class Observer;

struct TimingOptions {
  /// Compute units of an XCD that are simulated together, sharing its L2. Each one more takes as long again,
  /// and finds more of the data that its neighbours also read.
  uint32_t compute_units = 1;
  /// Every how many-th compute unit of the XCD is simulated. With a stride from a workgroup to another one
  /// that reads the same data, the simulated ones share data as all would.
  uint32_t compute_unit_stride = 1;
  /// Per compute unit, taken evenly from the whole grid; 0: all it would get. The others are extrapolated.
  uint32_t workgroups = 0;
  /// XCDs to simulate, each with `compute_units` compute units and its own L2. 0: one; more if that is too
  /// few for a sample of eight parts; eight if all of an XCD is simulated without a sample and other XCDs get
  /// different work.
  uint32_t xcds = 0;
  uint64_t instruction_budget = 0; // per wave; 0: as in Options
  /// The device of the launch. Its clock is the engine's: see levels.h for what does not scale with it.
  Device device = {};
  /// Observes one of the simulated compute units. Costs time only if set.
  Observer *observer = nullptr;
};

struct MemoryTraffic {
  uint64_t lds_bytes = 0; // of the lanes that took part
  uint64_t l1_bytes = 0;  // on the path to and from the vector cache
  uint64_t l2_bytes = 0;  // beyond the vector cache
  uint64_t mall_bytes = 0;
  uint64_t hbm_bytes = 0;
  uint64_t stored_bytes = 0; // by stores, beyond L2

  uint64_t bytes(Level level) const;
  /// Adds what was moved since `before`.
  void add_since(const MemoryTraffic &now, const MemoryTraffic &before);
};

/// All times in clk since the launch.
struct WorkgroupTime {
  uint64_t number = 0; // in the order of dispatch
  uint32_t compute_unit = 0;
  uint64_t start = 0;
  uint64_t end = 0;
  uint64_t flops = 0;        // by MFMAs
  uint64_t matrix_clk = 0;   // time that its MFMAs kept matrix cores busy
  uint64_t instructions = 0; // by its waves
  MemoryTraffic traffic{};
  uint32_t part = 0; // of the sample: workgroups chosen together
};

struct InstructionTime {
  uint64_t issued = 0;
  std::array<uint64_t, stall_count> stall_clk{}; // summed over waves
  // Before an MFMA other than its wave's first: the matrix core's idle time, by what the wave did meanwhile.
  std::array<uint64_t, stall_count> idle_clk{};
  uint64_t idle_issuing_clk = 0; // the wave issued other instructions
};

/// The time that matrix cores were idle before a wave's first MFMA.
struct FirstIdleTime {
  uint64_t start = 0;        // while its workgroup was starting
  uint64_t before_first = 0; // the rest: the end of earlier workgroups, and its own beginning
};

/// The dispatcher's workgroups for an XCD: workgroup k goes to XCD k mod 8.
struct XcdTime {
  uint64_t workgroups = 0;
  double occupied_clk = 0; // summed time that its places were taken
  double end_clk = 0;      // end of its last workgroup
};

struct TimingResult {
  std::vector<Report> reports; // not empty: a wave could not go on, and the other members mean nothing
  std::string kernel;
  Device device;
  uint64_t workgroups = 0;                     // in the launch
  uint32_t workgroups_per_cu = 0;              // resident at once
  uint32_t waves_per_simd = 0;                 // resident at once, on the fullest SIMD
  const char *occupancy_limit = "";            // the resource that excludes one more
  uint32_t compute_units = 0;                  // simulated
  uint64_t simulated_clk = 0;                  // end of the last simulated workgroup
  uint64_t wave_instructions = 0;              // simulated
  std::array<uint64_t, pipe_count> busy_clk{}; // simulated; summed over SIMDs, or over ports of LDS
  std::array<uint64_t, stall_count> stall_clk{};
  FirstIdleTime idle; // simulated; `instructions` has the rest of the idle time
  MemoryTraffic traffic;
  std::vector<WorkgroupTime> simulated;
  std::vector<InstructionTime> instructions; // by index in the program

  uint64_t device_clk = 0; // of the whole launch, extrapolated
  double device_flops = 0; // the same
  double device_matrix_clk = 0;
  uint32_t device_places = 0;     // for workgroups, as many as the launch can use
  double device_occupied_clk = 0; // summed time that they were taken
  const char *extrapolated_along =
      "";                    // the coordinate that durations follow: "x", "y", "z", "number", "none"
  std::vector<XcdTime> xcds; // of the device, extrapolated; device_clk is the slowest's
  std::array<double, level_count> device_bytes{}; // moved by the whole launch, extrapolated
  /// The level whose bandwidth determines the length of the launch: no level moves more than its limit over a
  /// launch. Empty if no level does.
  std::string limited_by;
  bool is_complete = false; // every workgroup of the launch was simulated, so nothing is extrapolated
  /// One standard error of device_clk in per cent of it, from the differences between the sample's parts. 0
  /// for a complete simulation; nullopt if the sample has fewer than two parts.
  std::optional<double> error_percent;
  /// Limits of device_clk that readers must know: a small sample, code larger than the instruction cache.
  std::vector<std::string> warnings;

  /// Share of the time that matrix cores are busy: on the simulated compute units, and on the device.
  double simulated_mfma_percent() const;
  double device_mfma_percent() const;
  /// Share of the workgroup places that are empty, over the time of the launch: mostly at its end.
  double tail_percent() const;
  /// Share of the simulated time that a pipe was busy, over all instances; for LDS, over its ports.
  double busy_percent(Pipe pipe) const;
  /// While the simulated workgroups ran, in bytes per clk and compute unit.
  double bytes_per_clk(Level level) const;
  /// Moved by the whole launch, in TB/s at the device's clock, and in per cent of the level's maximum.
  double device_terabytes_per_second(Level level) const;
  double device_level_percent(Level level) const;
  /// How much longer the slowest XCD takes than the mean.
  double xcd_imbalance_percent() const;
  /// At the device's clock.
  double microseconds() const;
  double tflops() const;
};

/// A global counter ends the kernel's loops: the behaviour of a workgroup would depend on workgroups that are
/// not simulated.
class GlobalCounterError : public std::invalid_argument {
public:
  using std::invalid_argument::invalid_argument;
};

/// Times a kernel. Arguments as for `launch`, without its checks. Only simulated workgroups run, so memory
/// does not hold a complete result afterwards. Throws GlobalCounterError unless every workgroup is simulated,
/// and std::invalid_argument for options that select compute units that do not exist.
TimingResult time_launch(const Program &program, std::string_view kernel, std::array<uint32_t, 3> grid,
                         std::array<uint32_t, 3> block, uint32_t dynamic_lds_bytes,
                         std::span<const std::byte> kernarg, const Memory &memory,
                         const TimingOptions &options = {});

} // namespace sluice::emulator::timing

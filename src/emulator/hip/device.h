//===- device.h - the emulated GPUs of the process ------------------------------------------------------===//
//
// Their memory, how launches run, and what launches have reported. Host memory from hipHostMalloc comes from
// the same allocator as device memory, so that a kernel's access beyond it is detected; a table tells the two
// apart.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include <array>
#include <atomic>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "emulator/hip/launch_filter.h"
#include "emulator/hip/report_file.h"
#include "emulator/hip/types.h"
#include "emulator/machine/machine.h"
#include "package/chips.h"

namespace sluice::emulator::hip {

// MI300X, as reported by its HIP runtime.
inline constexpr const char *device_name = "AMD Instinct MI300X (emulated)";
inline constexpr const char *device_target = "gfx942:sramecc+:xnack-";
inline constexpr const package::Chip &described_chip = *package::find_chip("gfx942");
inline constexpr int compute_units = int(described_chip.compute_units);
inline constexpr int least_stream_priority = 1;
inline constexpr int greatest_stream_priority = -1;
inline constexpr int wave_lanes = int(described_chip.wave_size);
inline constexpr int lds_bytes = int(described_chip.lds_bytes);
inline constexpr int max_workgroup_threads = 1024;
inline constexpr size_t pitch_alignment = 256; // bytes, of the rows that HIP allocates
inline constexpr int hip_version = 70000000;   // HIP 7.0.0

enum class Configured : uint8_t { ok, unknown_key, bad_value };

class Device {
public:
  /// The process's device. Never destroyed: streams may still use it when the process ends.
  static Device &get();

  Memory &memory() { return device_memory; }

  Options options();
  LaunchFilter &filter() { return launch_filter; }
  PoolAnnotations &pools() { return pool_annotations; }
  bool notes_host_calls() const { return host_calls.load(std::memory_order_relaxed); }
  Configured configure(std::string_view key, std::string_view value);

  /// Launches enqueued from now on count their accesses to a range. False if an overlapping range is already
  /// watched.
  bool watch(MemoryWatch::Range range);
  /// False if no watched range starts there.
  bool unwatch(uint64_t start);

  /// The clk at which the next launch's clocks start: those of one launch come after those of earlier ones.
  uint64_t clock() const { return clk; }
  void add_result(const LaunchResult &result);
  /// For reports of no launch. False if it is a warning, or a rule suppresses it.
  bool add_report(Report report);
  /// The same for a finding outside of kernels; `name` is that of the call or the device.
  void add_host_finding(const Checks &warnings, ReportKind kind, std::string name, std::string message,
                        uint64_t address, uint64_t count = 1);
  Counters counters();
  /// Passes the reports as JSON to `accept`, and forgets them if it returns true.
  template <typename Accept> void take_reports(Accept &&accept) {
    const std::lock_guard lock(mutex);
    if (accept(to_json(reports))) reports.clear();
  }
  /// The number of findings at places beyond those kept, from launches and from add_report.
  uint64_t reports_dropped();

  /// Memory that the host can also access: allocated here, registered by the caller, or managed.
  struct HostBlock {
    uint64_t bytes;
    unsigned flags;
    enum Kind : uint8_t { allocated, registered, managed } kind;
  };
  void add_host_block(const void *start, HostBlock block);
  /// False if no block of this kind starts there.
  bool remove_host_block(const void *start, HostBlock::Kind kind);
  /// Finds the block with the address, and its `start`.
  bool find_host_block(const void *address, uint64_t &start, HostBlock &block);
  /// True if all of the range is in host memory that the device can access.
  bool pinned(const void *address, uint64_t bytes);

  /// The number of devices: 1 to 8.
  int count() const { return devices; }
  /// One bit per device whose memory this one can access: itself, and the peers it has opened.
  uint8_t reachable_from(int device) const { return peers[size_t(device)]; }
  /// False if nothing changes.
  bool set_peer_access(int device, int peer, bool open);

private:
  Device() = default;
  Configured set_count(int wanted);
  /// False if it only increased the count of an earlier one, or was left out.
  bool keep(const Report &report);

  std::atomic<int> devices = 1;
  std::array<std::atomic<uint8_t>, MemoryBlock::most_devices> peers{1, 2, 4, 8, 16, 32, 64, 128};

  Memory device_memory;
  PoolAnnotations pool_annotations;
  LaunchFilter launch_filter;
  std::atomic<bool> host_calls = false;
  std::mutex mutex;
  Options current_options;
  Counters total;
  std::atomic<uint64_t> clk = 0;              // the latest of a launch that has ended
  std::atomic<uint64_t> workgroups_ended = 0; // includes launches still running
  std::vector<Report> reports; // the same mistake in several launches appears once, with a count
  uint64_t dropped = 0;
  ReportFile report_file;
  std::map<uint64_t, HostBlock> host_blocks;
};

/// The calling thread's current device.
int current_device();
void set_current_device(int device);
hipUUID uuid_of(int device);
/// Throws Failure(hipErrorInvalidDevice) if the device does not exist.
void require_device(int device);

} // namespace sluice::emulator::hip

//===- device.h - the emulated GPUs of the process ------------------------------------------------------===//
//
// Their memory, how launches run, and what they have reported. Host memory made by hipHostMalloc comes from
// the same allocator as device memory, so that a kernel's access beyond it is seen; a table tells the two
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

#include "emulator/hip/report_file.h"
#include "emulator/hip/types.h"
#include "emulator/machine/machine.h"

namespace sluice::emulator::hip {

// MI300X, as its HIP runtime describes it.
inline constexpr const char *device_name = "AMD Instinct MI300X (emulated)";
inline constexpr const char *device_target = "gfx942:sramecc+:xnack-";
inline constexpr int compute_units = 304;
inline constexpr int least_stream_priority = 1;
inline constexpr int greatest_stream_priority = -1;
inline constexpr int wave_lanes = 64;
inline constexpr int lds_bytes = 64 << 10;
inline constexpr int max_workgroup_threads = 1024;
inline constexpr int hip_version = 70000000; // HIP 7.0.0

enum class Configured : uint8_t { ok, unknown_key, bad_value };

class Device {
public:
  /// The process's. Never destroyed: streams may still use it when the process ends.
  static Device &get();

  Memory &memory() { return device_memory; }

  Options options();
  Configured configure(std::string_view key, std::string_view value);

  /// Launches enqueued from now on count their accesses of a range. False if one is watched that overlaps it.
  bool watch(MemoryWatch::Range range);
  /// False if no watched range starts there.
  bool unwatch(uint64_t start);

  void add_result(const LaunchResult &result);
  /// Of no launch.
  void add_report(Report report);
  Counters counters();
  /// The reports as JSON; forgets them if `accept` of the text returns true.
  template <typename Accept> void take_reports(Accept &&accept) {
    const std::lock_guard lock(mutex);
    if (accept(to_json(reports))) reports.clear();
  }
  /// Times that something was found at places beyond those that are kept, of launches and here.
  uint64_t reports_dropped();

  /// Memory that the host reaches too: allocated here, the caller's and registered, or managed.
  struct HostBlock {
    uint64_t bytes;
    unsigned flags;
    enum Kind : uint8_t { allocated, registered, managed } kind;
  };
  void add_host_block(const void *start, HostBlock block);
  /// False if there is none of this kind that starts there.
  bool remove_host_block(const void *start, HostBlock::Kind kind);
  /// The block that holds the address; its start in `start`.
  bool find_host_block(const void *address, uint64_t &start, HostBlock &block);
  /// True if all of the range lies in host memory the device reaches.
  bool pinned(const void *address, uint64_t bytes);

  /// How many devices there are: 1 to 8.
  int count() const { return devices; }
  /// One bit for each device whose memory this one reaches: itself, and the peers it has opened.
  uint8_t reachable_from(int device) const { return peers[size_t(device)]; }
  /// False if it is already so.
  bool set_peer_access(int device, int peer, bool open);

private:
  Device() = default;
  Configured set_count(int wanted);
  /// False if it only added to the count of one that is kept, or is left out.
  bool keep(const Report &report);

  std::atomic<int> devices = 1;
  std::array<std::atomic<uint8_t>, MemoryBlock::most_devices> peers{1, 2, 4, 8, 16, 32, 64, 128};

  Memory device_memory;
  std::mutex mutex;
  Options current_options;
  Counters total;
  std::atomic<uint64_t> workgroups_ended = 0; // those of launches still running included
  std::vector<Report> reports;                // the same mistake of several launches once, with a count
  uint64_t dropped = 0;
  ReportFile report_file;
  std::map<uint64_t, HostBlock> host_blocks;
};

/// The calling thread's current device.
int current_device();
void set_current_device(int device);
/// Throws Failure(hipErrorInvalidDevice) unless there is that device.
void require_device(int device);

} // namespace sluice::emulator::hip

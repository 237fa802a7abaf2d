//===- unused_reads.h - reads of LDS that a later store meets -------------------------------------------===//
//
// A store that meets another wave's unordered read is a race if the value read matters. At the first such
// meeting the reading wave may have used the value already, so it cannot be judged. From then on every
// execution of that read is followed: in which lanes its value is used, and which lanes a store meets. If
// the two never have a lane in common, the value was thrown away where it was not certain, and the read's
// meetings, the first ones included, are not reported. A read that was never met again stays a race.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <tuple>
#include <vector>

#include "emulator/check/report_sink.h"
#include "emulator/isa/wave.h"

namespace sluice::emulator {

/// Of a launch. All functions are thread-safe, but `meetings` is for the end of the launch.
class UnusedReads {
public:
  explicit UnusedReads(size_t ops) : follow(ops) {}

  /// Whether executions of the instruction are followed.
  bool follows(uint32_t read_op) const { return follow[read_op].load(std::memory_order_relaxed) != 0; }
  /// A store has met a read. `finding` is called the first time only.
  void met(uint32_t store_op, uint32_t read_op, const std::function<Finding()> &finding);
  /// A store has met lanes of a read that is followed, of which some were used, or none.
  void judge(uint32_t read_op, bool used);

  struct Meeting {
    Finding finding; // the first one's
    uint64_t count = 0;
  };
  /// Those of reads whose value mattered, or was never judged.
  std::vector<Meeting> meetings() const;

private:
  enum : uint8_t { is_followed = 1, was_unused = 2, was_used = 4 };

  std::vector<std::atomic<uint8_t>> follow; // by instruction
  mutable std::mutex mutex;
  std::map<std::pair<uint32_t, uint32_t>, Meeting> all; // by instruction: the store and the read
};

/// Of a workgroup, whose waves run on one host thread.
class FollowedReads {
public:
  explicit FollowedReads(UnusedReads *launch) : launch(launch) {}

  bool follows(uint32_t op) const { return launch != nullptr && launch->follows(op); }
  /// A wave has read; `part` tells two reads of one instruction apart.
  void enter(uint32_t wave, uint32_t op, uint32_t part, const uint32_t *addresses, uint64_t lanes,
             uint32_t bytes);
  /// The value of a wave's last read by this instruction is used.
  void use(uint32_t wave, uint32_t op, uint64_t lanes);
  /// Another wave has stored in what these lanes read.
  void meet_lanes(uint32_t wave, uint32_t op, uint32_t part, uint64_t lanes) {
    reads[{wave, op, part}].met |= lanes;
  }
  /// Another wave stores to what this instruction may have read.
  void meet(uint32_t wave, uint32_t op, uint32_t address, uint32_t bytes);
  /// The workgroup has ended.
  void finish();

private:
  struct Read {
    std::array<uint32_t, wave_lanes> addresses;
    uint64_t lanes = 0;
    uint32_t bytes = 0;
    uint64_t used = 0;
    uint64_t met = 0;
  };
  void judge(uint32_t op, const Read &read);
  /// Visits a wave's last reads by an instruction.
  template <class Visit> void visit(uint32_t wave, uint32_t op, Visit &&visit);

  UnusedReads *launch;                                            // nullable
  std::map<std::tuple<uint32_t, uint32_t, uint32_t>, Read> reads; // by wave, instruction and part
};

} // namespace sluice::emulator

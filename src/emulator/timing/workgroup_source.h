//===- workgroup_source.h - the workgroups that compute units simulate ----------------------------------===//
//
// Either all workgroups of whole XCDs, in the dispatcher's order, or a sample of the whole grid. Workgroups
// go to the XCDs in turn, x fastest, and within an XCD to its compute units in turn; when all are full, to
// the first one with a free place.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>

#include "emulator/timing/timing.h"

namespace sluice::emulator::timing {

/// A workgroup for a place. Workgroups that do not count only keep a compute unit as full as it would be.
struct Assignment {
  uint64_t number = 0;
  uint32_t part = 0; // part of the sample
  bool counts = true;
};

class WorkgroupSource {
public:
  virtual ~WorkgroupSource() = default;
  /// When a compute unit gets its first workgroups.
  virtual uint64_t begin(uint32_t) const { return 0; }
  /// The next workgroup for a place. Compute units are numbered XCD after XCD.
  virtual std::optional<Assignment> next(uint32_t compute_unit) = 0;
  /// A counting workgroup has ended.
  void ended() { --left; }
  bool all_ended() const { return left == 0; }
  /// Counting workgroups that have not ended.
  uint64_t count() const { return left; }

protected:
  uint64_t left = 0; // counting workgroups
};

/// What to simulate.
struct Selection {
  uint32_t xcds = 1;
  uint32_t compute_units = 1; // per XCD
  uint32_t rounds = 0;        // in a sample: workgroups per compute unit
  bool whole_xcds = false;    // all workgroups of these XCDs
  /// Compute units begin empty, as in the launch, and get all their workgroups; otherwise the sample is from
  /// the middle of a launch.
  bool from_start = false;
};

/// For a launch with `places` resident workgroups on each compute unit. Throws std::invalid_argument for
/// options that select compute units that do not exist.
Selection select_workgroups(std::array<uint32_t, 3> grid, const TimingOptions &options, uint32_t places);
std::unique_ptr<WorkgroupSource> make_source(std::array<uint32_t, 3> grid, const TimingOptions &options,
                                             const Selection &selection, uint32_t places);

/// The places that a launch can use on a compute unit that has `resident` of them.
uint32_t used_places(uint64_t workgroups, uint32_t resident, const Device &device);

} // namespace sluice::emulator::timing

//===- workgroup_source.h - which workgroups compute units simulate -------------------------------------===//
//
// Either all workgroups of whole XCDs, as the dispatcher deals them, or some of the whole grid. Workgroups go
// to the XCDs in turn, x fastest, and in an XCD to its compute units in turn; when all are full the next one
// goes to the first that has a place.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>

#include "emulator/timing/timing.h"

namespace sluice::emulator::timing {

/// A workgroup for a place. Those that do not count only keep a compute unit as full as it would be.
struct Assignment {
  uint64_t number = 0;
  uint32_t part = 0; // of the sample
  bool counts = true;
};

class WorkgroupSource {
public:
  virtual ~WorkgroupSource() = default;
  /// When a compute unit gets its first ones.
  virtual uint64_t begin(uint32_t) const { return 0; }
  /// What comes next into a place of a compute unit: they are numbered XCD after XCD.
  virtual std::optional<Assignment> next(uint32_t compute_unit) = 0;
  /// A workgroup that counts has ended.
  void ended() { --left; }
  bool all_ended() const { return left == 0; }
  /// Workgroups that count and have not ended.
  uint64_t count() const { return left; }

protected:
  uint64_t left = 0; // that count
};

/// What is simulated.
struct Selection {
  uint32_t xcds = 1;
  uint32_t compute_units = 1; // of each
  uint32_t rounds = 0;        // of a sample: workgroups of each compute unit
  bool whole_xcds = false;    // all workgroups that these XCDs get
  /// Compute units begin empty, as the launch does, and get as many workgroups as they would; otherwise the
  /// sample is of the middle of a launch.
  bool from_start = false;
};

/// For a launch that has `places` workgroups resident on each compute unit. Throws std::invalid_argument for
/// options that name no compute units there are.
Selection select_workgroups(std::array<uint32_t, 3> grid, const TimingOptions &options, uint32_t places);
std::unique_ptr<WorkgroupSource> make_source(std::array<uint32_t, 3> grid, const TimingOptions &options,
                                             const Selection &selection, uint32_t places);

/// Places that a launch finds use for on a compute unit that has `resident` of them.
uint32_t used_places(uint64_t workgroups, uint32_t resident, const Device &device);

} // namespace sluice::emulator::timing

//===- workgroup_source.h - which workgroups compute units simulate -------------------------------------===//
//
// Either those that the dispatcher would give the compute units, or a sample of the whole grid. Workgroups go
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
  bool counts = true;
};

class WorkgroupSource {
public:
  virtual ~WorkgroupSource() = default;
  /// When a compute unit gets its first ones.
  virtual uint64_t begin(uint32_t) const { return 0; }
  /// What comes next into a place of a compute unit.
  virtual std::optional<Assignment> next(uint32_t compute_unit) = 0;
  /// A workgroup that counts has ended.
  void ended() { --left; }
  bool all_ended() const { return left == 0; }
  /// Whether they are all that the first XCD gets, as it gets them.
  bool whole_xcd() const { return whole; }

protected:
  uint64_t left = 0; // that count
  bool whole = false;
};

/// For compute units with so many places each. Throws std::invalid_argument for options that name no compute
/// units there are.
std::unique_ptr<WorkgroupSource> make_source(std::array<uint32_t, 3> grid, const TimingOptions &options,
                                             uint32_t places);

/// Places that a launch finds use for on a compute unit that has `resident` of them.
uint32_t used_places(uint64_t workgroups, uint32_t resident, const Device &device);

} // namespace sluice::emulator::timing

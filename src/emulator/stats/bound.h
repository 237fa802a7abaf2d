//===- bound.h - how busy a loop can keep the matrix cores ----------------------------------------------===//
//
// Each instruction occupies a slot of its SIMD or of its compute unit for a while. The fullest slot limits
// how fast waves can go round a loop, even if they fill each other's gaps perfectly. Each wave also has to
// get through its own instructions and waits: with few waves on a SIMD that takes longer than any slot.
// Caches always hit and no wave waits for another, so this is a bound, not a prediction.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "emulator/stats/control_flow.h"
#include "package/occupancy.h"

namespace sluice::emulator {

enum class BoundSlot : uint8_t {
  matrix, // the matrix core
  vector, // the vector port
  scalar, // scalar instructions and loads
  lds,    // the ports of LDS
  memory, // the address path of vector memory
  branch,
  wave, // time of a wave with its waits, divided by the waves that fill its gaps
};
inline constexpr size_t bound_slot_count = size_t(BoundSlot::wave) + 1;
std::string_view slot_name(BoundSlot slot);

struct Bound {
  double percent = 0;                         // share of the time that a compute unit's matrix cores are busy
  BoundSlot binds = BoundSlot::matrix;        // the slot that takes longest
  std::array<double, bound_slot_count> clk{}; // per SIMD, for each time that one of its waves goes round
  double alone_clk = 0;                       // once around for a single wave without others

  double operator[](BoundSlot slot) const { return clk[size_t(slot)]; }
};

/// For the instructions on a way around a loop, in order, and waves of workgroups of that size.
Bound bound_of(std::span<const CodeInstruction> code, const ControlFlow::Indices &way,
               const package::Occupancy &occupancy, uint32_t workgroup_waves);

} // namespace sluice::emulator

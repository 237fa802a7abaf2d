//===- lane_exchange.cpp - values from lane to lane -----------------------------------------------------===//
//
// DS instructions that use the crossbar of LDS but not its memory. They are counted and waited for like
// reads.
//
//===----------------------------------------------------------------------------------------------------===//
#include <bit>

#include "emulator/check/wave_checks.h"
#include "emulator/exec/memory/access.h"
#include "emulator/exec/memory/memory_routines.h"

namespace sluice::emulator {

namespace {

using LaneSources = WaveChecks::LaneSources;

/// Each lane takes the value of its source in register `data`, or 0 if it has none.
template <bool strict>
Step finish_exchange(Wave &w, const Op &op, uint16_t data, const LaneSources &from,
                     uint16_t address = no_operand, bool sender = false) {
  const uint32_t *row = w.row(data);
  uint32_t result[wave_lanes];
  for (uint32_t lane = 0; lane < wave_lanes; ++lane)
    result[lane] = from[lane] >= 0 ? row[from[lane]] : 0;
  if constexpr (strict) {
    w.checks->enter_exchange(w, op, data, from, address, sender);
    AsyncOperation &operation = w.checks->new_operation(w, op, AsyncKind::lds_read);
    operation.first = op.dst;
    operation.rows = 1;
    std::memcpy(operation.data.data(), result, wave_lanes * 4);
    w.checks->issue(w, operation);
  } else {
    copy_lanes(w.row(op.dst), result, 1, w.exec());
  }
  return Step::next;
}

/// Each lane takes the value of the lane that its address names; an inactive one gives 0.
template <bool strict> Step run_bpermute(Wave &w, const Op &op) {
  const uint32_t *address = w.row(op.src[0]);
  const uint64_t exec = w.exec();
  LaneSources from;
  for (uint32_t lane = 0; lane < wave_lanes; ++lane) {
    const uint32_t source = (address[lane] + uint32_t(op.memory.offset)) / 4 % wave_lanes;
    from[lane] = (exec >> source & 1) != 0 ? int8_t(source) : int8_t(-1);
  }
  return finish_exchange<strict>(w, op, op.src[1], from, op.src[0]);
}

/// Each lane sends its value to the lane that its address names; the highest of several wins.
template <bool strict> Step run_permute(Wave &w, const Op &op) {
  const uint32_t *address = w.row(op.src[0]);
  LaneSources from;
  from.fill(-1);
  for (uint32_t lane = 0; lane < wave_lanes; ++lane)
    if ((w.exec() >> lane & 1) != 0)
      from[(address[lane] + uint32_t(op.memory.offset)) / 4 % wave_lanes] = int8_t(lane);
  return finish_exchange<strict>(w, op, op.src[1], from, op.src[0], true);
}

uint32_t reverse_5_bits(uint32_t value) {
  uint32_t reversed = 0;
  for (uint32_t i = 0; i < 5; ++i)
    reversed |= (value >> i & 1) << (4 - i);
  return reversed;
}

/// The lane of its group of 32 whose value a lane takes under a ds_swizzle pattern.
uint32_t swizzled_lane(uint32_t lane, uint32_t pattern) {
  const uint32_t mask = pattern & 31;
  if (pattern >= 0xe000) // the order of an FFT's inputs
    return reverse_5_bits(lane) >> std::popcount(mask) | (lane & mask);
  if (pattern >= 0xc000) { // rotation, within the bits outside a mask
    const uint32_t distance = pattern >> 5 & 31;
    const uint32_t from = (pattern >> 10 & 1) != 0 ? lane - distance : lane + distance;
    return ((lane & mask) | (from & ~mask)) & 31;
  }
  if (pattern >= 0x8000) return (lane & ~3u) | (pattern >> 2 * (lane % 4) & 3); // permutation of four lanes
  return ((lane & mask) | (pattern >> 5 & 31)) ^ (pattern >> 10 & 31);          // masks: and, or, xor
}

/// The offset is the pattern; an inactive lane gives 0.
template <bool strict> Step run_swizzle(Wave &w, const Op &op) {
  const uint64_t exec = w.exec();
  LaneSources from;
  for (uint32_t lane = 0; lane < wave_lanes; ++lane) {
    const uint32_t source = (lane & 32) | swizzled_lane(lane % 32, uint32_t(op.memory.offset));
    from[lane] = (exec >> source & 1) != 0 ? int8_t(source) : int8_t(-1);
  }
  return finish_exchange<strict>(w, op, op.src[0], from);
}

constexpr NamedRoutines table[] = {
    {"ds_bpermute_b32", {run_bpermute<false>, run_bpermute<true>}},
    {"ds_permute_b32", {run_permute<false>, run_permute<true>}},
    {"ds_swizzle_b32", {run_swizzle<false>, run_swizzle<true>}},
};

} // namespace

MemoryRoutines lane_exchange_routines(const InstructionFacts &facts) {
  return find_routines(table, facts.mnemonic);
}

} // namespace sluice::emulator

//===- flat.cpp - flat, global and scratch instructions -------------------------------------------------===//
#include "emulator/exec/memory/vector_access.h"

namespace sluice::emulator {

namespace {

//===--- Addresses --------------------------------------------------------------------------------------===//

WaveChecks::LdsAccess lds_access(Access access) {
  return access == Access::load    ? WaveChecks::LdsAccess::read
         : access == Access::store ? WaveChecks::LdsAccess::write
                                   : WaveChecks::LdsAccess::atomic;
}

/// Scratch is private to a lane: `offset` is relative to the lane's own memory.
template <bool strict>
void place_in_scratch(Wave &w, const Op &op, Access access, uint32_t lane, uint64_t offset, Places &places) {
  const uint32_t bytes = op.memory.bytes;
  const bool inside = offset + bytes <= w.scratch_bytes;
  places.pointer[lane] = inside ? w.scratch + uint64_t(lane) * w.scratch_bytes + offset : nullptr;
  if (inside) places.allowed |= uint64_t(1) << lane;
  if constexpr (strict) {
    if (inside)
      w.checks->enter_scratch(w, op, access != Access::load, lane, offset, bytes);
    else
      w.checks->report_scratch_bounds(w, op, lane, offset, bytes);
  }
}

/// Sorts flat addresses: LDS and scratch have apertures of their own, everything else is memory.
template <bool strict>
void sort_addresses(Wave &w, const Op &op, const uint64_t *addresses, Access access, bool windows,
                    Places &places) {
  const uint32_t bytes = op.memory.bytes;
  uint64_t global = places.lanes;
  if (windows) {
    for (uint64_t lanes = places.lanes; lanes != 0; lanes &= lanes - 1) {
      const uint32_t lane = low_lane(lanes);
      const uint64_t address = addresses[lane];
      const bool shared = address - shared_aperture < aperture_bytes;
      if (!shared && address - private_aperture >= aperture_bytes) continue;
      global &= ~(uint64_t(1) << lane);
      if (!shared) {
        place_in_scratch<strict>(w, op, access, lane, address - private_aperture, places);
        continue;
      }
      const uint64_t offset = address - shared_aperture;
      if (offset + bytes <= w.workgroup->lds_bytes) {
        places.pointer[lane] = w.workgroup->lds + offset;
        places.lds_address[lane] = uint32_t(offset);
        places.in_lds |= uint64_t(1) << lane;
      } else if constexpr (strict) {
        w.checks->report_lds_bounds(w, op, lane, offset, bytes);
      }
    }
    places.allowed |= places.in_lds;
    if constexpr (strict)
      if (places.in_lds != 0)
        w.checks->enter_lds(w, op, lds_access(access), {places.lds_address, places.in_lds, bytes},
                            {w.row(op.src[1]), stored_shift(op.memory)});
  }
  for (uint32_t lane = 0; lane < wave_lanes; ++lane)
    if ((global >> lane & 1) != 0) places.pointer[lane] = reinterpret_cast<uint8_t *>(addresses[lane]);
  if constexpr (strict)
    global = w.checks->check_global(
        w, op, addresses, global, bytes, access != Access::load,
        access == Access::store ? StoredRows{w.row(op.src[1]), stored_shift(op.memory)} : StoredRows{});
  places.allowed |= global;
}

template <bool strict> void place(Wave &w, const Op &op, Access access, Places &places) {
  const MemoryControl &m = op.memory;
  places.lanes = w.exec();
  const uint64_t offset = uint64_t(int64_t(m.offset));
  if (m.mode == AddressMode::scratch) {
    const uint32_t base = op.src[2] == no_operand ? 0 : w.scalar(op.src[2]);
    const uint32_t *row = op.src[0] == no_operand ? nullptr : w.row(op.src[0]);
    for (uint64_t lanes = places.lanes; lanes != 0; lanes &= lanes - 1) {
      const uint32_t lane = low_lane(lanes);
      const uint64_t at = uint32_t(base + (row ? row[lane] : 0) + uint32_t(offset));
      place_in_scratch<strict>(w, op, access, lane, at, places);
    }
    return;
  }
  alignas(64) uint64_t addresses[wave_lanes];
  const uint32_t *row = w.row(op.src[0]);
  if (op.src[2] != no_operand) {
    const uint64_t base = w.scalar_pair(op.src[2]) + offset;
    for (uint32_t lane = 0; lane < wave_lanes; ++lane)
      addresses[lane] = base + row[lane];
  } else {
    for (uint32_t lane = 0; lane < wave_lanes; ++lane)
      addresses[lane] = (row[lane] | uint64_t(row[wave_lanes + lane]) << 32) + offset;
  }
  sort_addresses<strict>(w, op, addresses, access, m.mode == AddressMode::flat, places);
}

//===--- Instructions -----------------------------------------------------------------------------------===//

template <bool strict> Step run_load(Wave &w, const Op &op) {
  Places places;
  place<strict>(w, op, Access::load, places);
  AsyncOperation *operation = nullptr;
  uint32_t *rows = begin_load<strict>(w, op, places, operation);
  read_places(rows, places, op.memory.bytes, op.memory.sign_extend, op.memory.sc1);
  if (op.memory.half != HalfSelect::none) place_half(rows, places.lanes, op.memory.half);
  return end_load<strict>(w, operation);
}

template <bool strict> Step run_store(Wave &w, const Op &op) {
  Places places;
  place<strict>(w, op, Access::store, places);
  write_places(w.row(op.src[1]), places, op.memory.bytes, stored_shift(op.memory), op.memory.sc1);
  return count_store<strict>(w, op, places);
}

template <bool strict> Step run_atomic(Wave &w, const Op &op) {
  Places places;
  place<strict>(w, op, Access::atomic, places);
  return run_atomic_at<strict>(w, op, places);
}

template <bool strict> Step run_copy(Wave &w, const Op &op) {
  Places places;
  place<strict>(w, op, Access::load, places);
  uint32_t *values = w.temporary(0);
  read_places(values, places, op.memory.bytes, op.memory.sign_extend, op.memory.sc1);
  return copy_to_lds<strict>(w, op, places.lanes, values);
}

constexpr VectorRoutines routines = {.load = {run_load<false>, run_load<true>},
                                     .store = {run_store<false>, run_store<true>},
                                     .copy = {run_copy<false>, run_copy<true>},
                                     .atomic = {run_atomic<false>, run_atomic<true>}};

} // namespace

MemoryRoutines flat_routines(const InstructionFacts &facts) {
  return vector_routines(facts, routines, false);
}

} // namespace sluice::emulator

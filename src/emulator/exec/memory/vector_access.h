//===- vector_access.h - vector memory accesses at given addresses --------------------------------------===//
//
// An instruction first finds each lane's data: a host pointer to memory, LDS or scratch, or nothing
// (flat.cpp, buffer_address.h). Then it loads, stores, combines or copies to LDS, in the same way for every
// kind of address. read_places, write_places and combine are the only functions that touch memory for vector
// instructions. Workgroups run on host threads, so an access through which one workgroup may learn what
// another did is atomic here as well: with sc1, each of its dwords is.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include <bit>

#include "emulator/check/wave_checks.h"
#include "emulator/exec/memory/access.h"
#include "emulator/exec/memory/memory_routines.h"

namespace sluice::emulator {

enum class Access : uint8_t { load, store, atomic };

struct Places {
  uint8_t *pointer[wave_lanes];
  uint64_t lanes = 0;               // lanes that take part
  uint64_t allowed = 0;             // those that may access memory; the others read 0 and store nothing
  uint64_t cut = 0;                 // lanes not allowed whose first cut_bytes may be accessed, whole dwords
  uint8_t cut_bytes[wave_lanes];    // for the lanes of `cut`
  uint64_t in_lds = 0;              // allowed lanes with a flat address in LDS
  uint32_t lds_address[wave_lanes]; // for the lanes of `in_lds`
};

//===--- Bytes ------------------------------------------------------------------------------------------===//

/// What read_places and write_places do for sc1.
void read_shared_places(uint32_t *rows, const Places &places, uint32_t bytes, bool sign_extend);
void write_shared_places(const uint32_t *rows, const Places &places, uint32_t bytes, uint32_t shift);

inline void read_places(uint32_t *rows, const Places &places, uint32_t bytes, bool sign_extend, bool sc1) {
  if (sc1) return read_shared_places(rows, places, bytes, sign_extend);
  gather(rows, places.lanes, places.allowed, bytes, sign_extend,
         [&](uint32_t lane) { return places.pointer[lane]; });
  for (uint64_t lanes = places.cut; lanes != 0; lanes &= lanes - 1) {
    const uint32_t lane = low_lane(lanes);
    for (uint32_t r = 0; r < places.cut_bytes[lane] / 4u; ++r)
      std::memcpy(&rows[r * wave_lanes + lane], places.pointer[lane] + 4 * r, 4);
  }
}

/// `shift`: low bits of the first row to leave out.
inline void write_places(const uint32_t *rows, const Places &places, uint32_t bytes, uint32_t shift,
                         bool sc1) {
  if (sc1) return write_shared_places(rows, places, bytes, shift);
  scatter(rows, places.allowed, bytes, shift, [&](uint32_t lane) { return places.pointer[lane]; });
  for (uint64_t lanes = places.cut; lanes != 0; lanes &= lanes - 1) {
    const uint32_t lane = low_lane(lanes);
    for (uint32_t r = 0; r < places.cut_bytes[lane] / 4u; ++r)
      std::memcpy(places.pointer[lane] + 4 * r, &rows[r * wave_lanes + lane], 4);
  }
}

/// Combines a value with one in memory, atomically for all threads; returns the old value.
uint64_t combine(uint8_t *pointer, uint32_t bytes, AtomicBody body, uint64_t operand, uint64_t second,
                 uint32_t denormals);

//===--- Loads and stores -------------------------------------------------------------------------------===//

inline AsyncKind load_kind(const Op &op) {
  return op.memory.mode == AddressMode::flat ? AsyncKind::flat : AsyncKind::vector_load;
}

/// Rows for the result: the registers themselves, or the rows of an operation in flight.
template <bool strict>
uint32_t *begin_load(Wave &w, const Op &op, const Places &places, AsyncOperation *&operation,
                     Access access = Access::load) {
  if constexpr (!strict) return w.row(op.dst);
  operation = &w.checks->new_operation(w, op, load_kind(op));
  operation->first = op.dst;
  operation->rows = op.memory.dwords;
  if (places.in_lds != 0)
    operation->add_lds_part({places.lds_address, places.in_lds, op.memory.bytes}, access != Access::load);
  return operation->data.data();
}

template <bool strict> Step end_load(Wave &w, AsyncOperation *operation) {
  if constexpr (strict) w.checks->issue(w, *operation);
  return Step::next;
}

template <bool strict> Step count_store(Wave &w, const Op &op, const Places &places) {
  if constexpr (strict) {
    const bool flat = op.memory.mode == AddressMode::flat;
    AsyncOperation &operation = w.checks->new_operation(w, op, flat ? AsyncKind::flat : AsyncKind::store);
    if (places.in_lds != 0)
      operation.add_lds_part({places.lds_address, places.in_lds, op.memory.bytes}, true);
    w.checks->issue(w, operation);
  }
  return Step::next;
}

/// Bits of a stored register below the 16-bit value.
inline uint32_t stored_shift(const MemoryControl &m) {
  return m.half == HalfSelect::high ? 16 : 0;
}

//===--- Atomics ----------------------------------------------------------------------------------------===//

/// Runs the lanes one after another.
template <bool strict> Step run_atomic_at(Wave &w, const Op &op, Places &places) {
  const MemoryControl &m = op.memory;
  alignas(64) uint32_t old_rows[2 * wave_lanes] = {};
  const uint32_t *data = w.row(op.src[1]);
  const uint32_t width = m.bytes / 4u;
  const uint32_t in_memory = kept_denormals(w.mode, m.memory_denormals);
  const uint32_t in_lds = kept_denormals(w.mode, m.lds_denormals);
  auto operand = [&](uint32_t first_row, uint32_t lane) {
    const uint32_t *row = data + first_row * wave_lanes;
    return row[lane] | (width == 2 ? uint64_t(row[wave_lanes + lane]) << 32 : 0);
  };
  for (uint64_t lanes = places.allowed; lanes != 0; lanes &= lanes - 1) {
    const uint32_t lane = low_lane(lanes);
    if (reinterpret_cast<uint64_t>(places.pointer[lane]) % m.bytes != 0) {
      if constexpr (strict)
        w.checks->report_misaligned(w, op, int32_t(lane), reinterpret_cast<uint64_t>(places.pointer[lane]),
                                    m.bytes);
      continue;
    }
    const uint64_t second = m.second ? operand(width, lane) : 0;
    const uint64_t old = combine(places.pointer[lane], m.bytes, op.atomic, operand(0, lane), second,
                                 (places.in_lds >> lane & 1) != 0 ? in_lds : in_memory);
    old_rows[lane] = uint32_t(old);
    old_rows[wave_lanes + lane] = uint32_t(old >> 32);
  }
  if (!m.return_old) return count_store<strict>(w, op, places);
  AsyncOperation *operation = nullptr;
  uint32_t *rows = begin_load<strict>(w, op, places, operation, Access::atomic);
  copy_lanes(rows, old_rows, width, places.lanes);
  return end_load<strict>(w, operation);
}

//===--- Copies into LDS --------------------------------------------------------------------------------===//

/// Lane i writes the dword at M0 + offset + 4 * i; the instruction's offset counts on both sides. Inactive
/// lanes write nothing; lanes beyond the buffer's range write 0.
template <bool strict> Step copy_to_lds(Wave &w, const Op &op, uint64_t lanes, const uint32_t *values) {
  const uint32_t base = (w.s[sgpr_m0] & 0xffff) + uint32_t(op.memory.offset);
  alignas(64) uint32_t at[wave_lanes];
  uint64_t inside = 0;
  for (uint32_t lane = 0; lane < wave_lanes; ++lane) {
    at[lane] = (base & ~3u) + 4 * lane;
    inside |= uint64_t(uint64_t(at[lane]) + 4 <= w.workgroup->lds_bytes) << lane;
  }
  if constexpr (strict) {
    if (base % 4 != 0) w.checks->report_misaligned(w, op, 0, base, 4);
    const uint64_t outside = lanes & ~inside;
    if (outside != 0) w.checks->report_lds_bounds(w, op, low_lane(outside), at[low_lane(outside)], 4);
  }
  inside &= lanes;
  if constexpr (strict) {
    w.checks->begin_copy(w, op, at, inside);
    AsyncOperation &operation = w.checks->new_operation(w, op, AsyncKind::lds_copy);
    operation.in_bounds = inside;
    std::memcpy(operation.lds_address[0].data(), at, sizeof at);
    std::memcpy(operation.data.data(), values, wave_lanes * 4);
    w.checks->issue(w, operation);
  } else {
    for (uint64_t left = inside; left != 0; left &= left - 1)
      std::memcpy(w.workgroup->lds + at[low_lane(left)], &values[low_lane(left)], 4);
  }
  return Step::next;
}

//===--- Routines ---------------------------------------------------------------------------------------===//

/// The routines of an encoding.
struct VectorRoutines {
  MemoryRoutines load, store, copy;
  MemoryRoutines atomic = {};
};

MemoryRoutines vector_routines(const InstructionFacts &facts, const VectorRoutines &routines, bool to_lds);

} // namespace sluice::emulator

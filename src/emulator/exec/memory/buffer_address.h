//===- buffer_address.h - the addresses of a buffer instruction's lanes ---------------------------------===//
#pragma once

#include <algorithm>
#include <cassert>

#include "emulator/exec/memory/vector_access.h"

namespace sluice::emulator {

/// The four dwords of a buffer resource (V#).
struct BufferResource {
  uint64_t base;
  uint32_t stride;
  uint32_t records;
  uint32_t element_bytes;
  uint32_t index_stride;
  uint8_t select[4]; // DST_SEL_X to _W
  uint8_t number_format;
  uint8_t data_format;
  bool swizzle;
  bool add_lane;
  bool unbound; // reads 0, drops stores

  /// `formatted`: the instruction converts. For other instructions, ADD_TID_ENABLE makes DATA_FORMAT the high
  /// bits of the stride.
  BufferResource(const uint32_t *words, bool formatted)
      : base(words[0] | uint64_t(words[1] & 0xffff) << 32), stride(words[1] >> 16 & 0x3fff),
        records(words[2]), element_bytes(2u << (words[3] >> 19 & 3)),
        index_stride(8u << (words[3] >> 21 & 3)), number_format(words[3] >> 12 & 7),
        data_format(words[3] >> 15 & 15), swizzle((words[1] >> 31) != 0),
        add_lane((words[3] >> 23 & 1) != 0) {
    for (uint32_t i = 0; i < 4; ++i)
      select[i] = words[3] >> 3 * i & 7;
    const bool long_stride = add_lane && !formatted;
    if (long_stride) stride |= uint32_t(data_format) << 14;
    unbound = data_format == 0 && !long_stride;
  }
};

/// The part of an instruction's access that one call places.
struct BufferPart {
  uint32_t first; // bytes before it
  uint32_t bytes;
  bool whole; // in range as a whole or not at all; else dword by dword
  Access access;
  StoredRows stored = {}; // for a store
};

/// How many of the `bytes` at `offset` (for a linear buffer, at `place`) are in range. Stores beyond are
/// dropped, loads there give 0. NUM_RECORDS counts bytes after the scalar offset for a raw buffer, records
/// for a structured one.
struct BufferRange {
  BufferRange(const BufferResource &r, bool index_enable, uint32_t scalar_offset)
      : structured(r.stride != 0 && (index_enable || r.swizzle)), unchecked(r.add_lane && !index_enable),
        records(r.records), record_bytes(r.swizzle ? r.stride : ~uint64_t(0)),
        raw_bytes(r.records > scalar_offset ? r.records - scalar_offset : 0) {}

  uint64_t valid_bytes(uint64_t index, uint64_t offset, uint64_t place, uint64_t bytes) const {
    if (unchecked) return bytes;
    if (structured && index >= records) return 0;
    const uint64_t start = structured ? offset : place;
    const uint64_t end = structured ? record_bytes : raw_bytes;
    return start >= end ? 0 : std::min(bytes, end - start);
  }

  bool structured;
  bool unchecked; // scratch: the lane number is the index
  uint64_t records;
  uint64_t record_bytes;
  uint64_t raw_bytes;
};

/// Counts lanes that are wholly or partly out of range, and reports them. `addresses` may be null.
template <bool strict>
void leave_range(Wave &w, const Op &op, const BufferResource &r, uint64_t lanes, const uint64_t *addresses,
                 Access access) {
  if (lanes == 0) [[likely]]
    return;
  w.buffer_lanes_out_of_range += uint64_t(std::popcount(lanes));
  if constexpr (strict) {
    const uint32_t lane = low_lane(lanes);
    w.checks->report_buffer_range(w, op, int32_t(lane), addresses ? addresses[lane] : r.base, r.records,
                                  access != Access::load);
  }
}

template <bool strict>
void place_buffer(Wave &w, const Op &op, const BufferResource &r, const BufferPart &part, Places &places) {
  const MemoryControl &m = op.memory;
  const uint32_t scalar_offset = w.scalar(op.mask_in);
  const uint32_t *row = op.src[0] == no_operand ? nullptr : w.row(op.src[0]);
  assert(row || (!m.index_enable && !m.offset_enable));
  const uint32_t *offsets = m.offset_enable ? row + (m.index_enable ? wave_lanes : 0) : nullptr;
  const uint64_t address_bits = (part.bytes >= 4 ? ~uint64_t(3) : ~uint64_t(0)) & 0x0000ffffffffffff;
  const BufferRange range(r, m.index_enable, scalar_offset);
  places.lanes = w.exec();
  places.allowed = places.cut = 0;
  if (r.unbound) return leave_range<strict>(w, op, r, places.lanes, nullptr, part.access);
  alignas(64) uint64_t addresses[wave_lanes];
  for (uint64_t lanes = places.lanes; lanes != 0; lanes &= lanes - 1) {
    const uint32_t lane = low_lane(lanes);
    const uint64_t index = uint32_t((m.index_enable ? row[lane] : 0) + (r.add_lane ? lane : 0));
    const uint64_t offset = uint32_t(m.offset) + uint64_t(offsets ? offsets[lane] : 0) + part.first;
    const uint64_t place =
        r.swizzle ? (index / r.index_stride * r.stride + offset / r.element_bytes * r.element_bytes) *
                            r.index_stride +
                        index % r.index_stride * r.element_bytes + offset % r.element_bytes
                  : offset + index * r.stride;
    addresses[lane] = (r.base + scalar_offset + place) & address_bits;
    places.pointer[lane] = reinterpret_cast<uint8_t *>(addresses[lane]);
    const uint64_t valid = range.valid_bytes(index, offset, place, part.bytes);
    if (valid == part.bytes) {
      places.allowed |= uint64_t(1) << lane;
    } else if (valid >= 4 && !part.whole) {
      places.cut |= uint64_t(1) << lane;
      places.cut_bytes[lane] = uint8_t(valid & ~uint64_t(3));
    }
  }
  leave_range<strict>(w, op, r, places.lanes & ~places.allowed, addresses, part.access);
  if constexpr (strict) {
    const bool write = part.access != Access::load;
    places.allowed = w.checks->check_global(w, op, addresses, places.allowed, part.bytes, write, part.stored);
    uint64_t cut = 0;
    for (uint64_t lanes = places.cut; lanes != 0; lanes &= lanes - 1)
      cut |= w.checks->check_global(w, op, addresses, lanes & (0 - lanes), places.cut_bytes[low_lane(lanes)],
                                    write, part.stored);
    places.cut = cut;
  }
}

/// The four scalar registers of the resource.
inline const uint32_t *resource_words(const Wave &w, const Op &op) {
  return &w.s[op.src[2] - first_sgpr];
}

} // namespace sluice::emulator

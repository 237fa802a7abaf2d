//===- lds_shadow_lanes.cpp - LDS accesses of many lanes that conflict with nothing ---------------------===//
#include <cassert>

#include "emulator/check/lds_shadow.h"
#include "emulator/check/wave_checks.h"

namespace sluice::emulator {

LdsShadow::Cell *LdsShadow::whole_cells(uint32_t address, uint32_t bytes) {
  if ((address | bytes) % 4 != 0) return nullptr;
  for (uint32_t at = 0; at < bytes; at += 4)
    cell_of((address + at) / 4);
  return &dwords[address / 4];
}

bool LdsShadow::are_plain(const LdsLanes &at, bool must_hold) const {
  if (!at.whole_dwords) return false;
  auto is_plain = [&](const LdsRange &range) {
    return !special.any(range) && (!must_hold || written.all(range));
  };
  if (is_plain(at.range)) return true;
  for (uint64_t left = at.lanes; left != 0; left &= left - 1)
    if (!is_plain(dwords_at(at.addresses[low_lane(left)], at.bytes))) return false;
  return true;
}

bool LdsShadow::keep(const LdsBy &by, const LdsLanes &at) {
  if (!are_plain(at, by.use != LdsUse::store)) return false;
  if (!since_barrier.has_room()) enter_kept();
  if (!since_barrier.keep(by, at)) return false;
  if (by.use != LdsUse::store || written.all(at.range)) return true;
  for (uint64_t left = at.lanes; left != 0; left &= left - 1)
    written.add(dwords_at(at.addresses[low_lane(left)], at.bytes));
  return true;
}

void LdsShadow::enter_kept() {
  since_barrier.release([&](const LdsAccesses &accesses) {
    for (uint64_t lanes = accesses.lanes; lanes != 0; lanes &= lanes - 1) {
      Cell *const cells = whole_cells(accesses.addresses[low_lane(lanes)], accesses.bytes);
      if (accesses.by.use == LdsUse::read) {
        for (uint32_t i = 0; i < accesses.bytes / 4; ++i)
          cells[i].enter_read(epoch, accesses.by.wave, accesses.by.op);
      } else {
        [[maybe_unused]] const bool entered = store_quickly(cells, accesses.bytes / 4, accesses.by);
        assert(entered);
      }
    }
  });
}

uint64_t LdsShadow::read_lanes(const LdsLanes &at, uint32_t wave, uint32_t op) {
  if (at.lanes == 0 || keep({LdsUse::read, wave, op, instruction}, at)) return 0;
  settle(at.range);
  const uint32_t bytes = at.bytes;
  uint64_t lanes = at.lanes;
  for (; lanes != 0; lanes &= lanes - 1) {
    const uint32_t address = at.addresses[low_lane(lanes)];
    Cell *const cells = whole_cells(address, bytes);
    if (cells == nullptr) break;
    bool is_clear = true;
    for (uint32_t i = 0; i < bytes / 4; ++i) {
      const Cell &cell = cells[i];
      const bool stored_by_others = cell.write_epoch == epoch && (cell.writers >> wave & 1) == 0;
      is_clear =
          is_clear && !stored_by_others && (cell.state & (copying | split | initialised)) == initialised;
    }
    if (!is_clear) break;
    since_barrier.note(LdsUse::read, dwords_at(address, bytes), wave);
    for (uint32_t i = 0; i < bytes / 4; ++i)
      cells[i].enter_read(epoch, wave, op);
  }
  return lanes;
}

/// For a first store of the epoch to these dwords, or an atomic after atomics, if nobody else has read them.
inline bool LdsShadow::store_quickly(Cell *cells, uint32_t count, const LdsBy &by) {
  const bool is_atomic = by.use == LdsUse::atomic;
  const auto mine = uint16_t(1u << by.wave);
  for (uint32_t i = 0; i < count; ++i) {
    const Cell &cell = cells[i];
    const bool is_first = cell.write_epoch != epoch || (is_atomic && (cell.state & atomic_write) != 0);
    const bool read_by_others = cell.read_epoch == epoch && (cell.readers & ~mine) != 0;
    const bool is_whole =
        (cell.state & (copying | split)) == 0 && (!is_atomic || (cell.state & initialised) == initialised);
    if (!is_first || read_by_others || !is_whole) return false;
  }
  for (uint32_t i = 0; i < count; ++i) {
    Cell &cell = cells[i];
    const uint8_t older = older_value_seen(cell, cell.write_instruction != by.number);
    cell.writers = mine;
    cell.write_epoch = epoch;
    cell.write_op = by.op;
    cell.write_instruction = by.number;
    cell.state = uint8_t(initialised | (is_atomic ? atomic_write : 0) | older);
  }
  return true;
}

uint64_t LdsShadow::store_lanes(const LdsLanes &at, uint32_t wave, uint32_t op, bool is_atomic) {
  const LdsBy by{is_atomic ? LdsUse::atomic : LdsUse::store, wave, op, instruction};
  if (at.lanes == 0 || keep(by, at)) return 0;
  settle(at.range);
  const uint32_t bytes = at.bytes;
  uint64_t lanes = at.lanes;
  for (; lanes != 0; lanes &= lanes - 1) {
    const uint32_t address = at.addresses[low_lane(lanes)];
    Cell *const cells = whole_cells(address, bytes);
    if (cells == nullptr || !store_quickly(cells, bytes / 4, by)) break;
    const LdsRange range = dwords_at(address, bytes);
    since_barrier.note(by.use, range, wave);
    written.add(range);
  }
  return lanes;
}

} // namespace sluice::emulator

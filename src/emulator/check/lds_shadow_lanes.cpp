//===- lds_shadow_lanes.cpp - LDS accesses of many lanes that conflict with nothing ---------------------===//
//
// Reads matter only to a store of the same epoch, and most epochs have none after their reads. So the reads
// of a whole instruction are kept as they are until something else touches the cells or a barrier makes them
// old.
//
//===----------------------------------------------------------------------------------------------------===//
#include <bit>
#include <cstring>

#include "emulator/check/lds_shadow.h"
#include "emulator/isa/op.h"

namespace sluice::emulator {

namespace {

constexpr size_t most_kept_reads = 64;

uint32_t low_lane(uint64_t lanes) {
  return uint32_t(std::countr_zero(lanes));
}

} // namespace

void LdsShadow::enter_kept_reads() {
  for (const LaneReads &reads : kept_reads)
    for (uint64_t lanes = reads.lanes; lanes != 0; lanes &= lanes - 1) {
      Cell *const cells = &dwords[reads.addresses[low_lane(lanes)] / 4];
      for (uint32_t i = 0; i < reads.bytes / 4; ++i)
        cells[i].enter_read(epoch, reads.wave, reads.op);
    }
  kept_reads.clear();
  kept_range = {};
}

/// True if no lane's read can conflict.
bool LdsShadow::keep_reads(const uint32_t *addresses, uint64_t lanes, uint32_t bytes, uint32_t wave,
                           uint32_t op) {
  if (bytes % 4 != 0) return false;
  uint32_t misaligned = 0;
  uint8_t all = initialised;
  uint8_t any = 0;
  Range range;
  for (uint64_t left = lanes; left != 0; left &= left - 1) {
    const uint32_t address = addresses[low_lane(left)];
    misaligned |= address % 4;
    range.add(address, bytes);
    for (uint32_t i = 0; i < bytes / 4; ++i) {
      const uint8_t state = dwords[address / 4 + i].state;
      all &= state;
      any |= state;
    }
  }
  // The cells of a misaligned access reach one dword further than was looked at.
  if (misaligned != 0 || all != initialised || (any & (copying | split)) != 0) return false;
  if ((epoch_writers & ~(1u << wave)) != 0 && range.meets(epoch_stores)) return false;
  if (kept_reads.size() == most_kept_reads) enter_kept_reads();
  kept_range.low = std::min(kept_range.low, range.low);
  kept_range.high = std::max(kept_range.high, range.high);
  LaneReads &reads = kept_reads.emplace_back();
  reads.lanes = lanes;
  reads.wave = wave;
  reads.op = op;
  reads.bytes = bytes;
  std::memcpy(reads.addresses.data(), addresses, sizeof reads.addresses);
  return true;
}

uint64_t LdsShadow::read_lanes(const uint32_t *addresses, uint64_t lanes, uint32_t bytes, uint32_t wave,
                               uint32_t op) {
  if (lanes == 0 || keep_reads(addresses, lanes, bytes, wave, op)) return 0;
  settle(range_of(addresses, lanes, bytes));
  for (; lanes != 0; lanes &= lanes - 1) {
    Cell *const cells = whole_cells(addresses[low_lane(lanes)], bytes);
    if (cells == nullptr) break;
    bool is_clear = true;
    for (uint32_t i = 0; i < bytes / 4; ++i) {
      const Cell &cell = cells[i];
      const bool stored_by_others = cell.write_epoch == epoch && (cell.writers >> wave & 1) == 0;
      is_clear =
          is_clear && !stored_by_others && (cell.state & (copying | split | initialised)) == initialised;
    }
    if (!is_clear) break;
    for (uint32_t i = 0; i < bytes / 4; ++i)
      cells[i].enter_read(epoch, wave, op);
  }
  return lanes;
}

/// For a first store of the epoch to these dwords, or an atomic after atomics, if nobody else has read them.
inline bool LdsShadow::store_quickly(Cell *cells, uint32_t count, uint32_t wave, uint32_t op,
                                     bool is_atomic) {
  const auto mine = uint16_t(1u << wave);
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
    const uint8_t older = older_value_seen(cell, cell.write_instruction != instruction);
    cell.writers = mine;
    cell.write_epoch = epoch;
    cell.write_op = op;
    cell.write_instruction = instruction;
    cell.state = uint8_t(initialised | (is_atomic ? atomic_write : 0) | older);
  }
  return true;
}

uint64_t LdsShadow::store_lanes(const uint32_t *addresses, uint64_t lanes, uint32_t bytes, uint32_t wave,
                                uint32_t op, bool is_atomic) {
  if (lanes == 0) return 0;
  note_store(range_of(addresses, lanes, bytes), wave);
  for (; lanes != 0; lanes &= lanes - 1) {
    Cell *const cells = whole_cells(addresses[low_lane(lanes)], bytes);
    if (cells == nullptr) break;
    const bool is_quick = bytes == 4 ? store_quickly(cells, 1, wave, op, is_atomic)
                                     : store_quickly(cells, bytes / 4, wave, op, is_atomic);
    if (!is_quick) break;
  }
  return lanes;
}

} // namespace sluice::emulator

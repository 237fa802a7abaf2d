//===- lds_shadow.h - which wave touched which byte of LDS, and when ------------------------------------===//
//
// Two accesses of different waves are in order only if the first was waited for before a barrier that both
// waves passed. The shadow counts barriers as epochs: an access that another wave made in this epoch
// conflicts with one made now. An access not waited for when a barrier comes is entered again with the new
// epoch; a read is also remembered as issued before the barrier. A copy into LDS is open from its issue until
// its wave has waited for it. It conflicts with every access in between, including those of its own wave.
//
// There is one cell per dword. A dword that is accessed in parts gets four, one per byte. Cells are made when
// an access first needs one: most are kept by whole instructions, see lds_epoch.h.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include <cstdint>
#include <vector>

#include "emulator/check/lds_epoch.h"

namespace sluice::emulator {

/// What an access collides with.
enum class LdsConflict : uint8_t {
  none,
  uninitialised,
  after_write,
  after_read,
  after_read_before_barrier, // a store after a read issued before the last barrier and not waited for
  after_copy,
  equal_store, // a store, after another wave's, of the value that LDS holds already
  same_store,  // another lane of the same instruction stores here
};

struct LdsOther {
  static constexpr uint32_t nobody = ~0u;
  uint32_t op = nobody;
  uint32_t wave = 0;
};

class LdsShadow {
public:
  /// Forgets everything: the contents of LDS are undefined when a workgroup starts.
  void reset(uint32_t bytes);

  void next_epoch();

  // Each function enters an access of [address, address + bytes) and returns the first conflict found. The
  // range must be inside LDS.
  LdsConflict read(uint32_t address, uint32_t bytes, uint32_t wave, uint32_t op, LdsOther &other);
  /// What LDS holds at an address, and what a store will leave there. The new values are rows of dwords, from
  /// the lane's dword of the first row on; their low bits count after a shift.
  struct Values {
    const uint8_t *held = nullptr; // null: not a plain store
    const uint32_t *rows = nullptr;
    uint32_t shift = 0;

    bool same(uint32_t offset, uint32_t bytes) const;
  };
  /// Marks where the next instruction begins: the lanes of one instruction do not overwrite each other's
  /// values.
  void begin_instruction() { ++instruction; }
  // `in_order`: made by an LDS instruction; LDS serves those in the order of issue.
  LdsConflict write(uint32_t address, uint32_t bytes, uint32_t wave, uint32_t op, bool in_order,
                    Values values, LdsOther &other);
  /// Like a write, but atomics of different waves do not conflict.
  LdsConflict atomic(uint32_t address, uint32_t bytes, uint32_t wave, uint32_t op, bool in_order,
                     LdsOther &other);
  LdsConflict begin_copy(uint32_t address, uint32_t bytes, uint32_t wave, uint32_t op, LdsOther &other);
  /// `defined`: the data had been written at the source.
  void end_copy(uint32_t address, uint32_t bytes, uint32_t wave, uint32_t op, bool defined);

  // The usual case of many lanes: enters their accesses in order, up to the first that is not of whole dwords
  // or may conflict. Returns the lanes that are left.
  uint64_t read_lanes(const LdsLanes &at, uint32_t wave, uint32_t op);
  uint64_t store_lanes(const LdsLanes &at, uint32_t wave, uint32_t op, bool is_atomic);

  // Accesses of an earlier epoch that were not waited for: they count for this epoch as well.
  void carry_read(uint32_t address, uint32_t bytes, uint32_t wave, uint32_t op, bool in_order);
  void carry_write(uint32_t address, uint32_t bytes, uint32_t wave, uint32_t op);

private:
  // `older_seen`: before its last value, the cell held another one in the same epoch that a wave has read or
  // stored. A wave that stores the last value again may come before that access.
  enum : uint8_t { initialised = 15, copying = 16, atomic_write = 32, split = 64, older_seen = 128 };

  struct Cell {
    uint16_t write_epoch = 0;
    uint16_t read_epoch = 0;
    uint16_t readers = 0; // waves that read in read_epoch
    uint16_t carried = 0; // those that issued it before the epoch's barrier
    uint16_t writers = 0; // waves that stored in write_epoch: one, or several that stored the same
    uint8_t state = 0;    // low four bits: bytes that were written
    uint32_t write_op = 0;
    uint32_t read_op = 0;
    uint32_t write_instruction = 0;

    /// Some wave that wrote the cell, other than this one.
    uint32_t writer_but(uint32_t wave) const;
    void enter_read(uint16_t in_epoch, uint32_t wave, uint32_t op) {
      const auto bit = uint16_t(1u << wave);
      if (read_epoch != in_epoch) {
        read_epoch = in_epoch;
        readers = carried = 0;
      }
      readers |= bit;
      carried &= uint16_t(~bit);
      read_op = op;
    }
  };

  static LdsRange range_at(uint32_t address, uint32_t bytes) {
    LdsRange range;
    range.add(address, bytes);
    return range;
  }
  /// Whether the lanes access whole dwords in no special state that hold a value, if they must.
  bool are_plain(const LdsLanes &at, bool must_hold) const;
  bool keep(const LdsBy &by, const LdsLanes &at);
  /// The cells of whole dwords, up to date, or null.
  Cell *whole_cells(uint32_t address, uint32_t bytes);
  Cell &cell_of(uint32_t dword);
  /// Enters the state of a dword into the sets.
  void note_state(uint32_t dword);
  void enter_kept();
  /// Before cells of this range are looked at.
  void settle(const LdsRange &range) {
    if (since_barrier.may_meet(range)) enter_kept();
  }
  bool store_quickly(Cell *cells, uint32_t count, const LdsBy &by);
  template <class Visit> void visit(uint32_t address, uint32_t bytes, Visit &&on_cell);
  Cell *split_dword(uint32_t dword);
  LdsConflict store(uint32_t address, uint32_t bytes, uint32_t wave, uint32_t op, uint8_t flags,
                    bool in_order, Values values, LdsOther &other);
  /// The state bit after a write. Reads that a wave issued before the barrier come before any store of this
  /// epoch.
  uint8_t older_value_seen(const Cell &cell, bool changes) const {
    const bool seen = cell.write_epoch == epoch
                          ? changes || (cell.state & older_seen) != 0
                          : cell.read_epoch == epoch && (cell.readers & ~cell.carried) != 0;
    return seen ? uint8_t(older_seen) : uint8_t(0);
  }
  LdsConflict check_read(const Cell &cell, uint32_t wave, LdsOther &other) const;
  LdsConflict check_write(const Cell &cell, uint32_t wave, bool is_atomic, LdsOther &other) const;

  std::vector<Cell> dwords;         // empty until one is needed
  std::vector<Cell> bytes_of_split; // four cells per dword, likewise
  DwordSet written;                 // all their bytes, ...
  DwordSet special;                 // split, or being copied into
  LdsEpoch since_barrier;
  uint32_t dword_count = 0;
  uint32_t instruction = 0;
  uint16_t epoch = 1;
};

} // namespace sluice::emulator

//===- line_records.h - the accesses that are remembered of one line of memory --------------------------===//
//
// An access is remembered once for all dwords of the line that it touched. Most lines have a few, which take
// no memory of their own; masks and the rest are apart, so that a search reads only masks.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include <array>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>

namespace sluice::emulator {

/// What an access is remembered as.
enum class Remembered : uint8_t {
  store,
  load,         // by the workgroup that loaded last
  earlier_load, // by another workgroup, before
};

struct AccessRecord {
  uint32_t wave = 0; // its number in the launch; the last of `waves`
  uint32_t moment = 0;
  uint32_t op : 22 = 0;
  uint32_t kind : 2 = 0;  // Remembered
  uint32_t bytes : 4 = 0; // of each dword, one bit each
  uint32_t atomic : 1 = 0;
  uint32_t combines : 1 = 0; // an atomic that reads and writes
  uint32_t scalar : 1 = 0;
  uint32_t uniform : 1 = 0; // a store of `value` in every dword
  uint32_t value = 0;
  uint32_t epoch = 0; // barriers that the wave had passed
  uint16_t waves = 0; // waves of the workgroup that have loaded, or stored the same value, in the epoch

  friend bool operator==(const AccessRecord &, const AccessRecord &) = default;
};

class LineRecords {
public:
  LineRecords() = default;
  LineRecords(const LineRecords &) = delete;
  LineRecords &operator=(const LineRecords &) = delete;
  ~LineRecords() { std::free(more); }

  uint32_t size() const { return count; }
  uint64_t &dwords(uint32_t i) { return masks()[i]; }
  uint64_t dwords(uint32_t i) const { return const_cast<LineRecords *>(this)->masks()[i]; }
  AccessRecord &operator[](uint32_t i) { return records()[i]; }
  const AccessRecord &operator[](uint32_t i) const { return const_cast<LineRecords *>(this)->records()[i]; }

  /// The first record at `from` or later that has one of the dwords; size() if there is none.
  uint32_t find(uint64_t dwords, uint32_t from) const;
  /// Adds dwords to a record that is the same, or a new record.
  void add(uint64_t dwords, const AccessRecord &record);
  /// Removes records without a dword.
  void drop_empty();

private:
  static constexpr uint32_t few = 4;

  uint64_t *masks() { return more ? static_cast<uint64_t *>(more) : own_masks.data(); }
  AccessRecord *records() {
    return more ? reinterpret_cast<AccessRecord *>(static_cast<uint64_t *>(more) + capacity)
                : own_records.data();
  }
  void grow();

  uint32_t count = 0;
  uint32_t capacity = few;
  void *more = nullptr; // `capacity` masks, then as many records
  std::array<uint64_t, few> own_masks;
  std::array<AccessRecord, few> own_records;
};

} // namespace sluice::emulator

//===- footprint.h - the dwords of memory that an instruction touches -----------------------------------===//
//
// The checks look at whole waves where they can: memory is divided into lines of 64 dwords, and the dwords of
// a line that a wave touches are a mask.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <span>

namespace sluice::emulator {

constexpr uint32_t line_dwords = 64;
constexpr uint32_t line_bytes = line_dwords * 4;
constexpr uint32_t whole_dword = 15; // all its bytes, a bit each

/// Dwords of one line, and which bytes of each of them, the same for all.
struct LinePart {
  uint64_t line;   // address / line_bytes
  uint64_t dwords; // bit i: dword i
  uint32_t bytes;
};

/// Dwords `first` to `end` - 1 of a line.
constexpr uint64_t dword_range(uint32_t first, uint32_t end) {
  auto below = [](uint32_t dword) {
    return dword >= line_dwords ? ~uint64_t(0) : (uint64_t(1) << dword) - 1;
  };
  return below(end) & ~below(first);
}

class Footprint {
public:
  /// Of accesses of `bytes` bytes at the addresses of `lanes`, which is not 0.
  Footprint(const uint64_t *addresses, uint64_t lanes, uint32_t bytes);
  Footprint(const Footprint &) = delete;
  Footprint &operator=(const Footprint &) = delete;

  /// A dword of memory is in one part, or, if lanes touch different bytes of it, also in one.
  std::span<const LinePart> parts() const { return {list.data(), count}; }
  uint64_t low() const { return lowest; }
  uint64_t high() const { return highest; } // of the last byte, plus one
  uint64_t active() const { return lanes; }
  uint64_t address(uint32_t lane) const { return addresses[lane]; }
  uint32_t bytes_per_lane() const { return bytes; }
  /// Whether two lanes touch the same byte.
  bool overlaps() const { return meet; }
  /// The first lane that touches one of these bytes.
  uint32_t lane_of(const LinePart &part) const;
  /// Whether something holds for every byte of a part: of a lane, its offset in the lane's access, and its
  /// address.
  template <class Holds> bool all_bytes(const LinePart &part, Holds &&holds) const {
    for (uint64_t left = lanes; left != 0; left &= left - 1) {
      const auto lane = uint32_t(std::countr_zero(left));
      for (uint32_t offset = 0; offset < bytes; ++offset)
        if (has(part, addresses[lane] + offset) && !holds(lane, offset, addresses[lane] + offset))
          return false;
    }
    return true;
  }

private:
  static bool has(const LinePart &part, uint64_t address) {
    return address / line_bytes == part.line && (part.dwords >> address / 4 % line_dwords & 1) != 0 &&
           (part.bytes >> address % 4 & 1) != 0;
  }
  struct Range {
    uint64_t start, end;
  };
  bool enter_contiguous(uint32_t first);
  void enter_dwords(std::span<const Range> ranges);
  void enter_bytes(std::span<const Range> ranges);

  // 64 lanes of at most 16 bytes touch 5 dwords each, if unaligned; one scalar access has at most 64 bytes.
  static constexpr uint32_t most_parts = 64 * 5;

  const uint64_t *const addresses;
  const uint64_t lanes;
  const uint32_t bytes;
  uint64_t lowest = 0;
  uint64_t highest = 0;
  bool meet = false;
  uint32_t count = 0;
  std::array<LinePart, most_parts> list;
};

} // namespace sluice::emulator

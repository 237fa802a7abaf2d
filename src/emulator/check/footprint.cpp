//===- footprint.cpp - the dwords of memory that an instruction touches ---------------------------------===//
#include "emulator/check/footprint.h"

#include <algorithm>
#include <bit>

namespace sluice::emulator {

namespace {

/// Numbers the lines that a wave touches.
class LineIndex {
public:
  /// The number of a line; `next` if it is new, which enters it.
  uint32_t find(uint64_t line, uint32_t next) {
    if (next <= few) {
      for (uint32_t i = 0; i < next; ++i)
        if (lines[i] == line) return i;
      if (next < few) {
        lines[next] = line;
        return next;
      }
      slots.fill(0);
      for (uint32_t i = 0; i < few; ++i)
        *slot_of(lines[i]) = uint8_t(i + 1);
    }
    uint8_t *const slot = slot_of(line);
    if (*slot != 0) return *slot - 1u;
    *slot = uint8_t(next + 1);
    lines[next] = line;
    return next;
  }

private:
  static constexpr uint32_t few = 8; // as many are found without hashing

  /// The slot of a line, or a free one.
  uint8_t *slot_of(uint64_t line) {
    for (uint32_t at = uint32_t(line * 0x9e3779b97f4a7c15 >> 56);; at = (at + 1) % slots.size())
      if (slots[at] == 0 || lines[slots[at] - 1u] == line) return &slots[at];
  }

  std::array<uint8_t, 256> slots;  // number + 1
  std::array<uint64_t, 128> lines; // 64 lanes touch at most two lines each
};

} // namespace

Footprint::Footprint(const uint64_t *addresses, uint64_t lanes, uint32_t bytes)
    : addresses(addresses), lanes(lanes), bytes(bytes) {
  if (enter_contiguous(uint32_t(std::countr_zero(lanes)))) return;
  // Lanes that go on where the lane before them ends, whether or not that one is active.
  uint64_t goes_on = 0;
  const auto end = uint32_t(std::bit_width(lanes));
  for (uint32_t lane = 1; lane < end; ++lane)
    goes_on |= uint64_t(addresses[lane] == addresses[lane - 1] + bytes) << lane;
  goes_on &= lanes & lanes << 1;
  std::array<Range, 64> ranges; // of lanes that access neighbouring bytes
  uint32_t range_count = 0;
  for (uint64_t starts = lanes & ~goes_on; starts != 0; starts &= starts - 1) {
    const auto first = uint32_t(std::countr_zero(starts));
    const uint32_t more = first == 63 ? 0 : uint32_t(std::countr_one(goes_on >> (first + 1)));
    const uint64_t address = addresses[first];
    ranges[range_count++] = {address, address + uint64_t(more + 1) * bytes};
  }
  lowest = ~uint64_t(0);
  uint64_t all = bytes;
  for (uint32_t i = 0; i < range_count; ++i) {
    lowest = std::min(lowest, ranges[i].start);
    highest = std::max(highest, ranges[i].end);
    all |= ranges[i].start;
  }
  if ((all & 3) == 0)
    enter_dwords({ranges.data(), range_count});
  else
    enter_bytes({ranges.data(), range_count});
}

/// The usual case: neighbouring lanes access neighbouring dwords.
bool Footprint::enter_contiguous(uint32_t first) {
  const uint64_t run = lanes >> first;
  if (((addresses[first] | bytes) & 3) != 0 || (run & (run + 1)) != 0) return false;
  const auto width = uint32_t(std::popcount(run));
  uint64_t different = 0;
  for (uint32_t i = 0; i < width; ++i)
    different |= addresses[first + i] ^ (addresses[first] + uint64_t(i) * bytes);
  if (different != 0) return false;
  lowest = addresses[first];
  highest = lowest + uint64_t(width) * bytes;
  for (uint64_t at = lowest; at < highest;) {
    const uint64_t line = at / line_bytes;
    const uint64_t end = std::min(highest, (line + 1) * line_bytes);
    list[count++] = {line,
                     dword_range(uint32_t(at - line * line_bytes) / 4, uint32_t(end - line * line_bytes) / 4),
                     whole_dword};
    at = end;
  }
  return true;
}

void Footprint::enter_dwords(std::span<const Range> ranges) {
  LineIndex index;
  for (const Range &range : ranges)
    for (uint64_t at = range.start; at < range.end;) {
      const uint64_t line = at / line_bytes;
      const uint64_t end = std::min(range.end, (line + 1) * line_bytes);
      const uint32_t current = index.find(line, count);
      if (current == count) list[count++] = {line, 0, whole_dword};
      const uint64_t mask =
          dword_range(uint32_t(at - line * line_bytes) / 4, uint32_t(end - line * line_bytes) / 4);
      meet = meet || (list[current].dwords & mask) != 0;
      list[current].dwords |= mask;
      at = end;
    }
}

void Footprint::enter_bytes(std::span<const Range> ranges) {
  LineIndex index;
  struct Bytes {
    uint64_t line;
    std::array<uint64_t, 4> touched; // dwords of which byte i is touched
  };
  std::array<Bytes, 128> lines;
  uint32_t line_count = 0;
  for (const Range &range : ranges)
    for (uint64_t at = range.start; at < range.end;) {
      const uint64_t line = at / line_bytes;
      const uint64_t end = std::min(range.end, (line + 1) * line_bytes);
      const uint32_t current = index.find(line, line_count);
      if (current == line_count) lines[line_count++] = {line, {}};
      for (uint32_t byte = 0; byte < 4; ++byte) {
        // From the first dword whose byte is not before the range to the first whose byte is behind it.
        const uint64_t mask = dword_range(uint32_t(at - line * line_bytes + 3 - byte) / 4,
                                          uint32_t(end - line * line_bytes + 3 - byte) / 4);
        meet = meet || (lines[current].touched[byte] & mask) != 0;
        lines[current].touched[byte] |= mask;
      }
      at = end;
    }
  for (uint32_t i = 0; i < line_count; ++i)
    for (uint32_t set = 1; set <= whole_dword; ++set) {
      uint64_t dwords = ~uint64_t(0);
      for (uint32_t byte = 0; byte < 4; ++byte)
        dwords &= (set >> byte & 1) != 0 ? lines[i].touched[byte] : ~lines[i].touched[byte];
      if (dwords != 0) list[count++] = {lines[i].line, dwords, set};
    }
}

uint32_t Footprint::lane_of(const LinePart &part) const {
  auto lane = uint32_t(std::countr_zero(lanes));
  all_bytes(part, [&](uint32_t first, uint32_t, uint64_t) {
    lane = first;
    return false;
  });
  return lane;
}

} // namespace sluice::emulator

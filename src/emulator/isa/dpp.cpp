//===- dpp.cpp - which lanes a DPP instruction reads and writes -----------------------------------------===//
#include "emulator/isa/dpp.h"

#include <vector>

namespace sluice::emulator {

namespace {

/// The lane that lane `i` reads under a DPP control; -1 if it reads no lane.
int32_t dpp_source(uint32_t control, int32_t i) {
  const int32_t row = i & ~15;
  const int32_t at = i & 15;
  const int32_t n = int32_t(control & 15);
  if (control < 0x100) return (i & ~3) | int32_t(control >> 2 * (i & 3) & 3);
  if (control <= 0x10f) return at + n < 16 ? i + n : -1;
  if (control <= 0x11f) return at - n >= 0 ? i - n : -1;
  if (control <= 0x12f) return row | ((at - n) & 15);
  if (control >= 0x150 && control <= 0x15f) return row | n;
  switch (control) {
  case 0x130:
    return i + 1 < 64 ? i + 1 : -1;
  case 0x134:
    return (i + 1) & 63;
  case 0x138:
    return i - 1;
  case 0x13c:
    return (i - 1) & 63;
  case 0x140:
    return row | (15 - at);
  case 0x141:
    return row | (at & 8) | (7 - (at & 7));
  case 0x142:
    return row == 0 ? -1 : row - 1;
  case 0x143:
    return i < 32 ? -1 : 31;
  default:
    return -1;
  }
}

} // namespace

const DppPattern &dpp_pattern(uint32_t control) {
  static const std::vector<DppPattern> patterns = [] {
    std::vector<DppPattern> all(512);
    for (uint32_t code = 0; code < all.size(); ++code)
      for (int32_t i = 0; i < 64; ++i) {
        const int32_t source = dpp_source(code, i);
        all[code].source[i] = uint8_t(source >= 0 ? source : 0);
        all[code].has_source |= uint64_t(source >= 0) << i;
      }
    return all;
  }();
  return patterns[control];
}

uint64_t dpp_lanes(const DppControl &dpp) {
  uint64_t row = 0;
  for (uint32_t bank = 0; bank < 4; ++bank)
    row |= uint64_t((dpp.bank_mask >> bank & 1) != 0 ? 15 : 0) << 4 * bank;
  uint64_t lanes = 0;
  for (uint32_t r = 0; r < 4; ++r)
    lanes |= ((dpp.row_mask >> r & 1) != 0 ? row : 0) << 16 * r;
  return lanes;
}

uint64_t dpp_lanes_with_source(const DppPattern &pattern, uint64_t exec) {
  uint64_t lanes = pattern.has_source;
  if (exec == all_lanes) return lanes;
  for (uint32_t i = 0; i < wave_lanes; ++i)
    lanes &= ~(uint64_t((exec >> pattern.source[i] & 1) == 0) << i);
  return lanes;
}

} // namespace sluice::emulator

//===- divisor.h - divisions as multiplications ---------------------------------------------------------===//
//
// n / d for 0 <= n < 2^(bits - 1) and 1 <= d < 2^(bits - 1) is the upper half of 2n * magic, shifted right by
// `shift`: with shift = ceil(log2 d), magic = ceil(2^(bits - 1 + shift) / d) fits `bits` bits, and exceeds
// the exact value by less than d <= 2^shift in 2^(bits - 1 + shift), which times n is less than 1/d (Granlund
// and Montgomery 1994). Kernels divide by numbers that the host knows.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include <bit>
#include <cstdint>

namespace sluice::support {

__extension__ typedef unsigned __int128 Uint128;

template <typename Word, typename Wide> struct Divisor {
  Word magic = 0;
  uint32_t shift = 0;

  constexpr explicit Divisor(Word d) {
    shift = uint32_t(std::bit_width(Word(d - 1)));
    const Wide power = Wide{1} << (bits - 1 + shift);
    magic = Word((power + d - 1) / d);
  }

  static constexpr uint32_t bits = sizeof(Word) * 8;
};

using Divisor32 = Divisor<uint32_t, uint64_t>;
using Divisor64 = Divisor<uint64_t, Uint128>;

} // namespace sluice::support

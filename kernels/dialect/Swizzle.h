//===- Swizzle.h - the column at which an element of an LDS tile is stored --------------------*- C++ -*-===//
//
// LDS has `banks` banks of four bytes, and lanes that read the same column of neighbouring rows would all use
// the same few. The swizzle permutes the chunks of each row by an amount that depends on the row:
//
//   stored chunk = logical chunk XOR (row / rowsPerPhase) % period
//
// It is a bijection of each row onto itself, and its own inverse: a reader applies it to the LDS address, and
// a direct-to-LDS copy, which cannot scatter in LDS, to the global address instead.
//
// The policy does not depend on storage: it maps (row, column) to a column. Its arithmetic is written once,
// over any `Arithmetic`; hosts evaluate it with HostArithmetic, passes build it as operations
// (sluice::swizzleColumn).
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include <bit>
#include <cstdint>
#include <numeric>

namespace sluice {

/// Unsigned numbers of the host.
struct HostArithmetic {
  using Number = uint32_t;
  constexpr Number shiftRight(Number a, unsigned bits) const { return a >> bits; }
  constexpr Number shiftLeft(Number a, unsigned bits) const { return a << bits; }
  constexpr Number mask(Number a, uint32_t bits) const { return a & bits; }
  constexpr Number flip(Number a, Number b) const { return a ^ b; }
  constexpr Number add(Number a, Number b) const { return a + b; }
};

struct XorSwizzle {
  unsigned chunk = 0;        // columns that stay together; 0 is the identity
  unsigned period = 0;       // phases
  unsigned rowsPerPhase = 1; // consecutive rows of one phase; all three are powers of two

  constexpr bool isIdentity() const { return chunk == 0; }

  /// The column that stores element (row, column); also the logical column of the element stored there.
  template <typename Arithmetic>
  constexpr typename Arithmetic::Number column(Arithmetic &&arithmetic, typename Arithmetic::Number row,
                                               typename Arithmetic::Number column) const {
    if (isIdentity()) return column;
    auto phase = arithmetic.mask(arithmetic.shiftRight(row, std::countr_zero(rowsPerPhase)), period - 1);
    return arithmetic.flip(column, arithmetic.shiftLeft(phase, std::countr_zero(chunk)));
  }

  constexpr uint32_t column(uint32_t row, uint32_t logical) const {
    return column(HostArithmetic(), row, logical);
  }

  /// The swizzle with which any line / readBytes consecutive rows hold one column in different banks, where a
  /// line is what all banks deliver in one cycle: lanes that each read `readBytes` at one column of these
  /// rows do not conflict. Rows whose pitch already moves them to other banks share a phase; the phases
  /// permute the rest. The identity if the pitch suffices.
  static constexpr XorSwizzle forColumnReads(unsigned columns, unsigned elementBytes, unsigned readBytes,
                                             unsigned banks) {
    const unsigned line = banks * 4;
    const unsigned aligned = std::gcd(columns * elementBytes, line); // where rows begin, modulo a line
    if (aligned <= readBytes) return {};
    return {readBytes / elementBytes, aligned / readBytes, line / aligned};
  }
};

} // namespace sluice

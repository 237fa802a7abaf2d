//===- divisor_test.cpp - numbers that turn a division into a multiplication ----------------------------===//
#include "support/divisor.h"

#include <catch2/catch.hpp>

#include <vector>

using sluice::support::Divisor32;
using sluice::support::Divisor64;

namespace {

/// The division of the kernels.
uint32_t quotient(uint32_t n, Divisor32 by) {
  return uint32_t((uint64_t{n << 1} * by.magic) >> 32) >> by.shift;
}
uint64_t quotient(uint64_t n, Divisor64 by) {
  return uint64_t((sluice::support::Uint128{n << 1} * by.magic) >> 64) >> by.shift;
}

/// Numbers around powers of two, thirds and multiples of d, below `end`.
template <typename Word> std::vector<Word> interesting(Word d, Word end) {
  std::vector<Word> numbers = {0, 1, 2, Word(end - 1), Word(end - 2), Word(end / 3), Word(end / d * d - 1)};
  for (Word power = 1; power < end && power != 0; power = Word(power << 1)) {
    for (const Word n :
         {Word(power - 1), power, Word(power + 1), Word(power / d * d), Word(power / d * d - 1)})
      numbers.push_back(n);
  }
  std::erase_if(numbers, [&](Word n) { return n >= end; });
  return numbers;
}

} // namespace

TEST_CASE("divisions by multiplication are exact", "[divisor]") {
  constexpr uint32_t end32 = uint32_t{1} << 31;
  constexpr uint64_t end64 = uint64_t{1} << 63;
  int wrong = 0;
  const auto check = [&](uint32_t d) {
    for (const uint32_t n : interesting(d, end32))
      wrong += quotient(n, Divisor32(d)) != n / d;
    for (const uint64_t n : interesting(uint64_t{d}, end64))
      wrong += quotient(n, Divisor64(d)) != n / d;
  };
  for (uint32_t d = 1; d < 3000; ++d)
    check(d);
  for (uint32_t power = 1; power < end32; power <<= 1) {
    for (const uint32_t d : {power, power + 1, power | (power >> 1), power | (power >> 2)})
      check(d);
    if (power > 1) check(power - 1);
  }
  check(end32 - 1);
  CHECK(wrong == 0);
  // All dividends up to a bound, for small divisors.
  for (const uint32_t d : {1u, 3u, 7u, 10u, 641u})
    for (uint32_t n = 0; n < 200000; ++n)
      wrong += quotient(n, Divisor32(d)) != n / d;
  CHECK(wrong == 0);
}

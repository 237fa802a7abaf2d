//===- atomics.cpp - what atomics compute ---------------------------------------------------------------===//
//
// Floating-point atomics round to nearest even, regardless of MODE. For their NaN rules, the value in memory
// is the first operand.
//
//===----------------------------------------------------------------------------------------------------===//
#include <algorithm>
#include <bit>
#include <type_traits>

#include "emulator/exec/memory/memory_routines.h"
#include "support/half.h"

namespace sluice::emulator {

namespace {

//===--- Floating-point numbers as bits -----------------------------------------------------------------===//

template <class Bits, uint32_t mantissa_bits> struct FloatBits {
  using Type = Bits;
  static constexpr Bits sign = Bits(Bits(1) << (8 * sizeof(Bits) - 1));
  static constexpr Bits hidden = Bits(Bits(1) << mantissa_bits);
  static constexpr Bits quiet = Bits(hidden >> 1);
  static constexpr Bits infinity = Bits(Bits(~sign) & Bits(~Bits(hidden - 1)));

  static Bits magnitude(Bits x) { return Bits(x & Bits(~sign)); }
  static bool is_nan(Bits x) { return magnitude(x) > infinity; }
  static bool is_signaling(Bits x) { return is_nan(x) && (x & quiet) == 0; }
  static Bits flush(Bits x) { return magnitude(x) < hidden ? Bits(x & sign) : x; }
  /// Orders all numbers, -0 below +0.
  static std::make_signed_t<Bits> order(Bits x) {
    return std::make_signed_t<Bits>((x & sign) != 0 ? Bits(~magnitude(x)) : x);
  }
};

struct F16 : FloatBits<uint16_t, 10> {
  static Type sum(Type a, Type b) {
    return support::f16_from_float(support::f16_to_float(a) + support::f16_to_float(b));
  }
};
struct Bf16 : FloatBits<uint16_t, 7> {
  static Type sum(Type a, Type b) {
    return support::bf16_from_float(support::bf16_to_float(a) + support::bf16_to_float(b));
  }
};
struct F32 : FloatBits<uint32_t, 23> {
  static Type sum(Type a, Type b) {
    return std::bit_cast<Type>(std::bit_cast<float>(a) + std::bit_cast<float>(b));
  }
};
struct F64 : FloatBits<uint64_t, 52> {
  static Type sum(Type a, Type b) {
    return std::bit_cast<Type>(std::bit_cast<double>(a) + std::bit_cast<double>(b));
  }
};

template <class F> typename F::Type add_one(typename F::Type a, typename F::Type b, uint32_t denormals) {
  using Type = typename F::Type;
  if ((denormals & 1) == 0) {
    a = F::flush(a);
    b = F::flush(b);
  }
  if (F::is_nan(a)) return Type(a | F::quiet);
  if (F::is_nan(b)) return Type(b | F::quiet);
  const Type result = F::sum(a, b);
  if (F::is_nan(result)) return Type(F::infinity | F::quiet);
  return (denormals & 2) == 0 ? F::flush(result) : result;
}

template <class F> uint64_t add_floats(uint64_t old, uint64_t operand, uint64_t, uint32_t denormals) {
  using Type = typename F::Type;
  return add_one<F>(Type(old), Type(operand), denormals);
}

template <class F> uint64_t add_halves(uint64_t old, uint64_t operand, uint64_t, uint32_t denormals) {
  const uint32_t low = add_one<F>(uint16_t(old), uint16_t(operand), denormals);
  const uint32_t high = add_one<F>(uint16_t(old >> 16), uint16_t(operand >> 16), denormals);
  return low | high << 16;
}

/// Denormals are flushed only for the comparison: the result is one of the two unchanged.
template <class F, bool greater>
uint64_t select_float(uint64_t old, uint64_t operand, uint64_t, uint32_t denormals) {
  using Type = typename F::Type;
  const Type a = Type(old);
  const Type b = Type(operand);
  if (F::is_signaling(a)) return Type(a | F::quiet);
  if (F::is_signaling(b)) return Type(b | F::quiet);
  if (F::is_nan(a)) return b;
  if (F::is_nan(b)) return a;
  const auto order = [&](Type x) { return F::order((denormals & 1) == 0 ? F::flush(x) : x); };
  return (greater ? order(b) > order(a) : order(b) < order(a)) ? b : a;
}

template <class F>
uint64_t compare_store_float(uint64_t old, uint64_t operand, uint64_t compare, uint32_t denormals) {
  using Type = typename F::Type;
  const auto flushed = [&](uint64_t x) { return (denormals & 1) == 0 ? F::flush(Type(x)) : Type(x); };
  const Type a = flushed(old);
  const Type c = flushed(compare);
  const bool zeros = F::magnitude(a) == 0 && F::magnitude(c) == 0;
  return !F::is_nan(a) && (a == c || zeros) ? flushed(operand) : Type(old);
}

//===--- The table --------------------------------------------------------------------------------------===//

struct Row {
  AtomicOperation operation;
  uint8_t bytes; // 0: any
  AtomicRule rule;
};

using U = uint64_t;
using D = uint32_t;
using enum AtomicOperation;
using enum DenormalRule;

// The bodies for any width work on 64 bits; the store truncates to the width.
const Row table[] = {
    {swap, 0, {[](U, U b, U, D) { return b; }}},
    {compare_swap, 0, {[](U a, U b, U c, D) { return a == c ? b : a; }, true}},
    {add, 0, {[](U a, U b, U, D) { return a + b; }}},
    {subtract, 0, {[](U a, U b, U, D) { return a - b; }}},
    {subtract_from_operand, 0, {[](U a, U b, U, D) { return b - a; }}},
    {bit_and, 0, {[](U a, U b, U, D) { return a & b; }}},
    {bit_or, 0, {[](U a, U b, U, D) { return a | b; }}},
    {bit_xor, 0, {[](U a, U b, U, D) { return a ^ b; }}},
    {unsigned_min, 0, {[](U a, U b, U, D) { return std::min(a, b); }}},
    {unsigned_max, 0, {[](U a, U b, U, D) { return std::max(a, b); }}},
    {signed_min, 4, {[](U a, U b, U, D) { return U(std::min(int32_t(a), int32_t(b))); }}},
    {signed_max, 4, {[](U a, U b, U, D) { return U(std::max(int32_t(a), int32_t(b))); }}},
    {signed_min, 8, {[](U a, U b, U, D) { return U(std::min(int64_t(a), int64_t(b))); }}},
    {signed_max, 8, {[](U a, U b, U, D) { return U(std::max(int64_t(a), int64_t(b))); }}},
    // counts up to the operand, then starts again at 0; and down
    {increment, 0, {[](U a, U b, U, D) { return a >= b ? 0 : a + 1; }}},
    {decrement, 0, {[](U a, U b, U, D) { return a == 0 || a > b ? b : a - 1; }}},
    // LDS only: bits of the second operand are replaced; a ring of the second operand's length
    {replace_bits, 0, {[](U a, U b, U mask, D) { return (a & ~mask) | b; }, true}},
    {wrap, 4, {[](U a, U b, U length, D) { return a >= length ? a - length : a + b; }, true}},
    // LDS only: each half is replaced if the operand's half has its highest bit set; that bit is not stored
    {exchange_halves, 8, {[](U a, U b, U, D) {
       constexpr U low = 0x7fffffff;
       return ((b >> 31 & 1) != 0 ? b & low : a & 0xffffffff) |
              ((b >> 63 & 1) != 0 ? b & low << 32 : a & ~U(0xffffffff));
     }}},
    {add_float, 4, {add_floats<F32>, false, flush, mode_32}},
    {min_float, 4, {select_float<F32, false>, false, keep, mode_32}},
    {max_float, 4, {select_float<F32, true>, false, keep, mode_32}},
    {compare_swap_float, 4, {compare_store_float<F32>, true, keep, mode_32}},
    {add_float, 8, {add_floats<F64>}},
    {min_float, 8, {select_float<F64, false>, false, keep, mode_16_64}},
    {max_float, 8, {select_float<F64, true>, false, keep, mode_16_64}},
    {compare_swap_float, 8, {compare_store_float<F64>, true, keep, mode_16_64}},
    {add_f16_pair, 4, {add_halves<F16>, false, keep, mode_16_64}},
    {add_bf16_pair, 4, {add_halves<Bf16>, false, keep, mode_16_64}},
};

} // namespace

const AtomicRule &atomic_rule(const DataFacts &data) {
  const Row *row = table;
  while (row->operation != data.operation || (row->bytes != 0 && row->bytes != data.bytes))
    ++row;
  return row->rule;
}

uint32_t kept_denormals(const FloatMode &mode, DenormalRule rule) {
  switch (rule) {
  case DenormalRule::keep:
    return 3;
  case DenormalRule::flush:
    return 0;
  case DenormalRule::mode_32:
    return mode.denormal_32;
  default:
    return mode.denormal_16_64;
  }
}

} // namespace sluice::emulator

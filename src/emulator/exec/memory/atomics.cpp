//===- atomics.cpp - what atomics compute ---------------------------------------------------------------===//
//
// Floating-point atomics round to nearest even, regardless of MODE. For their NaN rules, the value in memory
// is the first operand.
//
//===----------------------------------------------------------------------------------------------------===//
#include <algorithm>
#include <bit>
#include <type_traits>

#include "emulator/exec/memory/memory_rows.h"
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

template <class F> uint64_t add_float(uint64_t old, uint64_t operand, uint64_t, uint32_t denormals) {
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
  std::string_view name;
  AtomicBody body;
  uint8_t bytes = 0;
  bool second = false;
  DenormalRule memory_denormals = DenormalRule::keep;
  DenormalRule lds_denormals = DenormalRule::keep;
};

using U = uint64_t;
using D = uint32_t;
using enum DenormalRule;

// Integer operations come in 32 and 64 bits ("_x2"). The body works on 64; the store truncates to the width.
const Row table[] = {
    {"swap", [](U, U b, U, D) { return b; }},
    {"cmpswap", [](U a, U b, U c, D) { return a == c ? b : a; }, 0, true},
    {"add", [](U a, U b, U, D) { return a + b; }},
    {"sub", [](U a, U b, U, D) { return a - b; }},
    {"rsub", [](U a, U b, U, D) { return b - a; }},
    {"and", [](U a, U b, U, D) { return a & b; }},
    {"or", [](U a, U b, U, D) { return a | b; }},
    {"xor", [](U a, U b, U, D) { return a ^ b; }},
    {"umin", [](U a, U b, U, D) { return std::min(a, b); }},
    {"umax", [](U a, U b, U, D) { return std::max(a, b); }},
    {"smin", [](U a, U b, U, D) { return U(std::min(int32_t(a), int32_t(b))); }, 4},
    {"smax", [](U a, U b, U, D) { return U(std::max(int32_t(a), int32_t(b))); }, 4},
    {"smin_x2", [](U a, U b, U, D) { return U(std::min(int64_t(a), int64_t(b))); }, 8},
    {"smax_x2", [](U a, U b, U, D) { return U(std::max(int64_t(a), int64_t(b))); }, 8},
    // counts up to the operand, then starts again at 0; and down
    {"inc", [](U a, U b, U, D) { return a >= b ? 0 : a + 1; }},
    {"dec", [](U a, U b, U, D) { return a == 0 || a > b ? b : a - 1; }},
    // LDS only: bits of the second operand are replaced; a ring of the second operand's length
    {"mskor", [](U a, U b, U mask, D) { return (a & ~mask) | b; }, 0, true},
    {"wrap", [](U a, U b, U length, D) { return a >= length ? a - length : a + b; }, 4, true},
    // LDS only: each half is replaced if the operand's half has its highest bit set; that bit is not stored
    {"condxchg32_x2",
     [](U a, U b, U, D) {
       constexpr U low = 0x7fffffff;
       return ((b >> 31 & 1) != 0 ? b & low : a & 0xffffffff) |
              ((b >> 63 & 1) != 0 ? b & low << 32 : a & ~U(0xffffffff));
     },
     8},
    {"add_f32", add_float<F32>, 4, false, flush, mode_32},
    {"min_f32", select_float<F32, false>, 4, false, keep, mode_32},
    {"max_f32", select_float<F32, true>, 4, false, keep, mode_32},
    {"cmpswap_f32", compare_store_float<F32>, 4, true, keep, mode_32},
    {"add_f64", add_float<F64>, 8, false, keep, keep},
    {"min_f64", select_float<F64, false>, 8, false, keep, mode_16_64},
    {"max_f64", select_float<F64, true>, 8, false, keep, mode_16_64},
    {"cmpswap_f64", compare_store_float<F64>, 8, true, keep, mode_16_64},
    {"pk_add_f16", add_halves<F16>, 4, false, keep, mode_16_64},
    {"pk_add_bf16", add_halves<Bf16>, 4, false, keep, mode_16_64},
};

AtomicOperation operation_of(const Row &row, uint8_t bytes) {
  return {row.body, bytes, row.second, row.memory_denormals, row.lds_denormals};
}

} // namespace

std::optional<AtomicOperation> memory_atomic(std::string_view operation) {
  for (const Row &row : table)
    if (row.name == operation) return operation_of(row, row.bytes == 0 ? 4 : row.bytes);
  if (!operation.ends_with("_x2")) return std::nullopt;
  for (const Row &row : table)
    if (row.bytes == 0 && row.name == operation.substr(0, operation.size() - 3)) return operation_of(row, 8);
  return std::nullopt;
}

void set_atomic(MemoryRow &row, const AtomicOperation &operation) {
  row.kind = MemoryKind::atomic;
  row.atomic = operation.body;
  row.control.bytes = operation.bytes;
  row.control.dwords = operation.bytes / 4;
  row.control.parts = 1;
  row.control.second = operation.second;
  row.control.memory_denormals = operation.memory_denormals;
  row.control.lds_denormals = operation.lds_denormals;
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

//===- checked.h - arithmetic that notices when it wraps ------------------------------------------------===//
#pragma once

#include <cstdint>
#include <optional>

namespace sluice::support {

template <typename Integer> std::optional<Integer> checked_add(Integer a, Integer b) {
  Integer result;
  if (__builtin_add_overflow(a, b, &result)) return std::nullopt;
  return result;
}

template <typename Integer> std::optional<Integer> checked_multiply(Integer a, Integer b) {
  Integer result;
  if (__builtin_mul_overflow(a, b, &result)) return std::nullopt;
  return result;
}

/// a / b rounded up, for a >= 0 and b > 0; does not wrap.
template <typename Integer> constexpr Integer divide_up(Integer a, Integer b) {
  return a / b + (a % b != 0 ? 1 : 0);
}

} // namespace sluice::support

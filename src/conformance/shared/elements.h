//===- elements.h - numbers as the elements of a buffer -------------------------------------------------===//
#pragma once

#include "conformance/shared/numbers.h"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

namespace sluice::conformance {

/// fp8 and bf8: E4M3FNUZ, E5M2FNUZ. Buffers have u4 in halves of bytes; q8_0 and q4_0 are only names of what
/// consists of others.
enum class Element : uint8_t { f16, bf16, f32, fp8, bf8, i8, u4, q8_0, q4_0 };

inline size_t bytes_of(Element element) {
  return element == Element::f32 ? 4 : element >= Element::fp8 ? 1 : 2;
}

inline double load(Element element, const std::byte *buffer, int64_t index) {
  if (element == Element::u4) return int(buffer[index / 2]) >> (index % 2 * 4) & 15;
  const std::byte *const from = buffer + size_t(index) * bytes_of(element);
  switch (element) {
  case Element::f16:
  case Element::bf16: {
    uint16_t bits;
    std::memcpy(&bits, from, sizeof bits);
    return decode(element == Element::f16 ? f16_format : bf16_format, bits);
  }
  case Element::f32: {
    float number;
    std::memcpy(&number, from, sizeof number);
    return number;
  }
  case Element::fp8:
    return decode_fp8(uint8_t(*from));
  case Element::bf8:
    return decode_fnuz<2>(uint8_t(*from));
  case Element::i8:
    return int8_t(*from);
  case Element::u4:
  case Element::q8_0:
  case Element::q4_0:
    break;
  }
  __builtin_unreachable();
}

inline void store(std::vector<std::byte> &buffer, Element element, int64_t index, double value) {
  if (element == Element::u4) {
    const int shift = index % 2 * 4;
    std::byte &both = buffer[size_t(index) / 2];
    both = (both & std::byte(0xf0 >> shift)) |
           std::byte(int(std::nearbyint(std::clamp(value, 0.0, 15.0))) << shift);
    return;
  }
  std::byte *const to = &buffer[size_t(index) * bytes_of(element)];
  switch (element) {
  case Element::f16:
  case Element::bf16: {
    const uint16_t bits = encode(element == Element::f16 ? f16_format : bf16_format, value);
    std::memcpy(to, &bits, sizeof bits);
    return;
  }
  case Element::f32: {
    const auto number = float(value);
    std::memcpy(to, &number, sizeof number);
    return;
  }
  case Element::fp8:
    *to = std::byte(encode_fp8(value));
    return;
  case Element::bf8:
    *to = std::byte(encode_fnuz<2>(value));
    return;
  case Element::i8:
    *to = std::byte(encode_i8(value));
    return;
  case Element::u4:
  case Element::q8_0:
  case Element::q4_0:
    break;
  }
  __builtin_unreachable();
}

/// The value that an element holds after a store.
inline double as_stored(Element element, double value) {
  if (element == Element::u4) return std::nearbyint(std::clamp(value, 0.0, 15.0));
  std::vector<std::byte> one(bytes_of(element));
  store(one, element, 0, value);
  return load(element, one.data(), 0);
}

/// Adds a buffer with these values, typed as an engine's arrays are, and returns its number.
template <typename Number, typename Values>
int add_array(std::vector<std::vector<std::byte>> &buffers, const Values &values) {
  std::vector<std::byte> &buffer = buffers.emplace_back(values.size() * sizeof(Number));
  for (size_t i = 0; i < values.size(); ++i) {
    const auto number = Number(values[i]);
    std::memcpy(&buffer[i * sizeof number], &number, sizeof number);
  }
  return int(buffers.size()) - 1;
}

} // namespace sluice::conformance

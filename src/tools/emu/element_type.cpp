//===- element_type.cpp - the element types of a buffer -------------------------------------------------===//
#include "tools/emu/element_type.h"

#include "support/fp8.h"
#include "support/half.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fmt/format.h>
#include <vector>

namespace sluice::tools::emu {

namespace {

/// splitmix64
uint64_t next_random(uint64_t &state) {
  uint64_t z = state += 0x9e3779b97f4a7c15;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
  z = (z ^ z >> 27) * 0x94d049bb133111eb;
  return z ^ z >> 31;
}

/// A number in [-1, 1), a multiple of 2^-10: f16 represents these exactly, too.
double unit_number(uint64_t random) {
  return double(random >> 53) / 1024 - 1;
}

template <typename T, typename Convert>
void fill_elements(std::span<std::byte> memory, uint64_t seed, Convert convert) {
  for (size_t at = 0; at < memory.size(); at += sizeof(T)) {
    const T element = convert(next_random(seed));
    std::memcpy(&memory[at], &element, sizeof element);
  }
}

/// The numbers of an 8-bit type, as targets of rounding.
class SmallNumbers {
public:
  explicit SmallNumbers(float (*widen)(uint8_t)) {
    for (unsigned bits = 0; bits < 256; ++bits) {
      const float value = widen(uint8_t(bits));
      if (std::isfinite(value) && !(value == 0 && bits != 0)) numbers.push_back({value, uint8_t(bits)});
    }
    std::sort(numbers.begin(), numbers.end(), [](Number a, Number b) { return a.value < b.value; });
  }

  /// Rounds to nearest, ties to even; `value` is between two numbers of the type.
  uint8_t round(double value) const {
    const auto above = std::lower_bound(numbers.begin(), numbers.end(), value,
                                        [](Number number, double wanted) { return number.value < wanted; });
    if (above == numbers.begin() || above->value == value) return above->bits;
    const auto below = std::prev(above);
    const double up = above->value - value, down = value - below->value;
    return up < down || (up == down && above->bits % 2 == 0) ? above->bits : below->bits;
  }

private:
  struct Number {
    float value;
    uint8_t bits;
  };
  std::vector<Number> numbers; // sorted
};

template <float (*widen)(uint8_t)> void fill_small(std::span<std::byte> memory, uint64_t seed) {
  const SmallNumbers numbers(widen);
  fill_elements<uint8_t>(memory, seed, [&](uint64_t bits) { return numbers.round(unit_number(bits)); });
}

template <uint16_t (*narrow)(double)> void fill_half(std::span<std::byte> memory, uint64_t seed) {
  fill_elements<uint16_t>(memory, seed, [](uint64_t bits) { return narrow(unit_number(bits)); });
}

template <typename T> void fill_floating(std::span<std::byte> memory, uint64_t seed) {
  fill_elements<T>(memory, seed, [](uint64_t bits) { return T(unit_number(bits)); });
}

void fill_boolean(std::span<std::byte> memory, uint64_t seed) {
  fill_elements<uint8_t>(memory, seed, [](uint64_t bits) { return uint8_t(bits >> 63); });
}

void fill_bits(std::span<std::byte> memory, uint64_t seed) {
  fill_elements<uint8_t>(memory, seed, [](uint64_t bits) { return uint8_t(bits >> 56); });
}

constexpr ElementType element_types[] = {
    {"bool", NpyType::boolean, fill_boolean},
    {"i8", NpyType::i8, fill_bits},
    {"u8", NpyType::u8, fill_bits},
    {"i16", NpyType::i16, fill_bits},
    {"u16", NpyType::u16, fill_bits},
    {"i32", NpyType::i32, fill_bits},
    {"u32", NpyType::u32, fill_bits},
    {"i64", NpyType::i64, fill_bits},
    {"u64", NpyType::u64, fill_bits},
    {"f16", NpyType::f16, fill_half<support::f16_from_double>},
    {"bf16", NpyType::u16, fill_half<support::bf16_from_double>},
    {"f32", NpyType::f32, fill_floating<float>},
    {"f64", NpyType::f64, fill_floating<double>},
    {"e4m3fnuz", NpyType::u8, fill_small<support::e4m3fnuz_to_float>},
    {"e5m2fnuz", NpyType::u8, fill_small<support::e5m2fnuz_to_float>},
    {"e4m3fn", NpyType::u8, fill_small<support::e4m3fn_to_float>},
    {"e5m2", NpyType::u8, fill_small<support::e5m2_to_float>},
};

} // namespace

const ElementType *element_type_by_keyword(std::string_view keyword) {
  const auto *const found = std::ranges::find(element_types, keyword, &ElementType::keyword);
  return found == std::end(element_types) ? nullptr : found;
}

std::string element_type_keywords() {
  std::string all;
  for (const ElementType &type : element_types)
    all += fmt::format("{}{}", all.empty() ? "" : ", ", type.keyword);
  return all;
}

} // namespace sluice::tools::emu

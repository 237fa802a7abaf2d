//===- blocks.cpp - caches in blocks of elements with a common scale ------------------------------------===//
#include "conformance/attention/blocks.h"

#include "conformance/shared/case_random.h"
#include "conformance/shared/numbers.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>

namespace sluice::conformance {

namespace {
constexpr double infinity = std::numeric_limits<double>::infinity();
} // namespace

Group Groups::of(int64_t key, int head, int group) const {
  // Sequences that share keys share their scales.
  const int64_t own = c.layout == Layout::broadcast ? key % c.kv_len : key;
  Random random = random_of(c, (is_v ? " v group " : " k group ") + std::to_string(own) + " " +
                                   std::to_string(head) + " " + std::to_string(group));
  const auto in_f16 = [](double value) { return decode(f16_format, encode(f16_format, value)); };
  // Normal numbers reach as far as the largest of the group.
  const double reach = 2.5 + random.uniform();
  double scale = in_f16(reach / (c.cache == Cache::q8_0 ? 127 : 7));
  double zero = c.cache == Cache::q8_0       ? 0
                : c.cache == Cache::u4_zeros ? in_f16(6 + 3 * random.uniform())
                                             : 8;
  // ggml's scales have either sign.
  if (c.cache == Cache::q4_0 && random.below(2) == 0) scale = -scale;
  if (c.pattern == (is_v ? Pattern::nan_value : Pattern::nan_key) && random.below(40) == 0) {
    // An infinite scale of K may make a score NaN or infinite, and one of V an FP8 result NaN or the largest.
    const double wrong = is_v && !c.o_fp8 && random.below(2) == 0 ? infinity : std::nan("");
    (c.cache == Cache::u4_zeros && random.below(2) == 0 ? zero : scale) = wrong;
  }
  return {scale, zero};
}

double Groups::nearest(const Group &group, double value) const {
  const double number = std::nearbyint(value / group.scale + group.subtracted);
  return group.scale * (std::clamp(number, double(least()), double(most())) - group.subtracted);
}

int Groups::number_of(const Group &group, double value) const {
  if (!std::isfinite(value)) return most();
  return int(std::nearbyint(value / group.scale + group.subtracted));
}

void store_in_block(const Case &c, std::vector<std::byte> &buffer, int64_t index, int number, double scale) {
  if (has_group_arrays(c)) {
    std::byte &byte = buffer[size_t(index / 2)];
    const int shift = index % 2 == 0 ? 0 : 4;
    byte = (byte & ~(std::byte(15) << shift)) | std::byte(number) << shift;
    return;
  }
  std::byte *const block = &buffer[block_bytes(c, index / 32 * 32)];
  const uint16_t bits = encode(f16_format, scale);
  std::memcpy(block, &bits, sizeof bits);
  const auto place = size_t(index % 32);
  if (c.cache == Cache::q8_0) {
    block[2 + place] = std::byte(int8_t(number));
    return;
  }
  std::byte &byte = block[2 + place % 16];
  const int shift = place < 16 ? 0 : 4;
  byte = (byte & ~(std::byte(15) << shift)) | std::byte(number) << shift;
}

} // namespace sluice::conformance

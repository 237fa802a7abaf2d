//===- numbers.cpp - BF16, test data, and how far two right results may be apart ------------------------===//

#include "numbers.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace parallel {

namespace {

uint16_t to_bf16(float number) {
  const uint32_t bits = std::bit_cast<uint32_t>(number);
  return uint16_t((bits + 0x7fff + (bits >> 16 & 1)) >> 16); // to nearest even; NaN does not occur
}

/// Sums of four even numbers, which are nearly normal.
class Noise {
public:
  explicit Noise(uint64_t seed) : state(seed * 2 + 1) {}
  double next() {
    double sum = 0;
    for (int i = 0; i < 4; ++i) {
      state = state * 6364136223846793005 + 1442695040888963407;
      sum += double(state >> 40) * 0x1p-23 - 1;
    }
    return sum * std::sqrt(0.75);
  }

private:
  uint64_t state;
};

double largest_norm(const std::vector<uint16_t> &rows, int64_t dim) {
  double largest = 0;
  for (size_t row = 0; row < rows.size(); row += size_t(dim)) {
    double sum = 0;
    for (size_t i = row; i < row + size_t(dim); ++i)
      sum += from_bf16(rows[i]) * from_bf16(rows[i]);
    largest = std::max(largest, sum);
  }
  return std::sqrt(largest);
}

} // namespace

double from_bf16(uint16_t number) {
  return std::bit_cast<float>(uint32_t(number) << 16);
}

std::vector<uint16_t> sample(int64_t tokens, int64_t heads, int64_t dim, uint64_t seed, Course factor,
                             Course offset) {
  Noise noise(seed);
  std::vector<uint16_t> numbers;
  numbers.reserve(size_t(tokens * heads * dim));
  for (int64_t token = 0; token < tokens; ++token) {
    const double place = double(token) / double(tokens);
    const double times = std::lerp(factor.first, factor.last, place);
    const double plus = std::lerp(offset.first, offset.last, place);
    for (int64_t i = 0; i < heads * dim; ++i)
      numbers.push_back(to_bf16(float(noise.next() * times + plus)));
  }
  return numbers;
}

Sizes sizes_of(const std::vector<uint16_t> &q, const std::vector<uint16_t> &k, const std::vector<uint16_t> &v,
               int64_t keys, int64_t dim, int merges) {
  double most_value = 0;
  for (uint16_t number : v)
    most_value = std::max(most_value, std::fabs(from_bf16(number)));
  return {keys, dim, largest_norm(q, dim) * largest_norm(k, dim) / std::sqrt(double(dim)), most_value,
          merges};
}

double tolerance(const Sizes &sizes) {
  // The letters of docs/concepts/numerics.md, with W and |O| at their largest, which is most_value.
  constexpr double u = 0x1p-24, p = 0.653 * 0x1p-7, r = 0x1p-8;
  const double n = double(sizes.keys), d = double(sizes.dim), x = sizes.most_score, t = std::ceil(n / 16);
  const double score = u * (x * (8 + 3 * d / 8) + 10 * x);
  const double weight = score + u * (2 + t * (3 + 4 * x));
  const double sum = weight + u * (n + 2);
  const double split = u * (11 * (x + std::log(n)) + 10 + 32 * std::log(2) + 2 * t);
  const double e = sizes.most_value * (p + weight + u * (8 + 3 * t * 2) + split + sum + 3 * u);
  const double one = e + r * (sizes.most_value + e);
  // The weights of parts come from their LSEs, and are rounded in the merge.
  const double lse = sum + split + u * (5 * (x + std::log(n)) + 26);
  const double merge = sizes.merges * 2 * (lse + u * (18 + 8 * (x + std::log(n)))) * sizes.most_value;
  return 2 * one + merge;
}

double difference(const std::vector<uint16_t> &left, const std::vector<uint16_t> &right) {
  double largest = 0;
  for (size_t i = 0; i < left.size(); ++i) {
    const double between = std::fabs(from_bf16(left[i]) - from_bf16(right.at(i)));
    largest = std::isnan(between) ? INFINITY : std::max(largest, between); // no comparison notices a NaN
  }
  return largest;
}

} // namespace parallel

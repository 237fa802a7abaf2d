//===- case_random.h - numbers from the name of a case --------------------------------------------------===//
#pragma once

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sluice::conformance {

/// splitmix64 from an FNV-1a hash, the same on every machine.
class Random {
public:
  explicit Random(std::string_view name) {
    for (char c : name)
      state = (state ^ uint8_t(c)) * 0x100000001b3;
  }
  double uniform() {
    uint64_t z = state += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return double((z ^ z >> 31) >> 11) * 0x1p-53;
  }
  /// The sum of twelve uniform numbers: normal enough, and exact arithmetic everywhere, unlike log and cos.
  double normal() {
    double sum = -6;
    for (int i = 0; i < 12; ++i)
      sum += uniform();
    return sum;
  }
  size_t below(size_t end) { return size_t(uniform() * double(end)); }

private:
  uint64_t state = 0xcbf29ce484222325;
};

/// A separate stream for each kind of number, so that one feature leaves the numbers of others unchanged.
template <typename AnyCase> Random random_of(const AnyCase &c, std::string_view what = "") {
  return Random(c.name + std::string(what) + (c.seed == 0 ? "" : " seed " + std::to_string(c.seed)));
}

/// 0 to count - 1, each once.
inline std::vector<int64_t> shuffled(int64_t count, Random random) {
  std::vector<int64_t> numbers(static_cast<size_t>(count));
  std::iota(numbers.begin(), numbers.end(), 0);
  for (size_t i = numbers.size(); i > 1; --i)
    std::swap(numbers[i - 1], numbers[random.below(i)]);
  return numbers;
}

} // namespace sluice::conformance

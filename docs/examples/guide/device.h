//===- device.h - what the programs of the guide share: memory of the device, numbers, comparing --------===//
//
// HIP's functions come from the runtime that the context is bound to, so that nothing here includes or links
// HIP.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include <sluice/sluice.hpp>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

namespace guide {

/// Calls a HIP function by its name. Throws if its result is not hipSuccess.
template <class... Parameters, class... Arguments>
void hip(const sluice::Context &context, const char *name, Arguments... arguments) {
  auto *function = context.hip<int(Parameters...)>(name);
  if (!function) throw std::runtime_error(std::string("this HIP runtime has no ") + name);
  if (const int code = function(arguments...))
    throw std::runtime_error(std::string(name) + " failed with error " + std::to_string(code));
}

/// An array on the device, with a copy on the host.
template <class T> class Array {
public:
  Array(const sluice::Context &context, std::vector<T> initial)
      : host(std::move(initial)), memory(sluice::Memory::allocate(context, host.size() * sizeof(T)).value()) {
    upload();
  }

  /// Both wait for the device's work.
  void upload() { memory.write(host.data(), host.size() * sizeof(T)).value(); }
  void download() { memory.read(host.data(), host.size() * sizeof(T)).value(); }

  T *device() const { return static_cast<T *>(memory.data()); }

  std::vector<T> host;

private:
  sluice::Memory memory;
};

/// Small numbers that F16 holds exactly, different for every seed.
inline std::vector<uint16_t> numbers(size_t count, uint32_t seed) {
  std::vector<uint16_t> values(count);
  for (uint16_t &value : values) {
    seed = seed * 1664525 + 1013904223;
    value = uint16_t((seed >> 16 & 0x8000) | 0x3400 | (seed >> 8 & 0x3ff)); // 0.25 to 0.5, of both signs
  }
  return values;
}

/// A binary16 number that is not infinite and no NaN.
inline double to_double(uint16_t half) {
  const int exponent = half >> 10 & 31, fraction = half & 1023;
  const double size = exponent ? std::ldexp(1024 + fraction, exponent - 25) : std::ldexp(fraction, -24);
  return half & 0x8000 ? -size : size;
}

/// The largest difference between two arrays of binary16. Throws if one has a NaN or infinity.
inline double difference(const std::vector<uint16_t> &left, const std::vector<uint16_t> &right) {
  double largest = 0;
  for (size_t i = 0; i < left.size(); ++i) {
    if ((left[i] & 0x7c00) == 0x7c00 || (right.at(i) & 0x7c00) == 0x7c00)
      throw std::runtime_error("a result is infinite or no number");
    largest = std::fmax(largest, std::fabs(to_double(left[i]) - to_double(right[i])));
  }
  return largest;
}

} // namespace guide

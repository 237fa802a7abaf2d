//===- fresh.h - memory of the device that was never written ----------------------------------*- C++ -*-===//
#pragma once

#include "cache_ops/device.h"

#include <algorithm>
#include <utility>

namespace sluice::test {

/// Memory of the device, of which it knows what has been written.
class Fresh {
public:
  explicit Fresh(size_t bytes) {
    if (hip<int(void **, size_t)>("hipMalloc")(&memory, std::max<size_t>(bytes, 1)) != 0)
      throw std::runtime_error("hipMalloc failed");
  }
  Fresh(Fresh &&other) noexcept : memory(std::exchange(other.memory, nullptr)) {}
  Fresh(const Fresh &) = delete;
  Fresh &operator=(const Fresh &) = delete;
  Fresh &operator=(Fresh &&) = delete;
  ~Fresh() {
    if (memory) hip<int(void *)>("hipFree")(memory);
  }
  uint8_t *data() const { return static_cast<uint8_t *>(memory); }
  void write(size_t at, const uint8_t *from, size_t bytes) { copy(data() + at, from, bytes, 1); }
  void read(uint8_t *to, size_t bytes) const { copy(to, data(), bytes, 2); }

private:
  static void copy(void *to, const void *from, size_t bytes, int kind) {
    if (hip<int(void *, const void *, size_t, int)>("hipMemcpy")(to, from, bytes, kind) != 0)
      throw std::runtime_error("hipMemcpy failed");
  }
  void *memory = nullptr;
};

} // namespace sluice::test

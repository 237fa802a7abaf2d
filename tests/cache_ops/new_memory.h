//===- new_memory.h - memory of the emulated device to which only parts have been written
//----------------===//
#pragma once

#include "cache_ops/device.h"

#include <vector>

namespace sluice::test {

/// Memory of the device. What is not copied to it was never written: the device reports a read of it that
/// decides something.
class NewMemory {
public:
  NewMemory() = default;
  NewMemory(const NewMemory &) = delete;
  NewMemory &operator=(const NewMemory &) = delete;
  ~NewMemory() {
    for (void *block : blocks)
      hip<int(void *)>("hipFree")(block);
  }

  /// NULL for no bytes.
  void *allocate(size_t bytes) {
    void *block = nullptr;
    if (bytes == 0) return nullptr;
    REQUIRE(hip<int(void **, size_t)>("hipMalloc")(&block, bytes) == 0);
    return blocks.emplace_back(block);
  }

  static void copy(void *to, const void *from, size_t bytes) {
    constexpr int any_direction = 4; // hipMemcpyDefault
    if (bytes != 0)
      REQUIRE(hip<int(void *, const void *, size_t, int)>("hipMemcpy")(to, from, bytes, any_direction) == 0);
  }

  /// Replaces an array of the host by a copy; NULL stays NULL.
  template <typename Pointer> void move(Pointer *&pointer, size_t bytes) {
    if (pointer == nullptr) return;
    void *const block = allocate(bytes);
    copy(block, pointer, bytes);
    pointer = static_cast<Pointer *>(block);
  }

private:
  std::vector<void *> blocks;
};

} // namespace sluice::test

//===- linked.h - structs of a caller that point to one another -----------------------------------------===//
#pragma once

#include <cstdint>

namespace sluice::test {

/// Structs that point to one another. A copy points to its own where the original pointed to its own.
template <typename Structs> struct Linked : Structs {
  Linked() = default;
  Linked(const Linked &other) : Structs(other) { retarget(other); }
  Linked &operator=(const Linked &other) {
    if (this == &other) return *this;
    Structs::operator=(other);
    retarget(other);
    return *this;
  }

private:
  void retarget(const Linked &other) {
    const auto from = reinterpret_cast<uintptr_t>(static_cast<const Structs *>(&other));
    const auto to = reinterpret_cast<uintptr_t>(static_cast<const Structs *>(this));
    this->each_pointer([&]<typename Struct>(const Struct *&pointer) {
      const uintptr_t offset = reinterpret_cast<uintptr_t>(pointer) - from;
      if (offset < sizeof(Structs)) pointer = reinterpret_cast<const Struct *>(to + offset);
    });
  }
};

template <typename Struct> Struct sized() {
  Struct value = {};
  value.struct_size = sizeof value;
  return value;
}

} // namespace sluice::test

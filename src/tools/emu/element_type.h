//===- element_type.h - the element types of a buffer ---------------------------------------------------===//
#pragma once

#include "tools/shared/npy.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace sluice::tools::emu {

struct ElementType {
  std::string_view keyword;
  NpyType stored; // in a .npy file, which has no bf16 and no 8-bit floating-point numbers
  /// Uniform numbers in [-1, 1), rounded to a floating-point type; for other types any bits. The same for the
  /// same seed, everywhere.
  void (*fill_random)(std::span<std::byte> memory, uint64_t seed);

  size_t bytes() const { return npy_type_bytes(stored); }
};

/// Null for an unknown keyword.
const ElementType *element_type_by_keyword(std::string_view keyword);
/// "bool, i8, u8, ..."
std::string element_type_keywords();

} // namespace sluice::tools::emu

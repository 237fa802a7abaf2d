//===- dtypes.h - the element types of tensors: names and sizes -----------------------------------------===//
//
// One row per value of sluice_dtype, for the names of kernels, messages and the command line.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace sluice::package {

struct Dtype {
  uint32_t value; // of sluice_dtype
  std::string_view name;
  // Elements that are stored together, and their bytes.
  int32_t block_elements;
  int32_t block_bytes;

  /// Whether strides must be whole blocks of 32 elements.
  constexpr bool is_in_blocks() const { return block_elements != 1; }
};

inline constexpr std::array dtypes = {
    Dtype{1, "f16", 1, 2},     Dtype{2, "bf16", 1, 2},     Dtype{3, "f32", 1, 4},  Dtype{4, "e4m3fnuz", 1, 1},
    Dtype{5, "e4m3fn", 1, 1},  Dtype{6, "e5m2fnuz", 1, 1}, Dtype{7, "e5m2", 1, 1}, Dtype{8, "i8", 1, 1},
    Dtype{9, "u4", 2, 1},      Dtype{10, "q8_0", 32, 34}, // an F16 scale and 32 bytes
    Dtype{11, "q4_0", 32, 18},                            // an F16 scale and 16 bytes
};

static_assert(dtypes.back().value == dtypes.size(), "row n has value n + 1");

/// nullptr for a value or a name that is not in the table.
constexpr const Dtype *find_dtype(uint32_t value) {
  return value - 1 < dtypes.size() ? &dtypes[value - 1] : nullptr;
}
constexpr const Dtype *find_dtype(std::string_view name) {
  for (const Dtype &dtype : dtypes)
    if (dtype.name == name) return &dtype;
  return nullptr;
}

/// The name used in kernel names: "f16". Empty if the value is not in the table.
constexpr std::string_view dtype_name(uint32_t type) {
  const Dtype *const dtype = find_dtype(type);
  return dtype ? dtype->name : std::string_view();
}

/// The name, for messages; the number if the value is not in the table.
inline std::string dtype_text(uint32_t type) {
  const std::string_view name = dtype_name(type);
  return name.empty() ? std::to_string(type) : std::string(name);
}

/// Elements of K and V that are stored together, and their bytes: 1 and the size of an element for most
/// types.
struct Block {
  int32_t elements, bytes;
};
constexpr Block dtype_block(uint32_t type) {
  const Dtype *const dtype = find_dtype(type);
  return dtype ? Block{dtype->block_elements, dtype->block_bytes} : Block{1, 1};
}

/// Size of an element of a type of the table, or more than that in blocks.
constexpr uint32_t dtype_bytes(uint32_t type) {
  const Block block = dtype_block(type);
  return uint32_t((block.bytes + block.elements - 1) / block.elements);
}

/// The name as sluice.h has it, after "SLUICE_".
inline std::string name_in_header(const Dtype &dtype) {
  std::string name(dtype.name);
  for (char &c : name)
    if (c >= 'a' && c <= 'z') c = char(c - 'a' + 'A');
  return name;
}

/// Whether a type of kernels' names is stored in blocks; false for an unknown name.
constexpr bool is_in_blocks(std::string_view name) {
  const Dtype *const dtype = find_dtype(name);
  return dtype && dtype->is_in_blocks();
}

} // namespace sluice::package

//===- dtype.h - names of the element types -------------------------------------------------------------===//
#pragma once

#include <sluice/sluice.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>

namespace sluice::runtime {

/// The name used in kernel names: "f16". Empty if the value is not a sluice_dtype.
constexpr std::string_view dtype_name(uint32_t type) {
  switch (type) {
  case SLUICE_F16:
    return "f16";
  case SLUICE_BF16:
    return "bf16";
  case SLUICE_F32:
    return "f32";
  case SLUICE_E4M3FNUZ:
    return "e4m3fnuz";
  case SLUICE_E4M3FN:
    return "e4m3fn";
  case SLUICE_E5M2FNUZ:
    return "e5m2fnuz";
  case SLUICE_E5M2:
    return "e5m2";
  case SLUICE_I8:
    return "i8";
  case SLUICE_U4:
    return "u4";
  case SLUICE_Q8_0:
    return "q8_0";
  case SLUICE_Q4_0:
    return "q4_0";
  default:
    return {};
  }
}

/// The name, for messages; the number if the value is not a sluice_dtype.
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
  switch (type) {
  case SLUICE_U4:
    return {2, 1};
  case SLUICE_Q8_0:
    return {32, 34};
  case SLUICE_Q4_0:
    return {32, 18};
  default:
    return {1, type == SLUICE_F32 ? 4 : type == SLUICE_F16 || type == SLUICE_BF16 ? 2 : 1};
  }
}

/// Whether strides must be whole blocks of 32 elements.
constexpr bool is_in_blocks(uint32_t type) {
  return dtype_block(type).elements != 1;
}

/// Size of an element of a legal sluice_dtype, or more than that in blocks.
constexpr uint32_t dtype_bytes(uint32_t type) {
  const Block block = dtype_block(type);
  return uint32_t((block.bytes + block.elements - 1) / block.elements);
}

/// Elements of a row of a head dim that kernels may touch: whole groups of 8.
constexpr int32_t row_elements(int32_t head_dim) {
  return (head_dim + 7) / 8 * 8;
}

/// The distance between a type that a kernel takes and a wanted one: first by size, then by the meaning of
/// its bits. E4M3FN is nearest to E4M3FNUZ and E5M2 to E5M2FNUZ.
constexpr uint32_t dtype_distance(uint32_t wanted, uint32_t other) {
  const auto is_e5m2 = [](uint32_t type) { return type == SLUICE_E5M2FNUZ || type == SLUICE_E5M2; };
  const uint32_t own = dtype_bytes(wanted), theirs = dtype_bytes(other);
  const uint32_t far = std::max(own, theirs) - std::min(own, theirs);
  return wanted == other ? 0 : far * 4 + (is_e5m2(wanted) != is_e5m2(other) ? 2 : 1);
}

/// The inverse of dtype_name; 0 for an unknown name.
constexpr uint32_t dtype_of_name(std::string_view name) {
  for (uint32_t type = SLUICE_F16; type <= SLUICE_Q4_0; ++type) {
    if (dtype_name(type) == name) return type;
  }
  return 0;
}

} // namespace sluice::runtime

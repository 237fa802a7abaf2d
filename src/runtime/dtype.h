//===- dtype.h - the values of sluice_dtype: names, sizes and distances ---------------------------------===//
#pragma once

#include "package/dtypes.h"

#include <sluice/sluice.h>

#include <algorithm>
#include <cstdint>
#include <string_view>

namespace sluice::runtime {

using package::Block;
using package::dtype_block;
using package::dtype_bytes;
using package::dtype_name;
using package::dtype_text;

/// Whether strides must be whole blocks of 32 elements.
constexpr bool is_in_blocks(uint32_t type) {
  return dtype_block(type).elements != 1;
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
  const package::Dtype *const dtype = package::find_dtype(name);
  return dtype ? dtype->value : 0;
}

} // namespace sluice::runtime

//===- tensor_checks.h - what a caller can get wrong in a tensor ----------------------------------------===//
//
// Each function throws support::Failure (invalid_argument) with the field, its value and the rule. No
// allocation unless something is wrong.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include <sluice/sluice.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace sluice::abi {

[[noreturn]] void invalid(std::string field, std::string message);

struct Shape {
  std::string_view name;
  const sluice_tensor &tensor;
  std::array<int64_t, 4> extent;
  uint32_t element_bytes;
};

void check_pointer(const Shape &shape, uint32_t alignment);

[[noreturn]] void bad_stride(const Shape &shape, size_t i, std::string_view rule);

/// Strides are not negative, and the whole tensor lies below `address_end`.
void check_reach(const Shape &shape, uint64_t address_end);

/// Each element of an output has a place of its own.
void check_disjoint(const Shape &shape);

} // namespace sluice::abi

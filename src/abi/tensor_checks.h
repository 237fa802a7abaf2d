//===- tensor_checks.h - what a caller can get wrong in a tensor ----------------------------------------===//
//
// Each function throws support::Failure, of status invalid_argument where nothing else is said, with the
// field, its value and the rule. On the path of every run: no allocation unless something is wrong.
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
/// For what is legal, but this version cannot do: status unsupported.
[[noreturn]] void unsupported(std::string field, std::string message);

/// A tensor and how much of it a call uses, as far as the call tells.
struct Shape {
  std::string_view name;
  const sluice_tensor &tensor;
  std::array<int64_t, 4> extent; // each at least 1
  uint32_t element_bytes;
  int64_t run = 1; // elements that lie together at each place, as a pack of K does
};

[[noreturn]] void bad_stride(const Shape &shape, size_t dimension, std::string_view rule);
/// For a legal stride that this version cannot do: status unsupported.
[[noreturn]] void far_stride(const Shape &shape, size_t dimension, int64_t most);

/// The pointer is given, and aligned.
void check_pointer(const Shape &shape, uint32_t alignment);
void check_pointer(std::string_view field, const void *pointer, uint32_t alignment);

/// Strides are not negative, and the whole tensor lies below `address_end`.
void check_reach(const Shape &shape, uint64_t address_end);

/// Each element of an output has a place of its own.
void check_disjoint(const Shape &shape);

/// Nothing is given where the problem asks for nothing; `why` says what the problem lacks.
void check_absent(std::string_view name, const sluice_tensor &tensor, std::string_view why);
void check_absent(std::string_view field, const void *pointer, std::string_view why);

} // namespace sluice::abi

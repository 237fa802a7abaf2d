//===- checks.cpp - what a caller can get wrong in a tensor ---------------------------------------------===//
#include "tensors/checks.h"

#include "package/dtypes.h"
#include "support/failure.h"

#include <utility>

namespace sluice::tensors {

using support::Failure;
using support::Status;
using support::text;

void invalid(std::string_view field, std::string message) {
  throw Failure(Status::invalid_argument, std::string(field), std::move(message));
}

void unsupported(std::string_view field, std::string message) {
  throw Failure(Status::unsupported, std::string(field), std::move(message));
}

void bad_value(std::string_view field, int64_t value, std::string_view rule) {
  invalid(field, text(field, " is ", value, "; ", rule));
}

void bad_element(std::string_view array, int64_t index, int64_t value, const std::string &rule) {
  std::string field = text(array, "[", index, "]");
  std::string message = text(field, " is ", value, "; ", rule);
  invalid(field, std::move(message));
}

void check_at_least(std::string_view field, int64_t value, int64_t least) {
  if (value < least) bad_value(field, value, text("it must be at least ", least));
}

void check_needs_flag(std::string_view field, int32_t value, bool has_flag, std::string_view flag) {
  if (!has_flag && value != 0) invalid(field, text(field, " is ", value, ", but flags lacks ", flag));
  check_at_least(field, value, 0);
}

void check_reserved(uint32_t value) {
  if (value == 0) return;
  throw Failure(Status::newer_struct, "reserved",
                text("reserved is ", value, "; it is reserved in this version, and must be 0"));
}

void check_known(std::string_view field, uint32_t value, uint32_t last, std::string_view last_name) {
  if (value <= last) return;
  throw Failure(Status::newer_struct, std::string(field),
                text(field, " is ", value, "; the last value that this version knows is ", last_name));
}

void check_known_dtype(std::string_view field, uint32_t type) {
  const package::Dtype &last = package::dtypes.back();
  if (type > last.value)
    check_known(field, type, last.value,
                text("SLUICE_", package::name_in_header(last), " (", last.value, ")"));
}

void check_dtype(std::string_view field, uint32_t type) {
  if (type == 0) invalid(field, text(field, " is missing; it must be a sluice_dtype"));
  check_known_dtype(field, type);
}

void bad_stride(const Shape &shape, size_t dimension, std::string_view rule) {
  std::string field = text(shape.name, ".stride[", uint64_t{dimension}, "]");
  std::string message = text(field, " is ", shape.tensor.stride[dimension], "; ", rule);
  invalid(field, std::move(message));
}

void far_stride(const Shape &shape, size_t dimension, int64_t most) {
  std::string field = text(shape.name, ".stride[", uint64_t{dimension}, "]");
  std::string message =
      text(field, " is ", shape.tensor.stride[dimension], "; nearest supported: ", most - most % 8);
  unsupported(field, std::move(message));
}

void check_stride(const Shape &shape, size_t dimension, int64_t wanted) {
  if (shape.extent[dimension] > 1 && shape.tensor.stride[dimension] != wanted)
    bad_stride(shape, dimension, text("it must be ", wanted));
}

void not_multiple(const Shape &shape, size_t dimension, int64_t multiple, std::string_view what) {
  bad_stride(shape, dimension,
             what.empty() ? text("it must be a multiple of ", multiple)
                          : text("it must be a multiple of ", what, ", which is ", multiple));
}

void check_same_strides(const Shape &shape, const sluice_tensor &scales) {
  for (size_t i = 0; i < 4; ++i) {
    if (shape.extent[i] > 1 && shape.tensor.stride[i] != scales.stride[i])
      bad_stride(shape, i, text("it must be that of the scales, which is ", scales.stride[i]));
  }
}

sluice_tensor column_packs(std::string_view name, const sluice_tensor &v, int32_t v_pack, int64_t tokens) {
  sluice_tensor packs = v;
  if (v_pack == SLUICE_PACK_ALL) {
    if (tokens > 1 && v.stride[1] != 1)
      bad_stride({name, v, {1, 1, 1, 1}, 1}, 1, "it must be 1 with SLUICE_PACK_ALL");
    packs.stride[1] = 0;
  }
  return packs;
}

void bad_pointer(std::string_view name, std::string_view suffix, const void *pointer, uint32_t alignment) {
  const uint64_t address = reinterpret_cast<uint64_t>(pointer);
  std::string field = text(name, suffix);
  std::string message = pointer == nullptr ? text(field, " is NULL")
                                           : text(field, " is ", support::hexadecimal(address),
                                                  "; it must be aligned to ", alignment, " bytes");
  invalid(field, std::move(message));
}

void not_given(std::string_view field) {
  invalid(field, text(field, " is NULL, but the problem asks for it"));
}

void check_given(const Shape &shape) {
  if (shape.tensor.data == nullptr) not_given(text(shape.name, ".data"));
  check_pointer(shape, shape.element_bytes);
}

void check_reach(const Shape &shape, uint64_t address_end) {
  int64_t last = shape.run - 1;
  for (size_t i = 0; i < 4; ++i) {
    if (shape.extent[i] <= 1) continue;
    const int64_t stride = shape.tensor.stride[i];
    if (stride < 0) bad_stride(shape, i, "it must not be negative");
    int64_t reach;
    if (__builtin_mul_overflow(stride, shape.extent[i] - 1, &reach) ||
        __builtin_add_overflow(last, reach, &last))
      bad_stride(shape, i, "the tensor would reach beyond 2^63 elements");
  }
  // Byte offsets are 64-bit signed, and the address after the last byte must not wrap.
  int64_t elements, bytes;
  uint64_t end;
  if (__builtin_add_overflow(last, 1, &elements) ||
      __builtin_mul_overflow(elements, int64_t{shape.element_bytes}, &bytes) ||
      __builtin_add_overflow(reinterpret_cast<uint64_t>(shape.tensor.data), uint64_t(bytes), &end) ||
      end > address_end)
    invalid(text(shape.name, ".stride"), text(shape.name, " would reach beyond the address space"));
}

/// Every dimension must step over everything that those with smaller strides span. Of equal ones the first
/// counts as smaller.
std::optional<size_t> overlapping(const Shape &shape) {
  const auto &stride = shape.tensor.stride;
  std::array<int64_t, 4> reach;
  for (size_t i = 0; i < 4; ++i)
    reach[i] = shape.extent[i] > 1 ? stride[i] * (shape.extent[i] - 1) : 0;
  std::optional<size_t> first;
  for (size_t i = 0; i < 4; ++i) {
    int64_t span = shape.run;
    for (size_t j = 0; j < 4; ++j)
      span += stride[j] < stride[i] || (stride[j] == stride[i] && j < i) ? reach[j] : 0;
    const bool overlaps = shape.extent[i] > 1 && stride[i] < span;
    if (overlaps && (!first || stride[i] < stride[*first])) first = i;
  }
  return first;
}

void check_disjoint(const Shape &shape) {
  if (const std::optional<size_t> i = overlapping(shape))
    bad_stride(shape, *i, "elements of an output would overlap");
}

void not_absent(std::string_view name, const sluice_tensor &tensor, std::string_view why) {
  if (tensor.data != nullptr) not_absent(text(name, ".data"), why);
  size_t i = 0;
  while (tensor.stride[i] == 0)
    ++i;
  bad_stride({name, tensor, {1, 1, 1, 1}, 1}, i, text("it must be 0: ", why));
}

void not_absent(std::string_view field, std::string_view why) {
  invalid(field, text(field, " is given, but ", why));
}

void stride_without_array(std::string_view field, int64_t stride, std::string_view array) {
  invalid(field, text(field, " is ", stride, ", but ", array, " is NULL"));
}

} // namespace sluice::tensors

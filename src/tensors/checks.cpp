//===- checks.cpp - what a caller can get wrong in a tensor ---------------------------------------------===//
#include "tensors/checks.h"

#include "package/dtypes.h"
#include "support/checked.h"
#include "support/failure.h"

#include <utility>

namespace sluice::tensors {

using support::checked_add;
using support::checked_multiply;
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

void check_multiple(const Shape &shape, size_t dimension, int64_t multiple, std::string_view what) {
  if (shape.extent[dimension] <= 1 || shape.tensor.stride[dimension] % multiple == 0) return;
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

namespace {

/// `name` and `suffix` are joined only if something is wrong.
void check_pointer(std::string_view name, std::string_view suffix, const void *pointer, uint32_t alignment) {
  const uint64_t address = reinterpret_cast<uint64_t>(pointer);
  if (pointer != nullptr && address % alignment == 0) return;
  std::string field = text(name, suffix);
  std::string message = pointer == nullptr ? text(field, " is NULL")
                                           : text(field, " is ", support::hexadecimal(address),
                                                  "; it must be aligned to ", alignment, " bytes");
  invalid(field, std::move(message));
}

} // namespace

void not_given(std::string_view field) {
  invalid(field, text(field, " is NULL, but the problem asks for it"));
}

void check_given(const Shape &shape) {
  if (shape.tensor.data == nullptr) not_given(text(shape.name, ".data"));
  check_pointer(shape, shape.element_bytes);
}

void check_pointer(const Shape &shape, uint32_t alignment) {
  check_pointer(shape.name, ".data", shape.tensor.data, alignment);
}

void check_pointer(std::string_view field, const void *pointer, uint32_t alignment) {
  check_pointer(field, "", pointer, alignment);
}

void check_reach(const Shape &shape, uint64_t address_end) {
  std::optional<int64_t> last = shape.run - 1;
  for (size_t i = 0; i < 4; ++i) {
    if (shape.extent[i] <= 1) continue;
    const int64_t stride = shape.tensor.stride[i];
    if (stride < 0) bad_stride(shape, i, "it must not be negative");
    const std::optional<int64_t> reach = checked_multiply(stride, shape.extent[i] - 1);
    last = reach ? checked_add(*last, *reach) : std::nullopt;
    if (!last) bad_stride(shape, i, "the tensor would reach beyond 2^63 elements");
  }
  // Byte offsets are 64-bit signed, and the address after the last byte must not wrap.
  const auto elements = checked_add<int64_t>(*last, 1);
  const auto bytes = elements ? checked_multiply<int64_t>(*elements, shape.element_bytes) : std::nullopt;
  const auto end =
      bytes ? checked_add(reinterpret_cast<uint64_t>(shape.tensor.data), uint64_t(*bytes)) : std::nullopt;
  if (!end || *end > address_end) {
    invalid(text(shape.name, ".stride"), text(shape.name, " would reach beyond the address space"));
  }
}

/// In order of stride, every dimension must step over everything that the ones before it span.
std::optional<size_t> overlapping(const Shape &shape) {
  std::array<size_t, 4> order = {0, 1, 2, 3};
  const auto &stride = shape.tensor.stride;
  for (size_t i = 1; i < 4; ++i) { // insertion sort: four elements, and no allocation
    for (size_t j = i; j > 0 && stride[order[j]] < stride[order[j - 1]]; --j)
      std::swap(order[j], order[j - 1]);
  }
  int64_t span = shape.run;
  for (size_t i : order) {
    if (shape.extent[i] <= 1) continue;
    if (stride[i] < span) return i;
    span += stride[i] * (shape.extent[i] - 1);
  }
  return std::nullopt;
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

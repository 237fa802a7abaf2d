//===- checks.h - what a caller can get wrong in a tensor -----------------------------------------------===//
//
// Each function throws support::Failure with the field, its value and the rule; the status is
// invalid_argument unless stated otherwise. On the path of every run: no allocation unless something is
// wrong.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include <sluice/attention.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace sluice::tensors {

// A buffer descriptor holds 48 address bits (CDNA3 ISA, buffer resource): a higher address would wrap.
inline constexpr uint64_t device_address_end = uint64_t{1} << 48;

/// What an executor requires of tensors beyond legality.
struct TensorRules {
  uint32_t pointer_alignment; // bytes; 0 for the size of an element
  int64_t stride_multiple;    // elements
  bool unit_dim_stride;       // stride[3] of q, k, v and o must be 1
  uint32_t tile_q;            // rows per workgroup; 0 on the host, which has no grid and no other limits

  bool on_device() const { return tile_q != 0; }
  uint64_t address_end() const { return on_device() ? device_address_end : UINT64_MAX; }
};

[[noreturn]] void invalid(std::string_view field, std::string message);
/// For a legal request that this version cannot serve: status unsupported.
[[noreturn]] void unsupported(std::string_view field, std::string message);

/// "field is value; rule"
[[noreturn]] void bad_value(std::string_view field, int64_t value, std::string_view rule);

/// An extent, a count or a stride that may be 0.
inline void check_not_negative(std::string_view field, int64_t value) {
  if (value < 0) bad_value(field, value, "it must not be negative");
}
void check_at_least(std::string_view field, int64_t value, int64_t least);

/// A member that needs a flag, and is 0 without it; it must not be negative.
void check_needs_flag(std::string_view field, int32_t value, bool has_flag, std::string_view flag);

/// The member `reserved` of a struct.
void check_reserved(uint32_t value);

/// A value of an enumeration is one that this version knows; later ones may have come with a newer header:
/// status newer_struct. `last_name`: "SLUICE_PAGE_TABLE_CSR (2)".
void check_known(std::string_view field, uint32_t value, uint32_t last, std::string_view last_name);
/// The same for a sluice_dtype, which is required.
/// Refuses numbers beyond the last sluice_dtype. 0 is none.
void check_known_dtype(std::string_view field, uint32_t type);
void check_dtype(std::string_view field, uint32_t type);

/// A tensor and how much of it a call uses, as far as the call says.
struct Shape {
  std::string_view name;
  const sluice_tensor &tensor;
  std::array<int64_t, 4> extent; // the stride of an extent of 1 has no meaning, and no rules
  uint32_t element_bytes;
  int64_t run = 1; // adjacent elements at each index, as in a pack of K
};

[[noreturn]] void bad_stride(const Shape &shape, size_t dimension, std::string_view rule);
/// For a legal stride that this version cannot serve: status unsupported.
[[noreturn]] void far_stride(const Shape &shape, size_t dimension, int64_t most);

/// The stride of a dimension is this number.
void check_stride(const Shape &shape, size_t dimension, int64_t wanted);
/// It is a multiple of this number; `what`, if given, is what the number is.
[[noreturn]] void not_multiple(const Shape &shape, size_t dimension, int64_t multiple, std::string_view what);
inline void check_multiple(const Shape &shape, size_t dimension, int64_t multiple,
                           std::string_view what = {}) {
  if (shape.extent[dimension] <= 1) return;
  const int64_t stride = shape.tensor.stride[dimension];
  // Nearly all numbers are powers of two, and a division costs as much as the rest of a tensor's checks.
  const bool is_power = (multiple & (multiple - 1)) == 0;
  if ((is_power ? stride & (multiple - 1) : stride % multiple) != 0)
    not_multiple(shape, dimension, multiple, what);
}
/// All strides are those of another tensor, its scales.
void check_same_strides(const Shape &shape, const sluice_tensor &scales);

/// V by columns as a tensor of packs, whose second index counts packs. With SLUICE_PACK_ALL all `tokens` of
/// a column are one pack: stride[1] must be 1, and is 0 in the result.
sluice_tensor column_packs(std::string_view name, const sluice_tensor &v, int32_t v_pack, int64_t tokens);

/// `name` and `suffix` together are the field.
[[noreturn]] void bad_pointer(std::string_view name, std::string_view suffix, const void *pointer,
                              uint32_t alignment);
/// The pointer is not null, and it is aligned to a power of two.
inline void check_pointer(std::string_view field, const void *pointer, uint32_t alignment,
                          std::string_view suffix = {}) {
  if (pointer == nullptr || (reinterpret_cast<uint64_t>(pointer) & (alignment - 1)) != 0)
    bad_pointer(field, suffix, pointer, alignment);
}
inline void check_pointer(const Shape &shape, uint32_t alignment) {
  check_pointer(shape.name, shape.tensor.data, alignment, ".data");
}

/// Strides are not negative, and the whole tensor is below `address_end`.
void check_reach(const Shape &shape, uint64_t address_end);

/// A dimension whose stride makes elements overlap.
std::optional<size_t> overlapping(const Shape &shape);
/// No two elements of an output overlap.
void check_disjoint(const Shape &shape);

[[noreturn]] void not_absent(std::string_view name, const sluice_tensor &tensor, std::string_view why);
[[noreturn]] void not_absent(std::string_view field, std::string_view why);

/// Nothing is given that the problem does not ask for; `why` says what the problem lacks. Most members of a
/// call are absent, so these cost a comparison each.
inline void check_absent(std::string_view name, const sluice_tensor &tensor, std::string_view why) {
  const auto &stride = tensor.stride;
  if (tensor.data != nullptr || (stride[0] | stride[1] | stride[2] | stride[3]) != 0)
    not_absent(name, tensor, why);
}
inline void check_absent(std::string_view field, const void *pointer, std::string_view why) {
  if (pointer != nullptr) not_absent(field, why);
}

/// "field is NULL, but the problem asks for it"
[[noreturn]] void not_given(std::string_view field);

/// The same for the elements of a tensor.
void check_given(const Shape &shape);

/// An array of 32-bit numbers is given exactly when the problem asks for it.
inline void check_given(std::string_view field, const void *pointer, bool is_asked,
                        std::string_view why_not) {
  if (is_asked) {
    if (pointer == nullptr) not_given(field);
    check_pointer(field, pointer, sizeof(float)); // or int32_t
  } else {
    check_absent(field, pointer, why_not);
  }
}

[[noreturn]] void stride_without_array(std::string_view field, int64_t stride, std::string_view array);

/// The stride between the arrays of sequences; `name` is that of the array.
inline void check_batch_stride(std::string_view field, int64_t stride, int32_t batch, const float *array,
                               std::string_view name) {
  if (batch <= 1 && array != nullptr) return;
  check_not_negative(field, stride);
  if (stride != 0 && array == nullptr) stride_without_array(field, stride, name);
}

/// A number in an array: "array[index] is value; rule".
[[noreturn]] void bad_element(std::string_view array, int64_t index, int64_t value, const std::string &rule);

} // namespace sluice::tensors

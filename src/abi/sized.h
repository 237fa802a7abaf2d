//===- sized.h - structs that know their size -----------------------------------------------------------===//
//
// The rules of struct_size in one place. A caller may be older than the library: its struct has one of the
// published sizes, and missing fields count as zero. It may be newer: then fields that the library does not
// know must be zero.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include "support/failure.h"

#include <sluice/sluice.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <string_view>

namespace sluice::abi {

/// `sizes` holds the size of every published version of a struct, oldest first.
template <typename Struct> struct Published;

/// The last size is that of this version. The others are those of earlier releases of this generation, in
/// which the struct was smaller.
#define SLUICE_PUBLISHED(Struct, ...)                                                                        \
  template <> struct Published<Struct> {                                                                     \
    static constexpr std::string_view name = #Struct;                                                        \
    static constexpr auto sizes = std::to_array<uint32_t>({__VA_ARGS__ __VA_OPT__(, ) sizeof(Struct)});      \
    static_assert(std::ranges::adjacent_find(sizes, std::greater_equal()) == sizes.end(),                    \
                  "a struct grows by appending");                                                            \
  }

SLUICE_PUBLISHED(sluice_error);
SLUICE_PUBLISHED(sluice_build);
SLUICE_PUBLISHED(sluice_context_desc);
SLUICE_PUBLISHED(sluice_device_info);
SLUICE_PUBLISHED(sluice_support);
SLUICE_PUBLISHED(sluice_kernel_info);
SLUICE_PUBLISHED(sluice_plan_info);
SLUICE_PUBLISHED(sluice_counters);
SLUICE_PUBLISHED(sluice_launch);
SLUICE_PUBLISHED(sluice_attention);
SLUICE_PUBLISHED(sluice_attention_args);
SLUICE_PUBLISHED(sluice_keys);
SLUICE_PUBLISHED(sluice_kv);
SLUICE_PUBLISHED(sluice_kv_format);
SLUICE_PUBLISHED(sluice_kv_scales);
SLUICE_PUBLISHED(sluice_mask);
SLUICE_PUBLISHED(sluice_mask_args);
SLUICE_PUBLISHED(sluice_scores);
SLUICE_PUBLISHED(sluice_scores_args);
SLUICE_PUBLISHED(sluice_append_args);
SLUICE_PUBLISHED(sluice_append_q);
SLUICE_PUBLISHED(sluice_copy_args);
SLUICE_PUBLISHED(sluice_gather_args);
SLUICE_PUBLISHED(sluice_merge_args);
SLUICE_PUBLISHED(sluice_norm);
SLUICE_PUBLISHED(sluice_rotation);

/// Larger than any version will be: a larger struct_size was never set.
inline constexpr uint32_t struct_bytes_limit = 65536;

/// Whether a past or future version of the struct can have this size.
template <typename Struct> bool is_size(size_t size) {
  constexpr auto &sizes = Published<Struct>::sizes;
  if (size > sizes.back()) return size <= struct_bytes_limit;
  return std::find(sizes.begin(), sizes.end(), size) != sizes.end();
}

/// Throws support::Failure (invalid_argument) unless a version of the struct can have this struct_size.
template <typename Struct> void check_size(uint32_t struct_size, std::string_view argument) {
  if (is_size<Struct>(struct_size)) return;
  throw support::Failure(support::Status::invalid_argument, support::text(argument, ".struct_size"),
                         support::text(argument, ".struct_size is ", struct_size, "; sizeof(",
                                       Published<Struct>::name, ") is ", sizeof(Struct), " in this version"));
}

/// The struct as this version knows it: `given` itself, or `copy` with zeros for fields that an older caller
/// lacks. Throws support::Failure: invalid_argument, or newer_struct if an unknown field is not zero.
template <typename Struct> const Struct &view(const Struct *given, std::string_view argument, Struct &copy) {
  if (given == nullptr) {
    throw support::Failure(support::Status::invalid_argument, std::string(argument),
                           support::text(argument, " is NULL"));
  }
  const uint32_t struct_size = given->struct_size;
  if (struct_size == sizeof(Struct)) return *given;
  check_size<Struct>(struct_size, argument);
  if (struct_size < sizeof(Struct)) {
    copy = Struct{};
    std::memcpy(&copy, given, struct_size);
    return copy;
  }
  const auto *bytes = reinterpret_cast<const unsigned char *>(given);
  const auto *end = bytes + struct_size;
  const auto *unknown =
      std::find_if(bytes + sizeof(Struct), end, [](unsigned char byte) { return byte != 0; });
  if (unknown != end) {
    throw support::Failure(support::Status::newer_struct, std::string(argument),
                           support::text(argument, " sets byte ", uint64_t(unknown - bytes),
                                         ", but this library knows ", Published<Struct>::name, " up to byte ",
                                         sizeof(Struct), ": it is older than the caller's header"));
  }
  return *given;
}

/// The same for a launch; NULL is the default stream, without workspace, dependencies and signal.
inline const sluice_launch &view_launch(const sluice_launch *given, sluice_launch &copy) {
  if (given != nullptr) return view(given, "launch", copy);
  copy = sluice_launch{};
  copy.struct_size = sizeof copy;
  return copy;
}

/// Throws support::Failure unless `out` can be filled.
template <typename Struct> void check_output(const Struct *out, std::string_view argument) {
  if (out == nullptr) {
    throw support::Failure(support::Status::invalid_argument, std::string(argument),
                           support::text(argument, " is NULL"));
  }
  check_size<Struct>(out->struct_size, argument);
}

/// Fills the part of `out` that both the caller and the library know; struct_size stays the caller's.
template <typename Struct> void fill(Struct *out, Struct value) {
  value.struct_size = out->struct_size;
  std::memcpy(out, &value, std::min<size_t>(out->struct_size, sizeof value));
}

template <typename Struct> sluice_status init(Struct *given, size_t size) noexcept {
  if (given == nullptr || !is_size<Struct>(size)) return SLUICE_INVALID_ARGUMENT;
  std::memset(given, 0, size);
  given->struct_size = uint32_t(size);
  return SLUICE_OK;
}

/// Copies text into a fixed field, cut to fit and terminated.
template <size_t size> void copy_text(char (&field)[size], std::string_view text) {
  const size_t length = std::min(text.size(), size - 1);
  std::memcpy(field, text.data(), length);
  field[length] = '\0';
}

} // namespace sluice::abi

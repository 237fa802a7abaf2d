//===- pack_format.h - the bytes of a kernel pack -------------------------------------------------------===//
//
// Shared by writer and reader; docs/formats/pack.md describes it. Every byte is in one of the three parts
// that a checksum covers: header, manifest, kernels.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace sluice::package {

inline constexpr char pack_magic[8] = {'S', 'L', 'U', 'I', 'C', 'E', 'P', 'K'};
inline constexpr uint32_t pack_version = 4;

struct PackHeader {
  char magic[8];
  uint32_t version;
  uint32_t kernel_count;
  uint64_t pack_bytes;
  uint64_t manifest_bytes;
  uint64_t manifest_checksum;
  uint64_t header_checksum; // XXH64 of the bytes before it
};
static_assert(sizeof(PackHeader) == 48 && offsetof(PackHeader, header_checksum) == 40);
static_assert(std::has_unique_object_representations_v<PackHeader>);

/// Writer and reader refuse a bundle of this size or more: kernels are a thousandth of it.
inline constexpr uint64_t bundle_bytes_limit = uint64_t{1} << 28;

} // namespace sluice::package

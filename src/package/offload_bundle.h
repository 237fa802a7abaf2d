//===- offload_bundle.h - the HIP fat binary ------------------------------------------------------------===//
//
// The container that clang writes and HIP's loader reads:
//
//   24 bytes  "__CLANG_OFFLOAD_BUNDLE__"
//   u64       number of entries; the first is the host's, which is empty
//   per entry u64 offset, u64 size, u64 length of the id, the id
//   code      each entry at a multiple of 4096
//
// or the same compressed, in version 2 and 3 of its header:
//
//   4 bytes   "CCOB"
//   u16       version
//   u16       method; 1: zstd
//   u32 (2), u64 (3)  total bytes of all this
//   u32 (2), u64 (3)  bytes of the bundle
//   u64       part of the bundle's MD5, which HIP's loader also ignores
//   a zstd frame
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "package/chips.h"

namespace sluice::package {

struct BundleEntry {
  std::string id; // "hipv4-amdgcn-amd-amdhsa--gfx942"
  std::span<const std::byte> code;
};

/// The id of a chip's entry.
std::string bundle_id(std::string_view chip);

/// A bundle with an empty host entry, then the given ones in order.
std::vector<std::byte> write_bundle(std::span<const BundleEntry> entries);

/// All entries, including the host's; views into `bundle`, which must not be compressed. Throws
/// support::Failure (pack_corrupt).
std::vector<BundleEntry> read_bundle(std::span<const std::byte> bundle);

enum class BundleForm : uint8_t { none, plain, compressed };
/// The form, from the first bytes: at least 4 must exist, and 24 if they could begin a plain bundle.
BundleForm bundle_form(const std::byte *image);

/// The size of a bundle of either form that is passed as a pointer without a size, from its own header.
/// Throws support::Failure (pack_corrupt).
uint64_t bundle_file_bytes(const std::byte *image);

/// The plain bundle. Throws support::Failure: pack_corrupt, or unsupported for another version or method.
std::vector<std::byte> decompress_bundle(std::span<const std::byte> compressed);

/// The entry that a device with these features loads: code for the chip before code for its family, null if
/// both are missing. If an entry's id names a feature, the device must have the same setting.
const BundleEntry *select_entry(std::span<const BundleEntry> entries, const Chip &chip,
                                std::span<const std::string_view> features);

} // namespace sluice::package

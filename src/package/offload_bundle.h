//===- offload_bundle.h - the HIP fat binary
//--------------------------------------------------------------===//
//
// The container that clang writes and HIP's loader reads, uncompressed:
//
//   24 bytes  "__CLANG_OFFLOAD_BUNDLE__"
//   u64       number of entries; the first is the host's and empty
//   per entry u64 offset, u64 size, u64 length of the id, the id
//   code      each entry at a multiple of 4096
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::package {

struct BundleEntry {
  std::string id; // "hipv4-amdgcn-amd-amdhsa--gfx942"
  std::span<const std::byte> code;
};

/// The id of a chip's entry.
std::string bundle_id(std::string_view chip);

/// A bundle with an empty host entry, then the given ones in order.
std::vector<std::byte> write_bundle(std::span<const BundleEntry> entries);

/// All entries, the host's included; views into `bundle`. Throws support::Failure (pack_corrupt).
std::vector<BundleEntry> read_bundle(std::span<const std::byte> bundle);

} // namespace sluice::package

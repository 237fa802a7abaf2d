//===- pack_reader.h - reads kernel packs ---------------------------------------------------------------===//
//
// Opening a pack checks all of it: every byte belongs to a checksummed part, so a pack that opens is the pack
// that was written.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include "package/manifest.h"

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::package {

class PackReader {
public:
  /// Throws support::Failure (pack_corrupt) unless `pack` is a whole and unaltered pack. Keeps a view of it.
  explicit PackReader(std::span<const std::byte> pack);

  const Manifest &manifest() const { return contents; }

  /// Checksum of the manifest, which holds the checksums of the kernels: equal ids, equal kernels.
  uint64_t id() const { return manifest_checksum; }

  /// nullptr if the pack has no kernel of that name.
  const PackedKernel *find(std::string_view kernel) const;

  /// The compressed HIP fat binary of a kernel of this pack: a view of it.
  std::span<const std::byte> compressed(const PackedKernel &kernel) const;

  /// The decompressed HIP fat binary of a kernel of this pack.
  std::vector<std::byte> bundle(const PackedKernel &kernel) const;

private:
  std::span<const std::byte> bytes;
  uint64_t manifest_checksum = 0;
  Manifest contents;
};

} // namespace sluice::package

//===- pack_writer.h - writes kernel packs --------------------------------------------------------------===//
//
// Build time only. Equal input gives an equal file, byte for byte, for any order in which the kernels are
// added.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include "package/manifest.h"
#include "package/pack_reader.h"

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace sluice::package {

/// The machine code of a kernel for one chip.
struct ChipCode {
  std::string chip; // "gfx942", features unspecified
  std::span<const std::byte> elf;
};

class PackWriter {
public:
  PackWriter(std::string generator, std::string llvm_version);

  /// Adds a kernel; entry.chips is taken from the code objects. Throws support::Failure if the entry breaks a
  /// rule of the format: an illegal or repeated name, no code, a chip given twice.
  void add(KernelEntry entry, std::span<const ChipCode> code);

  /// Adds a kernel of another pack as it is compressed there, under an entry for the same name and chips.
  void copy(KernelEntry entry, const PackReader &pack, const PackedKernel &kernel);

  /// The whole pack.
  std::vector<std::byte> finish() const;

private:
  struct Kernel {
    KernelEntry entry;
    uint64_t bundle_bytes;
    std::vector<std::byte> compressed;
  };

  void insert(Kernel kernel);

  std::string generator;
  std::string llvm_version;
  std::vector<Kernel> kernels; // sorted by name
};

} // namespace sluice::package

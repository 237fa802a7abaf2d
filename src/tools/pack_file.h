//===- pack_file.h - kernel packs on disk, alone or inside a library ------------------------------------===//
#pragma once

#include "package/pack_reader.h"

#include <memory>
#include <span>
#include <string>
#include <vector>

namespace sluice::tools {

/// A file's pack, opened and checked.
class PackFile {
public:
  /// `file` is a pack or a library with a pack inside; empty is the libsluice in use. Throws ToolError.
  explicit PackFile(std::string file);

  const std::string &path() const { return file; }
  const package::PackReader &reader() const { return *pack; }
  /// The pack alone.
  std::span<const std::byte> content() const { return pack_bytes; }

  /// Throws ToolError naming the kernels there are.
  const package::PackedKernel &kernel(const std::string &name) const;
  std::vector<std::byte> bundle(const package::PackedKernel &kernel) const { return pack->bundle(kernel); }
  /// The machine code of one chip. Throws ToolError naming the chips there are.
  std::vector<std::byte> elf(const package::PackedKernel &kernel, const std::string &chip) const;

private:
  std::string file;
  std::vector<std::byte> bytes;
  std::span<const std::byte> pack_bytes; // of them
  std::unique_ptr<package::PackReader> pack;
};

} // namespace sluice::tools

//===- pack_file.h - kernel packs in files of their own or inside libraries -----------------------------===//
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
  /// `file` is a pack or a library that contains one; empty means the libsluice in use. Throws ToolError.
  explicit PackFile(std::string file);

  const std::string &path() const { return file; }
  const package::PackReader &reader() const { return *pack; }
  /// Only the pack.
  std::span<const std::byte> content() const { return pack_bytes; }

  /// Throws ToolError with the existing kernels' names.
  const package::PackedKernel &kernel(const std::string &name) const;
  std::vector<std::byte> bundle(const package::PackedKernel &kernel) const { return pack->bundle(kernel); }
  /// The machine code for one chip. Throws ToolError with the existing chips' names.
  std::vector<std::byte> elf(const package::PackedKernel &kernel, const std::string &chip) const;

private:
  std::string file;
  std::vector<std::byte> bytes;
  std::span<const std::byte> pack_bytes; // of them
  std::unique_ptr<package::PackReader> pack;
};

} // namespace sluice::tools

//===- pack_file.cpp - kernel packs in files of their own or inside libraries ---------------------------===//
//
// A library's pack is found by its header: the magic also occurs in the code that searches for it, so a
// candidate counts only if a version and a size that fit follow.
//
//===----------------------------------------------------------------------------------------------------===//
#include "tools/shared/pack_file.h"

#include "package/offload_bundle.h"
#include "package/pack_format.h"
#include "support/failure.h"
#include "tools/shared/context.h"
#include "tools/shared/input_file.h"

#include <algorithm>
#include <cstring>
#include <dlfcn.h>
#include <fmt/format.h>

namespace sluice::tools {

namespace {

std::string library_in_use() {
  Dl_info info{};
  if (dladdr(reinterpret_cast<const void *>(&sluice_version), &info) == 0 || !info.dli_fname)
    throw ToolError("the file of the libsluice in use is not known; name one");
  return info.dli_fname;
}

/// The bytes of the pack within `bytes`, or nothing.
std::span<const std::byte> find_pack(std::span<const std::byte> bytes) {
  const auto *const magic = reinterpret_cast<const std::byte *>(package::pack_magic);
  for (auto at = bytes.begin();; ++at) {
    at = std::search(at, bytes.end(), magic, magic + sizeof package::pack_magic);
    const size_t left = size_t(bytes.end() - at);
    if (left < sizeof(package::PackHeader)) return {};
    package::PackHeader header;
    std::memcpy(&header, &*at, sizeof header);
    if (header.version == package::pack_version && header.pack_bytes >= sizeof header &&
        header.pack_bytes <= left)
      return {&*at, size_t(header.pack_bytes)};
  }
}

} // namespace

PackFile::PackFile(std::string name)
    : file(name.empty() ? library_in_use() : std::move(name)), bytes(read_file(file, "a pack or a library")) {
  pack_bytes = bytes;
  // A library's pack is somewhere inside it; a file that is a pack is judged as a whole, damage included.
  const bool is_elf = bytes.size() >= 4 && std::memcmp(bytes.data(),
                                                       "\x7f"
                                                       "ELF",
                                                       4) == 0;
  if (is_elf) {
    pack_bytes = find_pack(bytes);
    if (pack_bytes.empty()) throw ToolError(fmt::format("{}: holds no kernel pack", file));
  }
  try {
    pack = std::make_unique<package::PackReader>(pack_bytes);
  } catch (const support::Failure &failure) {
    throw ToolError(fmt::format("{}: {}", file, failure.message()));
  }
}

const package::PackedKernel &PackFile::kernel(const std::string &name) const {
  if (const package::PackedKernel *const found = pack->find(name)) return *found;
  std::string names;
  for (const package::PackedKernel &kernel : pack->manifest().kernels)
    names += (names.empty() ? "" : ", ") + package::format_kernel_name(kernel.entry.name);
  throw ToolError(fmt::format("{}: has no kernel '{}'; it has {}", file, name, names));
}

std::vector<std::byte> PackFile::elf(const package::PackedKernel &kernel, const std::string &chip) const {
  const std::vector<std::byte> whole = pack->bundle(kernel);
  for (const package::BundleEntry &entry : package::read_bundle(whole))
    if (entry.id == package::bundle_id(chip)) return {entry.code.begin(), entry.code.end()};
  throw ToolError(fmt::format("{}: {} has no code for '{}'; it has code for {}", file,
                              package::format_kernel_name(kernel.entry.name), chip,
                              fmt::join(kernel.entry.chips, ", ")));
}

} // namespace sluice::tools

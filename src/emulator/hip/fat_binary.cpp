//===- fat_binary.cpp - the code images that programs pass to HIP ---------------------------------------===//
//
// An image is a bare pointer, so its size comes from its own headers. A file has a size, which its headers
// must respect.
//
//===----------------------------------------------------------------------------------------------------===//
#include "emulator/hip/fat_binary.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <span>
#include <string_view>

#include "emulator/hip/error.h"
#include "package/code_object.h"
#include "package/offload_bundle.h"
#include "support/failure.h"

namespace sluice::emulator::hip {

namespace {

using package::BundleForm;

constexpr std::string_view elf_magic = "\x7f"
                                       "ELF";
constexpr size_t longest_magic = 24; // a bundle's
constexpr std::string_view device_features[] = {"sramecc+", "xnack-"};

std::vector<std::byte> code_object_of_bundle(std::span<const std::byte> bundle) {
  const std::vector<package::BundleEntry> entries = package::read_bundle(bundle);
  const package::BundleEntry *const entry =
      package::select_entry(entries, *package::find_chip("gfx942"), device_features);
  require(entry != nullptr, hipErrorNoBinaryForGpu);
  return {entry->code.begin(), entry->code.end()};
}

/// Calls `read`, whose errors become HIP's.
template <typename Read> std::vector<std::byte> reading(Read &&read) {
  try {
    return read();
  } catch (const package::CodeObjectError &) {
    throw Failure(hipErrorInvalidImage);
  } catch (const support::Failure &failure) {
    throw Failure(failure.status() == support::Status::unsupported ? hipErrorNotSupported
                                                                   : hipErrorInvalidImage);
  }
}

void require_elf(const std::byte *image) {
  require(std::equal(elf_magic.begin(), elf_magic.end(), reinterpret_cast<const char *>(image)),
          hipErrorInvalidImage);
}

std::vector<std::byte> code_object_of(std::span<const std::byte> bundle, BundleForm form) {
  return code_object_of_bundle(form == BundleForm::plain ? bundle : package::decompress_bundle(bundle));
}

} // namespace

std::vector<std::byte> code_object_of_image(const void *image) {
  require(image != nullptr, hipErrorInvalidValue);
  const auto *const start = static_cast<const std::byte *>(image);
  return reading([&]() -> std::vector<std::byte> {
    const BundleForm form = package::bundle_form(start);
    if (form != BundleForm::none) return code_object_of({start, package::bundle_file_bytes(start)}, form);
    require_elf(start);
    return {start, start + package::elf_file_bytes(start)};
  });
}

std::vector<std::byte> code_object_of_file(const char *path) {
  std::ifstream stream(path, std::ios::binary);
  require(stream.good(), hipErrorFileNotFound);
  const std::vector<char> text{std::istreambuf_iterator<char>(stream), {}};
  const std::span<const std::byte> file = std::as_bytes(std::span(text));
  require(file.size() >= longest_magic, hipErrorInvalidImage);
  return reading([&]() -> std::vector<std::byte> {
    const BundleForm form = package::bundle_form(file.data());
    if (form != BundleForm::none) return code_object_of(file, form);
    require_elf(file.data());
    return {file.begin(), file.end()};
  });
}

} // namespace sluice::emulator::hip

//===- fat_binary.cpp - the code images that programs pass to HIP ---------------------------------------===//
//
// An image is a bare pointer, so its size comes from its own headers.
//
//===----------------------------------------------------------------------------------------------------===//
#include "emulator/hip/fat_binary.h"

#include <algorithm>
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
constexpr std::string_view device_features[] = {"sramecc+", "xnack-"};

std::vector<std::byte> code_object_of_bundle(std::span<const std::byte> bundle) {
  const std::vector<package::BundleEntry> entries = package::read_bundle(bundle);
  const package::BundleEntry *const entry =
      package::select_entry(entries, *package::find_chip("gfx942"), device_features);
  require(entry != nullptr, hipErrorNoBinaryForGpu);
  return {entry->code.begin(), entry->code.end()};
}

} // namespace

std::vector<std::byte> code_object_of_image(const void *image) {
  require(image != nullptr, hipErrorInvalidValue);
  const auto *const start = static_cast<const std::byte *>(image);
  try {
    const BundleForm form = package::bundle_form(start);
    if (form == BundleForm::none) {
      require(std::equal(elf_magic.begin(), elf_magic.end(), static_cast<const char *>(image)),
              hipErrorInvalidImage);
      return {start, start + package::elf_file_bytes(start)};
    }
    const std::span<const std::byte> bundle(start, package::bundle_file_bytes(start));
    return code_object_of_bundle(form == BundleForm::plain ? bundle : package::decompress_bundle(bundle));
  } catch (const package::CodeObjectError &) {
    throw Failure(hipErrorInvalidImage);
  } catch (const support::Failure &failure) {
    throw Failure(failure.status() == support::Status::unsupported ? hipErrorNotSupported
                                                                   : hipErrorInvalidImage);
  }
}

} // namespace sluice::emulator::hip

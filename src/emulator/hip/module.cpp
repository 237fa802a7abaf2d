//===- module.cpp - loaded code objects and their kernels -----------------------------------------------===//
//
// An image comes as a bare pointer, so its size is what its own headers say.
//
//===----------------------------------------------------------------------------------------------------===//
#include "emulator/hip/module.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <string_view>

#include "emulator/hip/device.h"
#include "emulator/hip/error.h"

namespace sluice::emulator::hip {

namespace {

using package::CodeObject;
using package::CodeObjectError;
using package::CodeObjectFault;
using package::Kernel;
using package::KernelArgument;
using package::TargetFeature;

constexpr std::string_view elf_magic = "\x7f"
                                       "ELF";
constexpr std::string_view bundle_magic = "__CLANG_OFFLOAD_BUNDLE__";
constexpr std::string_view compressed_bundle_magic = "CCOB";
// Code for the chip itself comes before code for its family.
constexpr std::string_view targets[] = {"amdgcn-amd-amdhsa--gfx942", "amdgcn-amd-amdhsa--gfx9-4-generic"};
constexpr uint64_t most_bundle_entries = 4096;
constexpr uint64_t longest_entry_id = 4096;
constexpr uint64_t longest_image = uint64_t(1) << 40;

bool starts_with(const std::byte *bytes, std::string_view magic) {
  return std::memcmp(bytes, magic.data(), magic.size()) == 0;
}

uint64_t read_u64(const std::byte *at) {
  uint64_t value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

/// Whether code for a target runs on this device: "gfx942", or with features that the device has.
bool runs_here(std::string_view features) {
  while (!features.empty()) {
    features.remove_prefix(1); // ':'
    const size_t end = std::min(features.find(':'), features.size());
    const std::string_view feature = features.substr(0, end);
    if (feature != "sramecc+" && feature != "xnack-") return false;
    features.remove_prefix(end);
  }
  return true;
}

/// The entry of a bundle for a target. The ids are "<kind>-amdgcn-amd-amdhsa--gfx942[:features]".
std::optional<std::span<const std::byte>> find_entry(const std::byte *bundle, std::string_view wanted) {
  const uint64_t count = read_u64(bundle + bundle_magic.size());
  require(count <= most_bundle_entries, hipErrorInvalidImage);
  const std::byte *at = bundle + bundle_magic.size() + 8;
  for (uint64_t i = 0; i < count; ++i) {
    const uint64_t offset = read_u64(at);
    const uint64_t size = read_u64(at + 8);
    const uint64_t id_bytes = read_u64(at + 16);
    require(id_bytes <= longest_entry_id, hipErrorInvalidImage);
    const std::string_view id(reinterpret_cast<const char *>(at + 24), id_bytes);
    at += 24 + id_bytes;
    const size_t target = id.find(wanted);
    if (target == std::string_view::npos || target == 0 || id[target - 1] != '-') continue;
    const std::string_view features = id.substr(target + wanted.size());
    if ((features.empty() || features.front() == ':') && runs_here(features)) {
      require(offset <= longest_image && size <= longest_image, hipErrorInvalidImage);
      return std::span(bundle + offset, size);
    }
  }
  return std::nullopt;
}

CodeObject parse(const std::vector<std::byte> &elf) {
  try {
    CodeObject object = CodeObject::parse(elf);
    // The device is sramecc+ and xnack-.
    require(object.xnack() != TargetFeature::on && object.sramecc() != TargetFeature::off,
            hipErrorNoBinaryForGpu);
    return object;
  } catch (const CodeObjectError &error) {
    throw Failure(error.fault() == CodeObjectFault::wrong_machine ? hipErrorNoBinaryForGpu
                                                                  : hipErrorInvalidImage);
  }
}

} // namespace

Module::Module(std::vector<std::byte> elf, int device)
    : bytes(std::move(elf)), code_object(parse(bytes)), on_device(device) {
  try {
    loaded = std::make_unique<Program>(bytes);
  } catch (const std::runtime_error &) {
    throw Failure(hipErrorInvalidImage);
  }
  std::byte *const image = loaded->image().data();
  for (const package::Segment &segment : code_object.segments()) {
    if (segment.memory_bytes == 0) continue;
    std::byte *const start = image + segment.address;
    if (Device::get().memory().attach(start, segment.memory_bytes, segment.writable, uint8_t(device)))
      attached.push_back(start);
  }
}

Module::~Module() {
  for (void *start : attached)
    Device::get().memory().detach(start);
}

std::vector<std::byte> code_object_of_image(const void *image) {
  require(image != nullptr, hipErrorInvalidValue);
  const auto *start = static_cast<const std::byte *>(image);
  if (starts_with(start, bundle_magic)) {
    for (std::string_view target : targets)
      if (const auto entry = find_entry(start, target)) return {entry->begin(), entry->end()};
    throw Failure(hipErrorNoBinaryForGpu);
  }
  if (starts_with(start, compressed_bundle_magic)) throw Failure(hipErrorNotSupported);
  require(starts_with(start, elf_magic), hipErrorInvalidImage);
  try {
    return {start, start + package::elf_file_bytes(start)};
  } catch (const CodeObjectError &) {
    throw Failure(hipErrorInvalidImage);
  }
}

std::vector<std::byte> kernel_arguments(const Kernel &kernel, void **parameters, void **extra) {
  require(parameters == nullptr || extra == nullptr, hipErrorInvalidValue);
  const uint32_t explicit_end = kernel.explicit_kernarg_bytes();
  uint32_t hidden_start = kernel.kernarg_bytes;
  for (const KernelArgument &argument : kernel.arguments)
    if (argument.hidden()) hidden_start = std::min(hidden_start, argument.offset);

  if (extra != nullptr) {
    const auto word = [extra](int index) { return reinterpret_cast<uintptr_t>(extra[index]); };
    require(word(0) == launch_buffer_pointer && word(2) == launch_buffer_size && word(4) == launch_end,
            hipErrorInvalidValue);
    const auto *const given = static_cast<const std::byte *>(extra[1]);
    require(extra[3] != nullptr, hipErrorInvalidValue);
    size_t size;
    std::memcpy(&size, extra[3], sizeof size);
    require((given != nullptr || size == 0) && size >= explicit_end, hipErrorInvalidValue);
    return {given, given + std::min<size_t>(size, std::max(explicit_end, hidden_start))};
  }
  std::vector<std::byte> buffer(explicit_end);
  if (explicit_end == 0) return buffer;
  require(parameters != nullptr && !kernel.arguments.empty(), hipErrorInvalidValue);
  size_t index = 0;
  for (const KernelArgument &argument : kernel.arguments) {
    if (argument.hidden()) continue;
    const void *const value = parameters[index++];
    require(value != nullptr, hipErrorInvalidValue);
    std::memcpy(buffer.data() + argument.offset, value, argument.size);
  }
  return buffer;
}

} // namespace sluice::emulator::hip

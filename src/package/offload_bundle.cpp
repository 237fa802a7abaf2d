//===- offload_bundle.cpp - the HIP fat binary ----------------------------------------------------------===//
#include "package/offload_bundle.h"

#include "support/bytes.h"
#include "support/failure.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include <zstd.h>

namespace sluice::package {
namespace {

constexpr std::string_view magic = "__CLANG_OFFLOAD_BUNDLE__";
constexpr std::string_view host_id = "host-x86_64-unknown-linux--";
constexpr uint64_t code_alignment = 4096;
constexpr std::string_view compressed_magic = "CCOB";
constexpr uint16_t zstd_method = 1;
// For bundles whose size only their own header gives; a larger number means a damaged header.
constexpr uint64_t most_entries = 4096;
constexpr uint64_t longest_id = 4096;
constexpr uint64_t most_bytes = uint64_t(1) << 36;

uint64_t align_up(uint64_t offset) {
  return (offset + code_alignment - 1) & ~(code_alignment - 1);
}

[[noreturn]] void corrupt(std::string message) {
  throw support::Failure(support::Status::pack_corrupt, "pack", "offload bundle: " + std::move(message));
}

uint64_t checked_bytes(uint64_t bytes) {
  if (bytes > most_bytes) corrupt(support::text("claims to have ", bytes, " bytes"));
  return bytes;
}

struct CompressedHeader {
  uint64_t header_bytes;
  uint64_t file_bytes;
  uint64_t bundle_bytes;
};

CompressedHeader read_compressed_header(const std::byte *at) {
  const auto version = support::load_little<uint16_t>(at + 4);
  const auto method = support::load_little<uint16_t>(at + 6);
  if ((version != 2 && version != 3) || method != zstd_method)
    throw support::Failure(support::Status::unsupported, "bundle",
                           support::text("compressed offload bundle of version ", version, " and method ",
                                         method, ": versions 2 and 3 and method 1 (zstd) are known"));
  CompressedHeader header;
  if (version == 2)
    header = {24, support::load_little<uint32_t>(at + 8), support::load_little<uint32_t>(at + 12)};
  else
    header = {32, support::load_little<uint64_t>(at + 8), support::load_little<uint64_t>(at + 16)};
  checked_bytes(header.file_bytes);
  checked_bytes(header.bundle_bytes);
  if (header.file_bytes < header.header_bytes) corrupt("is shorter than its header");
  return header;
}

/// Whether a device has all of "[:feature][:feature]", each a name and '+' or '-'.
bool has_features(std::string_view wanted, std::span<const std::string_view> features) {
  while (!wanted.empty()) {
    wanted.remove_prefix(1); // ':'
    const size_t end = std::min(wanted.find(':'), wanted.size());
    if (std::ranges::find(features, wanted.substr(0, end)) == features.end()) return false;
    wanted.remove_prefix(end);
  }
  return true;
}

} // namespace

std::string bundle_id(std::string_view chip) {
  return "hipv4-amdgcn-amd-amdhsa--" + std::string(chip);
}

std::vector<std::byte> write_bundle(std::span<const BundleEntry> entries) {
  std::vector<BundleEntry> all = {{std::string(host_id), {}}};
  all.insert(all.end(), entries.begin(), entries.end());

  uint64_t header_bytes = magic.size() + sizeof(uint64_t);
  for (const BundleEntry &entry : all)
    header_bytes += 3 * sizeof(uint64_t) + entry.id.size();
  std::vector<std::byte> out;
  support::append_bytes(out, std::as_bytes(std::span(magic)));
  support::append_little<uint64_t>(out, all.size());
  uint64_t offset = align_up(header_bytes);
  for (const BundleEntry &entry : all) {
    support::append_little<uint64_t>(out, offset);
    support::append_little<uint64_t>(out, entry.code.size());
    support::append_little<uint64_t>(out, entry.id.size());
    support::append_bytes(out, std::as_bytes(std::span(entry.id)));
    offset = align_up(offset + entry.code.size());
  }
  for (const BundleEntry &entry : all) {
    out.resize(align_up(out.size()));
    support::append_bytes(out, entry.code);
  }
  return out;
}

std::vector<BundleEntry> read_bundle(std::span<const std::byte> bundle) {
  size_t at = 0;
  auto take = [&](uint64_t size) {
    if (size > bundle.size() - at) corrupt("ends inside its table of entries");
    const std::span<const std::byte> taken = bundle.subspan(at, size);
    at += size;
    return taken;
  };
  auto characters = [](std::span<const std::byte> taken) {
    return std::string_view(reinterpret_cast<const char *>(taken.data()), taken.size());
  };
  auto take_u64 = [&] { return support::load_little<uint64_t>(take(sizeof(uint64_t)).data()); };

  if (bundle.size() < magic.size() || characters(take(magic.size())) != magic) corrupt("wrong magic");
  const uint64_t count = take_u64();
  std::vector<BundleEntry> entries;
  for (uint64_t i = 0; i < count; ++i) {
    const uint64_t offset = take_u64();
    const uint64_t size = take_u64();
    const uint64_t id_bytes = take_u64();
    const std::string id(characters(take(id_bytes)));
    if (offset > bundle.size() || size > bundle.size() - offset) {
      corrupt(support::text("entry ", id, " is outside the bundle"));
    }
    entries.push_back({id, bundle.subspan(offset, size)});
  }
  return entries;
}

BundleForm bundle_form(const std::byte *image) {
  if (std::memcmp(image, compressed_magic.data(), compressed_magic.size()) == 0)
    return BundleForm::compressed;
  const bool plain = std::equal(magic.begin(), magic.end(), reinterpret_cast<const char *>(image));
  return plain ? BundleForm::plain : BundleForm::none;
}

uint64_t bundle_file_bytes(const std::byte *image) {
  if (bundle_form(image) == BundleForm::compressed) return read_compressed_header(image).file_bytes;
  const auto count = support::load_little<uint64_t>(image + magic.size());
  if (count > most_entries) corrupt(support::text("claims to have ", count, " entries"));
  uint64_t end = magic.size() + sizeof(uint64_t);
  uint64_t code_end = 0;
  for (uint64_t i = 0; i < count; ++i) {
    const std::byte *const entry = image + end;
    const uint64_t offset = checked_bytes(support::load_little<uint64_t>(entry));
    const uint64_t size = checked_bytes(support::load_little<uint64_t>(entry + 8));
    const auto id_bytes = support::load_little<uint64_t>(entry + 16);
    if (id_bytes > longest_id) corrupt(support::text("has an id of ", id_bytes, " bytes"));
    code_end = std::max(code_end, offset + size);
    end += 3 * sizeof(uint64_t) + id_bytes;
  }
  return std::max(end, code_end);
}

std::vector<std::byte> decompress_bundle(std::span<const std::byte> compressed) {
  constexpr size_t shortest_header = 24;
  if (compressed.size() < shortest_header || bundle_form(compressed.data()) != BundleForm::compressed)
    corrupt("is not a compressed bundle");
  const CompressedHeader header = read_compressed_header(compressed.data());
  if (header.file_bytes > compressed.size())
    corrupt(support::text(compressed.size(), " bytes of ", header.file_bytes));
  const auto frame = compressed.subspan(header.header_bytes, header.file_bytes - header.header_bytes);
  // The check against the frame's own size guards against a header that asks for more memory than exists.
  if (ZSTD_getFrameContentSize(frame.data(), frame.size()) != header.bundle_bytes)
    corrupt("its header and its zstd frame differ in size");
  std::vector<std::byte> bundle(header.bundle_bytes);
  const size_t size = ZSTD_decompress(bundle.data(), bundle.size(), frame.data(), frame.size());
  if (ZSTD_isError(size)) corrupt(support::text("zstd: ", ZSTD_getErrorName(size)));
  if (size != bundle.size()) corrupt("its zstd frame is cut short");
  return bundle;
}

const BundleEntry *select_entry(std::span<const BundleEntry> entries, const Chip &chip,
                                std::span<const std::string_view> features) {
  for (const std::string_view name : {chip.name, chip.generic_name}) {
    if (name.empty()) continue;
    // "<kind>-amdgcn-amd-amdhsa--gfx942[:feature][:feature]"
    const std::string target = "-amdgcn-amd-amdhsa--" + std::string(name);
    for (const BundleEntry &entry : entries) {
      const size_t at = entry.id.find(target);
      if (at == std::string::npos || at == 0) continue;
      const std::string_view rest = std::string_view(entry.id).substr(at + target.size());
      if ((rest.empty() || rest.front() == ':') && has_features(rest, features)) return &entry;
    }
  }
  return nullptr;
}

} // namespace sluice::package

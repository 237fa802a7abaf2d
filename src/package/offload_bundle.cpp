//===- offload_bundle.cpp - the HIP fat binary
//------------------------------------------------------------===//
#include "package/offload_bundle.h"

#include "support/bytes.h"
#include "support/failure.h"

#include <cstdint>

namespace sluice::package {
namespace {

constexpr std::string_view magic = "__CLANG_OFFLOAD_BUNDLE__";
constexpr std::string_view host_id = "host-x86_64-unknown-linux--";
constexpr uint64_t code_alignment = 4096;

uint64_t align_up(uint64_t offset) {
  return (offset + code_alignment - 1) & ~(code_alignment - 1);
}

[[noreturn]] void corrupt(std::string message) {
  throw support::Failure(support::Status::pack_corrupt, "pack", "offload bundle: " + std::move(message));
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

} // namespace sluice::package

//===- pack_reader.cpp - reads kernel packs -------------------------------------------------------------===//
#include "package/pack_reader.h"

#include "package/pack_format.h"
#include "support/bytes.h"
#include "support/checksum.h"
#include "support/failure.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include <zstd.h>
#include <zstd_errors.h>

namespace sluice::package {
namespace {

[[noreturn]] void corrupt(std::string message) {
  throw support::Failure(support::Status::pack_corrupt, "pack", "kernel pack: " + std::move(message));
}

/// Reads the manifest from front to back.
class Cursor {
public:
  explicit Cursor(std::span<const std::byte> bytes) : rest(bytes) {}

  template <typename Number> Number number() {
    return support::load_little<Number>(take(sizeof(Number)).data());
  }
  std::string string() {
    const std::span<const std::byte> characters = take(number<uint16_t>());
    return {reinterpret_cast<const char *>(characters.data()), characters.size()};
  }
  std::vector<std::string> strings() {
    std::vector<std::string> out(number<uint16_t>());
    for (std::string &value : out)
      value = string();
    return out;
  }
  bool at_end() const { return rest.empty(); }

private:
  std::span<const std::byte> take(size_t size) {
    if (size > rest.size()) corrupt("the manifest ends inside a field");
    const std::span<const std::byte> taken = rest.first(size);
    rest = rest.subspan(size);
    return taken;
  }

  std::span<const std::byte> rest;
};

PackHeader read_header(std::span<const std::byte> bytes) {
  PackHeader header;
  if (bytes.size() < sizeof header) {
    corrupt(support::text(bytes.size(), " bytes are less than its header of ", sizeof header));
  }
  std::memcpy(&header, bytes.data(), sizeof header);
  if (std::memcmp(header.magic, pack_magic, sizeof pack_magic) != 0) corrupt("wrong magic");
  if (support::xxh64(bytes.first(offsetof(PackHeader, header_checksum))) != header.header_checksum) {
    corrupt("the header's checksum does not match");
  }
  if (header.version != pack_version) {
    corrupt(support::text("version ", header.version, "; this library reads version ", pack_version));
  }
  if (header.pack_bytes != bytes.size()) {
    corrupt(support::text("it has ", bytes.size(), " bytes instead of ", header.pack_bytes));
  }
  if (header.manifest_bytes > bytes.size() - sizeof header) corrupt("the manifest is longer than the pack");
  return header;
}

KernelEntry read_entry(Cursor &cursor) {
  KernelEntry entry;
  const std::string name = cursor.string();
  const std::optional<KernelName> parsed = parse_kernel_name(name);
  if (!parsed) corrupt(support::text("'", name, "' does not match the grammar of kernel names"));
  entry.name = *parsed;
  entry.threads = cursor.number<uint32_t>();
  entry.lds_bytes = cursor.number<uint32_t>();
  entry.kernarg_bytes = cursor.number<uint32_t>();
  entry.kernarg_hash = cursor.number<uint64_t>();
  entry.features = cursor.strings();
  entry.p_rounding = cursor.string();
  entry.stages = cursor.number<uint32_t>();
  entry.copy_groups = cursor.strings();
  entry.lds_bytes_without_reuse = cursor.number<uint32_t>();
  entry.vgprs = cursor.number<uint32_t>();
  entry.loop_matrix_clk = cursor.number<uint32_t>();
  entry.loop_slot_clk = cursor.number<uint32_t>();
  entry.loop_wave_clk = cursor.number<uint32_t>();
  entry.chips = cursor.strings();
  return entry;
}

} // namespace

PackReader::PackReader(std::span<const std::byte> pack) : bytes(pack) {
  const PackHeader header = read_header(bytes);
  const std::span<const std::byte> manifest_bytes = bytes.subspan(sizeof header, header.manifest_bytes);
  manifest_checksum = support::xxh64(manifest_bytes);
  if (manifest_checksum != header.manifest_checksum) corrupt("the manifest's checksum does not match");

  Cursor cursor(manifest_bytes);
  contents.generator = cursor.string();
  contents.llvm_version = cursor.string();
  uint64_t offset = sizeof header + header.manifest_bytes;
  std::string previous;
  for (uint32_t i = 0; i < header.kernel_count; ++i) {
    PackedKernel kernel = {read_entry(cursor), offset, cursor.number<uint64_t>(), cursor.number<uint64_t>(),
                           cursor.number<uint64_t>()};
    const std::string name = format_kernel_name(kernel.entry.name);
    if (name <= previous) corrupt(support::text(name, " is out of order after ", previous));
    previous = name;
    if (kernel.compressed_bytes > bytes.size() - offset) {
      corrupt(support::text("the code of ", name, " is outside the pack"));
    }
    if (support::xxh64(bytes.subspan(offset, kernel.compressed_bytes)) != kernel.checksum) {
      corrupt(support::text("the checksum of ", name, " does not match"));
    }
    offset += kernel.compressed_bytes;
    contents.kernels.push_back(std::move(kernel));
  }
  if (!cursor.at_end()) corrupt("the manifest continues after its last kernel");
  if (offset != bytes.size()) corrupt("bytes follow the last kernel");
}

const PackedKernel *PackReader::find(std::string_view kernel) const {
  const auto at = std::find_if(contents.kernels.begin(), contents.kernels.end(), [&](const PackedKernel &k) {
    return format_kernel_name(k.entry.name) == kernel;
  });
  return at == contents.kernels.end() ? nullptr : &*at;
}

std::span<const std::byte> PackReader::compressed(const PackedKernel &kernel) const {
  return bytes.subspan(kernel.offset, kernel.compressed_bytes);
}

std::vector<std::byte> PackReader::bundle(const PackedKernel &kernel) const {
  const std::span<const std::byte> frame = compressed(kernel);
  const std::string name = format_kernel_name(kernel.entry.name);
  if (kernel.bundle_bytes >= bundle_bytes_limit) {
    corrupt(support::text("the bundle of ", name, " claims ", kernel.bundle_bytes, " bytes"));
  }
  // Before the allocation: a few bytes may claim a quarter of a gigabyte.
  const unsigned long long claimed = ZSTD_getFrameContentSize(frame.data(), frame.size());
  if (claimed < ZSTD_CONTENTSIZE_ERROR && claimed != kernel.bundle_bytes) {
    corrupt(support::text("the bundle of ", name, " has ", uint64_t{claimed}, " bytes instead of ",
                          kernel.bundle_bytes));
  }
  std::vector<std::byte> out(kernel.bundle_bytes);
  const size_t size = ZSTD_decompress(out.data(), out.size(), frame.data(), frame.size());
  if (ZSTD_isError(size)) {
    if (ZSTD_getErrorCode(size) == ZSTD_error_memory_allocation) throw std::bad_alloc();
    corrupt(support::text("the bundle of ", name, ": zstd: ", ZSTD_getErrorName(size)));
  }
  if (size != out.size()) {
    corrupt(support::text("the bundle of ", name, " has ", size, " bytes instead of ", out.size()));
  }
  return out;
}

} // namespace sluice::package

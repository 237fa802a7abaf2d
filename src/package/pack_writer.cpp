//===- pack_writer.cpp - writes kernel packs ------------------------------------------------------------===//
#include "package/pack_writer.h"

#include "package/offload_bundle.h"
#include "package/pack_format.h"
#include "support/bytes.h"
#include "support/checksum.h"
#include "support/failure.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <new>
#include <utility>

#include <zstd.h>

namespace sluice::package {
namespace {

constexpr int compression_level = 19;

[[noreturn]] void refuse(std::string field, std::string message) {
  throw support::Failure(support::Status::invalid_argument, std::move(field), std::move(message));
}

std::vector<std::byte> compress(std::span<const std::byte> input) {
  ZSTD_CCtx *context = ZSTD_createCCtx();
  if (context == nullptr) throw std::bad_alloc();
  ZSTD_CCtx_setParameter(context, ZSTD_c_compressionLevel, compression_level);
  ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, 1);
  std::vector<std::byte> out(ZSTD_compressBound(input.size()));
  const size_t size = ZSTD_compress2(context, out.data(), out.size(), input.data(), input.size());
  ZSTD_freeCCtx(context);
  if (ZSTD_isError(size)) refuse("code", support::text("zstd: ", ZSTD_getErrorName(size)));
  out.resize(size);
  return out;
}

void append_string(std::vector<std::byte> &out, const std::string &value) {
  if (value.size() > std::numeric_limits<uint16_t>::max()) {
    refuse("manifest", support::text("a string of ", value.size(), " bytes does not fit its 16-bit length"));
  }
  support::append_little(out, uint16_t(value.size()));
  support::append_bytes(out, std::as_bytes(std::span(value)));
}

void append_strings(std::vector<std::byte> &out, const std::vector<std::string> &values) {
  support::append_little(out, uint16_t(values.size()));
  for (const std::string &value : values)
    append_string(out, value);
}

} // namespace

PackWriter::PackWriter(std::string generator_, std::string llvm_version_)
    : generator(std::move(generator_)), llvm_version(std::move(llvm_version_)) {}

void PackWriter::add(KernelEntry entry, std::span<const ChipCode> code) {
  const std::string name = format_kernel_name(entry.name);
  if (parse_kernel_name(name) != entry.name) {
    refuse("name", support::text("'", name, "' does not match the grammar of kernel names"));
  }
  std::vector<ChipCode> sorted(code.begin(), code.end());
  std::sort(sorted.begin(), sorted.end(), [](const auto &a, const auto &b) { return a.chip < b.chip; });
  if (sorted.empty()) refuse("code", support::text(name, " has no code object"));
  std::vector<BundleEntry> bundle_entries;
  entry.chips.clear();
  for (const ChipCode &object : sorted) {
    if (!entry.chips.empty() && entry.chips.back() == object.chip) {
      refuse("code", support::text(name, " has two code objects for ", object.chip));
    }
    if (object.elf.empty()) {
      refuse("code", support::text(name, " has an empty code object for ", object.chip));
    }
    entry.chips.push_back(object.chip);
    bundle_entries.push_back({bundle_id(object.chip), object.elf});
  }
  const std::vector<std::byte> bundle = write_bundle(bundle_entries);
  if (bundle.size() >= bundle_bytes_limit) {
    refuse("code", support::text(name, " has a bundle of ", bundle.size(), " bytes; the limit is ",
                                 bundle_bytes_limit));
  }
  insert({std::move(entry), bundle.size(), compress(bundle)});
}

void PackWriter::copy(KernelEntry entry, const PackReader &pack, const PackedKernel &kernel) {
  if (entry.name != kernel.entry.name || entry.chips != kernel.entry.chips)
    refuse("name", "a copied kernel has another name or other chips");
  const std::span<const std::byte> compressed = pack.compressed(kernel);
  insert({std::move(entry), kernel.bundle_bytes, {compressed.begin(), compressed.end()}});
}

void PackWriter::insert(Kernel kernel) {
  const std::string name = format_kernel_name(kernel.entry.name);
  const auto at =
      std::lower_bound(kernels.begin(), kernels.end(), name, [](const Kernel &other, const auto &n) {
        return format_kernel_name(other.entry.name) < n;
      });
  if (at != kernels.end() && at->entry.name == kernel.entry.name)
    refuse("name", support::text(name, " was added twice"));
  kernels.insert(at, std::move(kernel));
}

std::vector<std::byte> PackWriter::finish() const {
  std::vector<std::byte> manifest;
  append_string(manifest, generator);
  append_string(manifest, llvm_version);
  uint64_t code_bytes = 0;
  for (const Kernel &kernel : kernels) {
    append_string(manifest, format_kernel_name(kernel.entry.name));
    support::append_little(manifest, kernel.entry.threads);
    support::append_little(manifest, kernel.entry.lds_bytes);
    support::append_little(manifest, kernel.entry.kernarg_bytes);
    support::append_little(manifest, kernel.entry.kernarg_hash);
    append_strings(manifest, kernel.entry.features);
    append_string(manifest, kernel.entry.p_rounding);
    support::append_little(manifest, kernel.entry.stages);
    append_strings(manifest, kernel.entry.copy_groups);
    support::append_little(manifest, kernel.entry.lds_bytes_without_reuse);
    support::append_little(manifest, kernel.entry.vgprs);
    support::append_little(manifest, kernel.entry.loop_matrix_clk);
    support::append_little(manifest, kernel.entry.loop_slot_clk);
    support::append_little(manifest, kernel.entry.loop_wave_clk);
    append_strings(manifest, kernel.entry.chips);
    support::append_little(manifest, uint64_t{kernel.compressed.size()});
    support::append_little(manifest, kernel.bundle_bytes);
    support::append_little(manifest, support::xxh64(kernel.compressed));
    code_bytes += kernel.compressed.size();
  }

  PackHeader header = {};
  std::memcpy(header.magic, pack_magic, sizeof pack_magic);
  header.version = pack_version;
  header.kernel_count = uint32_t(kernels.size());
  header.pack_bytes = sizeof header + manifest.size() + code_bytes;
  header.manifest_bytes = manifest.size();
  header.manifest_checksum = support::xxh64(manifest);
  const auto header_bytes = std::as_bytes(std::span(&header, 1));
  header.header_checksum = support::xxh64(header_bytes.first(offsetof(PackHeader, header_checksum)));

  std::vector<std::byte> out;
  out.reserve(header.pack_bytes);
  support::append_bytes(out, header_bytes);
  support::append_bytes(out, manifest);
  for (const Kernel &kernel : kernels)
    support::append_bytes(out, kernel.compressed);
  return out;
}

} // namespace sluice::package

//===- pack_merge.cpp - one kernel pack out of several --------------------------------------------------===//
#include "package/pack_merge.h"

#include "package/offload_bundle.h"
#include "package/pack_writer.h"
#include "support/failure.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

namespace sluice::package {
namespace {

[[noreturn]] void refuse(std::string message) {
  throw support::Failure(support::Status::invalid_argument, "parts", std::move(message));
}

/// A kernel in one of the packs.
struct Part {
  const PackReader *pack;
  const PackedKernel *kernel;
};

struct Merged {
  KernelEntry entry;
  std::vector<std::vector<std::byte>> bundles; // `code` points into them
  std::vector<ChipCode> code;
};

/// The entry without the fields in which the chips of a kernel may differ.
KernelEntry in_common(KernelEntry entry) {
  entry.lds_bytes = entry.lds_bytes_without_reuse = 0;
  entry.vgprs = entry.loop_matrix_clk = entry.loop_slot_clk = entry.loop_wave_clk = 0;
  entry.chips.clear();
  return entry;
}

void add(Merged &merged, const KernelEntry &entry, std::vector<std::byte> bundle) {
  if (merged.bundles.empty()) merged.entry = entry;
  if (in_common(merged.entry) != in_common(entry)) {
    refuse(support::text(format_kernel_name(entry.name), " for ", entry.chips.front(),
                         " differs from that for ", merged.entry.chips.front(),
                         " in more than its code, LDS and speed"));
  }
  merged.entry.lds_bytes = std::max(merged.entry.lds_bytes, entry.lds_bytes);
  merged.entry.lds_bytes_without_reuse =
      std::max(merged.entry.lds_bytes_without_reuse, entry.lds_bytes_without_reuse);
  // Only one chip's code is measured; the others' figures are zeros.
  for (uint32_t KernelEntry::*figure : {&KernelEntry::vgprs, &KernelEntry::loop_matrix_clk,
                                        &KernelEntry::loop_slot_clk, &KernelEntry::loop_wave_clk})
    merged.entry.*figure = std::max(merged.entry.*figure, entry.*figure);
  merged.bundles.push_back(std::move(bundle));
  const std::vector<BundleEntry> entries = read_bundle(merged.bundles.back());
  for (const std::string &chip : entry.chips) {
    const auto at = std::find_if(entries.begin(), entries.end(),
                                 [&](const BundleEntry &e) { return e.id == bundle_id(chip); });
    if (at == entries.end()) refuse(support::text(format_kernel_name(entry.name), " has no code for ", chip));
    merged.code.push_back({chip, at->code});
  }
}

void add_merged(PackWriter &writer, const std::vector<Part> &found) {
  Merged merged;
  for (const Part &part : found)
    add(merged, part.kernel->entry, part.pack->bundle(*part.kernel));
  writer.add(merged.entry, merged.code);
}

} // namespace

std::vector<std::byte> merge_packs(std::span<const PackReader> parts) {
  if (parts.empty()) refuse("the list of packs to merge is empty");
  const Manifest &first = parts.front().manifest();
  std::map<std::string, std::vector<Part>> kernels;
  for (const PackReader &part : parts) {
    const Manifest &manifest = part.manifest();
    if (manifest.generator != first.generator || manifest.llvm_version != first.llvm_version) {
      refuse(support::text("packs by ", first.generator, ", LLVM ", first.llvm_version, ", and by ",
                           manifest.generator, ", LLVM ", manifest.llvm_version));
    }
    for (const PackedKernel &kernel : manifest.kernels)
      kernels[format_kernel_name(kernel.entry.name)].push_back({&part, &kernel});
  }
  PackWriter writer(first.generator, first.llvm_version);
  for (const auto &[name, found] : kernels) {
    // Most kernels are of one chip: compressing takes far longer than all else here.
    if (found.size() == 1)
      writer.copy(found[0].kernel->entry, *found[0].pack, *found[0].kernel);
    else
      add_merged(writer, found);
  }
  return writer.finish();
}

} // namespace sluice::package

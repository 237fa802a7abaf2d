//===- context.cpp - a device, its kernels, and the modules loaded onto it ------------------------------===//
#include "runtime/context.h"

#include "package/cache_op_kernargs.h"
#include "package/chips.h"
#include "package/offload_bundle.h"
#include "runtime/splits.h"
#include "support/failure.h"
#include "support/log.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace sluice::runtime {
namespace {

using support::Failure;
using support::LogLevel;
using support::Status;
using support::text;

struct KernargLayout {
  size_t bytes;
  uint64_t hash;
};

KernargLayout kernarg_layout(const std::string &operation) {
  if (operation == "kv_append")
    return {sizeof(package::AppendKernargs), package::kernarg_hash(package::append_kernarg_fields)};
  if (operation == "kv_copy")
    return {sizeof(package::PageCopyKernargs), package::kernarg_hash(package::page_copy_kernarg_fields)};
  if (operation == "append_step")
    return {sizeof(package::StepKernargs), package::kernarg_hash(package::step_kernarg_fields)};
  if (operation == "merge_states")
    return {sizeof(package::MergeKernargs), package::kernarg_hash(package::merge_kernarg_fields)};
  return {sizeof(package::AttentionKernargs), package::attention_kernarg_hash()};
}

bool has_legal_threads(const package::KernelEntry &entry) {
  if (!entry.name.is_attention()) return entry.threads == package::cache_op_threads;
  return entry.threads != 0 && entry.threads <= 1024 && entry.threads % entry.name.waves == 0;
}

/// Limits that the arithmetic of choices and grids assumes; no kernel is near them.
bool has_legal_tiles(const package::KernelName &name) {
  constexpr uint32_t max_head_dim = 4096, max_tile_q = 4096;
  const auto is_head_dim = [](uint32_t dim) { return dim % 8 == 0 && dim <= max_head_dim; };
  return !name.is_attention() || (is_head_dim(name.head_dim_qk) && is_head_dim(name.head_dim_v) &&
                                  name.tile_q <= max_tile_q && fixed_split_keys % name.tile_kv == 0);
}

/// A pack may be intact and still not be made for this library.
void check_entry(const package::KernelEntry &entry) {
  const std::string name = package::format_kernel_name(entry.name);
  const KernargLayout ours = kernarg_layout(entry.name.operation);
  if (entry.kernarg_bytes != ours.bytes || entry.kernarg_hash != ours.hash) {
    throw Failure(Status::pack_corrupt, "pack",
                  text("kernel pack: ", name, " takes arguments of layout ",
                       support::hexadecimal(entry.kernarg_hash), " and ", entry.kernarg_bytes,
                       " bytes; this library passes ", support::hexadecimal(ours.hash), " and ",
                       uint64_t{ours.bytes}));
  }
  if (!has_legal_tiles(entry.name)) {
    throw Failure(
        Status::pack_corrupt, "pack",
        text("kernel pack: ", name,
             " has unsupported sizes: head dims must be multiples of 8 up to 4096, query tiles must have at "
             "most 4096 rows, and the keys of a tile must divide ",
             fixed_split_keys));
  }
  if (!has_legal_threads(entry)) {
    throw Failure(Status::pack_corrupt, "pack",
                  text("kernel pack: ", name, " claims workgroups of ", entry.threads, " lanes"));
  }
}

/// The ELF file of a chip. HIP gets this and not the bundle, so that the choice is the same in all versions
/// of HIP.
std::span<const std::byte> code_for(const std::string &chip, std::span<const std::byte> bundle,
                                    const std::string &kernel) {
  for (const package::BundleEntry &entry : package::read_bundle(bundle))
    if (entry.id == package::bundle_id(chip)) return entry.code;
  throw Failure(Status::pack_corrupt, "pack",
                text("kernel pack: the bundle of ", kernel, " has no code for ", chip));
}

} // namespace

std::string join(const std::vector<std::string> &values) {
  std::string out;
  for (const std::string &value : values)
    out += (out.empty() ? "" : ",") + value;
  return out;
}

Context::Context(Device device, std::span<const std::byte> pack) : bound(std::move(device)), reader(pack) {
  std::vector<std::string> chips;
  for (const package::PackedKernel &kernel : reader.manifest().kernels) {
    check_entry(kernel.entry);
    for (const std::string &chip : kernel.entry.chips) {
      if (chip == bound.chip) usable.push_back(&kernel);
      if (std::find(chips.begin(), chips.end(), chip) == chips.end()) chips.push_back(chip);
    }
  }
  if (usable.empty()) {
    const std::string what = bound.hip ? "device" : "target";
    throw Failure(Status::wrong_arch, what,
                  text("the ", what, " is ", bound.arch, "; the kernel pack has kernels for ",
                       chips.empty() ? "no chip" : join(chips)));
  }
  check_fits();
  cache_ops = CacheOpKernels(usable);
  // Loaded modules are recorded in memory that is reserved now: loading the last one cannot fail after
  // hipModuleLoadData.
  loaded.reserve(usable.size());
  if (support::logs(LogLevel::info)) {
    support::log(LogLevel::info, text("context: ", bound.arch, ", ", bound.compute_units, " compute units, ",
                                      usable.size(), " kernels, HIP from ", bound.origin));
  }
}

/// A device of the right chip may still have less than the chip: it may be a part of one, or a caller's HIP
/// table may say so.
void Context::check_fits() const {
  const std::string what = bound.hip ? "device" : "target";
  const package::Chip *chip = package::find_chip(bound.chip);
  if (chip != nullptr && bound.wave_size != chip->wave_size) {
    throw Failure(Status::wrong_arch, what,
                  text("the ", what, " is ", bound.arch, " with waves of ", bound.wave_size,
                       " lanes; kernels for ", bound.chip, " have waves of ", chip->wave_size));
  }
  const package::KernelEntry &largest = (*std::ranges::max_element(usable, {}, [](const auto *kernel) {
                                          return kernel->entry.lds_bytes;
                                        }))->entry;
  if (largest.lds_bytes > bound.lds_bytes) {
    throw Failure(Status::wrong_arch, what,
                  text("the ", what, " is ", bound.arch, " with ", bound.lds_bytes,
                       " bytes of LDS for a workgroup; ", package::format_kernel_name(largest.name),
                       " needs ", largest.lds_bytes));
  }
}

Context::~Context() {
  if (loaded.empty()) return;
  // A failed HIP call must not keep the remaining modules loaded: each gets its call.
  std::optional<CurrentDevice> current;
  report_failure("context", [&] { current.emplace(bound); });
  for (const Loaded &one : loaded)
    report_failure("context",
                   [&] { check_hip(*bound.hip, bound.hip->hipModuleUnload(one.module), "hipModuleUnload"); });
}

void *Context::function(const package::PackedKernel &kernel) {
  const std::lock_guard lock(loading);
  for (const Loaded &one : loaded) {
    if (one.kernel == &kernel) return one.function;
  }
  const std::string name = package::format_kernel_name(kernel.entry.name);
  const std::vector<std::byte> bundle = reader.bundle(kernel);
  const std::span<const std::byte> elf = code_for(bound.chip, bundle, name);
  const HipTable &hip = *bound.hip;
  const CurrentDevice current(bound);
  Loaded one = {&kernel, nullptr, nullptr};
  check_hip(hip, hip.hipModuleLoadData(&one.module, elf.data()), "hipModuleLoadData", name);
  const HipError error = hip.hipModuleGetFunction(&one.function, one.module, name.c_str());
  if (error != hip_success) hip.hipModuleUnload(one.module);
  check_hip(hip, error, "hipModuleGetFunction", name);
  loaded.push_back(one);
  cache_ops.note_loaded(kernel, one.function);
  if (support::logs(LogLevel::info)) {
    support::log(LogLevel::info, text("loaded ", name, ", ", elf.size(), " bytes"));
  }
  return one.function;
}

} // namespace sluice::runtime

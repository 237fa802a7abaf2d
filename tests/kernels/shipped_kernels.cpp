//===- shipped_kernels.cpp - the machine code in a kernel pack ------------------------------------------===//
#include "shipped_kernels.h"

#include "package/dtypes.h"
#include "package/offload_bundle.h"
#include "package/pack_reader.h"

#include <bit>
#include <set>
#include <span>
#include <stdexcept>

namespace sluice::test {

template <typename Wanted>
static std::vector<ShippedKernel> read_kernels(const std::string &pack_path, Wanted is_wanted) {
  const std::vector<std::byte> bytes = read_file(pack_path);
  const package::PackReader pack(bytes);
  std::vector<ShippedKernel> kernels;
  for (const package::PackedKernel &packed : pack.manifest().kernels) {
    if (!is_wanted(packed.entry.name)) continue;
    const std::vector<std::byte> bundle = pack.bundle(packed);
    for (const package::BundleEntry &entry : package::read_bundle(bundle))
      if (entry.id == package::bundle_id("gfx942"))
        kernels.push_back({packed.entry,
                           package::format_kernel_name(packed.entry.name),
                           {entry.code.begin(), entry.code.end()}});
  }
  if (kernels.empty()) throw std::runtime_error("no kernel for gfx942 in " + pack_path);
  return kernels;
}

std::vector<ShippedKernel> read_kernels(const std::string &pack_path) {
  return read_kernels(
      pack_path, [](const package::KernelName &name) { return name.is_attention() && name.form.empty(); });
}

std::vector<ShippedKernel> read_all_attention_kernels(const std::string &pack_path) {
  return read_kernels(pack_path, [](const package::KernelName &name) { return name.is_attention(); });
}

std::vector<ShippedKernel> read_cache_op_kernels(const std::string &pack_path) {
  return read_kernels(pack_path, [](const package::KernelName &name) { return !name.is_attention(); });
}

/// Properties that kernels share if they are the same kind of code: the form, which decides whether V is in
/// the rows of K, the waves, and whether K and V have the type of Q, are converted, or are all FP8. For
/// kernels with 32 rows per wave also the keys of a step; for kernels of few rows and four waves the keys per
/// wave (fewer than 16: waves share them; more: blocks of 16), and whether the columns of K take one tile of
/// LDS or two.
static std::string kind_of(const package::KernelName &name) {
  const std::string kind = name.form + " " + std::to_string(name.waves) + " ";
  const bool is_in_blocks = package::is_in_blocks(name.kv_dtype);
  const std::string types = (name.kv_dtype.empty() ? ""
                             : is_in_blocks        ? name.kv_dtype
                                                   : "converted") +
                            std::string(name.o_dtype.empty() ? "" : "fp8");
  if (name.is_prefill()) return kind + std::to_string(name.tile_kv) + " " + types;
  if (name.waves != 4) return kind;
  const bool two_tiles = name.waves_dividing_keys() == 1 && !std::has_single_bit(name.head_dim_qk);
  return kind + std::to_string(name.tile_q / name.waves) + (two_tiles ? " two tiles " : " ") + types;
}

std::vector<ShippedKernel>
first_of_each_kind(std::vector<ShippedKernel> kernels,
                   const std::function<bool(const package::KernelName &)> &is_one_of_many) {
  std::set<std::string> kinds;
  std::erase_if(kernels, [&](const ShippedKernel &kernel) {
    return is_one_of_many(kernel.entry.name) && !kinds.insert(kind_of(kernel.entry.name)).second;
  });
  return kernels;
}

ShippedKernel read_code_object(const std::string &path, const std::string &kernel) {
  const auto name = package::parse_kernel_name(kernel);
  if (!name) throw std::runtime_error("not a kernel name: " + kernel);
  package::KernelEntry entry;
  entry.name = *name;
  entry.threads = name->waves * 64;
  return {entry, kernel, read_file(path)};
}

std::vector<ShippedKernel> read_arguments(const std::vector<std::string> &files) {
  if (files.size() == 1) return read_kernels(files[0]);
  if (files.size() == 2) return {read_code_object(files[0], files[1])};
  throw std::runtime_error("expected PACK or CODE-OBJECT KERNEL-NAME");
}

} // namespace sluice::test

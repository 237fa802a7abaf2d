//===- shipped_kernels.cpp - the machine code in a kernel pack ------------------------------------------===//
#include "shipped_kernels.h"

#include "package/offload_bundle.h"
#include "package/pack_reader.h"

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

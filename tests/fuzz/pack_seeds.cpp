//===- pack_seeds.cpp - small kernel packs out of a large one -------------------------------------------===//
//
//   usage: pack_seeds PACK DIRECTORY
//
// The smallest kernel of each operation and form, each in a pack of its own; and the smallest kernel that can
// split the keys of a row, with the kernels that merge the splits.
//
//===----------------------------------------------------------------------------------------------------===//
#include "package/offload_bundle.h"
#include "package/pack_reader.h"
#include "package/pack_writer.h"
#include "support/files.h"

#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

using namespace sluice;

namespace {

using Kernels = std::vector<const package::PackedKernel *>;

void write(const package::PackReader &pack, const Kernels &kernels, const std::filesystem::path &path) {
  package::PackWriter writer("pack_seeds", pack.manifest().llvm_version);
  for (const package::PackedKernel *kernel : kernels) {
    const std::vector<std::byte> bundle = pack.bundle(*kernel);
    std::vector<package::ChipCode> objects;
    for (const package::BundleEntry &entry : package::read_bundle(bundle))
      for (const std::string &chip : kernel->entry.chips)
        if (entry.id == package::bundle_id(chip)) objects.push_back({chip, entry.code});
    writer.add(kernel->entry, objects);
  }
  const std::vector<std::byte> bytes = writer.finish();
  std::ofstream file(path, std::ios::binary);
  file.write(reinterpret_cast<const char *>(bytes.data()), std::streamsize(bytes.size()));
  if (!file.flush()) throw std::runtime_error("cannot write " + path.string());
}

void write_seeds(const std::string &from, const std::filesystem::path &folder) {
  const std::vector<std::byte> bytes = test::read_file(from);
  const package::PackReader pack(bytes);
  std::map<std::string, const package::PackedKernel *> smallest; // by operation and form
  for (const package::PackedKernel &kernel : pack.manifest().kernels) {
    const package::PackedKernel *&best = smallest[kernel.entry.name.operation + " " + kernel.entry.name.form];
    if (!best || kernel.compressed_bytes < best->compressed_bytes) best = &kernel;
  }
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  for (const auto &[kind, kernel] : smallest)
    write(pack, {kernel}, folder / package::format_kernel_name(kernel->entry.name));
  Kernels dividing = {smallest.at("attention_forward decode")};
  for (const package::PackedKernel &kernel : pack.manifest().kernels)
    if (kernel.entry.name.operation == "merge_states") dividing.push_back(&kernel);
  write(pack, dividing, folder / "dividing");
}

} // namespace

int main(int count, char **arguments) {
  if (count != 3) return std::fputs("usage: pack_seeds PACK DIRECTORY\n", stderr), 2;
  try {
    write_seeds(arguments[1], arguments[2]);
  } catch (const std::exception &error) {
    return std::fprintf(stderr, "pack_seeds: %s\n", error.what()), 1;
  }
}

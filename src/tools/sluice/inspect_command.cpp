//===- inspect_command.cpp - sluice inspect: the contents of a kernel pack ------------------------------===//

#include "tools/shared/output_file.h"
#include "tools/shared/pack_file.h"
#include "tools/sluice/commands.h"

#include <fmt/format.h>
#include <optional>

namespace sluice::tools {

namespace {

void list(const PackFile &pack) {
  const package::Manifest &manifest = pack.reader().manifest();
  fmt::print("{}\npack {:016x} by {}, LLVM {}, {} kernels\n\n", pack.path(), pack.reader().id(),
             manifest.generator, manifest.llvm_version, manifest.kernels.size());
  fmt::print("{:<34} {:>6} {:>6} {:>8} {:>8} {:>8}  {:<13} {:<8} {}\n", "kernel", "lanes", "LDS", "kernarg",
             "packed", "bundle", "P rounds", "chips", "can");
  for (const package::PackedKernel &kernel : manifest.kernels)
    fmt::print("{:<34} {:>6} {:>6} {:>8} {:>8} {:>8}  {:<13} {:<8} {}\n",
               package::format_kernel_name(kernel.entry.name), kernel.entry.threads, kernel.entry.lds_bytes,
               kernel.entry.kernarg_bytes, kernel.compressed_bytes, kernel.bundle_bytes,
               kernel.entry.p_rounding, fmt::format("{}", fmt::join(kernel.entry.chips, ",")),
               fmt::join(kernel.entry.features, ","));
}

} // namespace

int inspect_command(const InspectOptions &options) {
  std::optional<OutputFile> bundle_file, elf_file;
  if (!options.bundle_file.empty()) bundle_file.emplace("--bundle", options.bundle_file);
  if (!options.elf_file.empty()) elf_file.emplace("--elf", options.elf_file);
  if (bundle_file && elf_file) OutputFile::refuse_same(*elf_file, *bundle_file);
  const PackFile pack(options.file);
  if (options.extract.empty()) {
    list(pack);
    return 0;
  }
  const package::PackedKernel &kernel = pack.kernel(options.extract);
  std::string report;
  if (bundle_file) {
    const std::vector<std::byte> bundle = pack.bundle(kernel);
    bundle_file->write({bundle});
    report += fmt::format("{} bytes of HIP fat binary written to {}\n", bundle.size(), options.bundle_file);
  }
  if (elf_file) {
    const std::vector<std::byte> elf = pack.elf(kernel, options.chip);
    elf_file->write({elf});
    report += fmt::format("{} bytes of {} ELF written to {}\n", elf.size(), options.chip, options.elf_file);
  }
  if (bundle_file) bundle_file->publish();
  if (elf_file) elf_file->publish();
  fmt::print("{}", report);
  return 0;
}

} // namespace sluice::tools

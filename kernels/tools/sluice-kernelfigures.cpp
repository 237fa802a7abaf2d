//===- sluice-kernelfigures.cpp - add the speed of machine code to a pack's manifest --------------------===//
//
//   sluice-kernelfigures IN OUT
//
// A separate program next to the generator: a change to the measurement recomputes the figures and leaves the
// kernels as they are.
//
//===----------------------------------------------------------------------------------------------------===//
#include "generate/KernelFigures.h"

#include "package/offload_bundle.h"
#include "package/pack_reader.h"
#include "package/pack_writer.h"

#include <cstdio>
#include <exception>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

using namespace sluice;

namespace {

constexpr const char *measured_chip = "gfx942"; // the chip whose machine code the figures can be read from

std::vector<std::byte> with_figures(std::span<const std::byte> pack) {
  const package::PackReader reader(pack);
  package::PackWriter writer(reader.manifest().generator, reader.manifest().llvm_version);
  for (const package::PackedKernel &kernel : reader.manifest().kernels) {
    package::KernelEntry entry = kernel.entry;
    const std::vector<std::byte> bundle = reader.bundle(kernel);
    for (const package::BundleEntry &code : package::read_bundle(bundle))
      if (code.id == package::bundle_id(measured_chip)) measure(entry, code.code);
    writer.copy(std::move(entry), reader, kernel);
  }
  return writer.finish();
}

} // namespace

int main(int count, char **arguments) {
  if (count != 3) {
    std::fprintf(stderr, "usage: sluice-kernelfigures IN OUT\n");
    return 2;
  }
  try {
    std::ifstream in(arguments[1], std::ios::binary);
    const std::string read{std::istreambuf_iterator<char>(in), {}};
    if (!in.good() && !in.eof()) throw std::runtime_error("cannot be read");
    const std::vector<std::byte> pack = with_figures(std::as_bytes(std::span(read)));
    std::ofstream out(arguments[2], std::ios::binary);
    out.write(reinterpret_cast<const char *>(pack.data()), std::streamsize(pack.size()));
    out.close();
    if (!out) throw std::runtime_error(std::string(arguments[2]) + " cannot be written");
  } catch (const std::exception &failure) {
    std::fprintf(stderr, "sluice-kernelfigures: %s: %s\n", arguments[1], failure.what());
    return 1;
  }
  return 0;
}

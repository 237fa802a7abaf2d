//===- loader_fuzz.cpp - any bytes as a code object -----------------------------------------------------===//
//
// Loading any file gives a program or an error.
//
//===----------------------------------------------------------------------------------------------------===//
#include <stdexcept>

#include "emulator/machine/machine.h"
#include "package/code_object.h"

using namespace sluice;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  const std::span elf(reinterpret_cast<const std::byte *>(data), size);
  // Zeroing a gigabyte for a file of a few bytes is within the limits, but finds nothing.
  constexpr uint64_t largest_image = 4 << 20;
  try {
    if (package::CodeObject::parse(elf).image_bytes() > largest_image) return 0;
    const emulator::Program program(elf);
    for (const emulator::KernelInfo &kernel : program.kernels())
      program.disassemble(kernel.name);
    const package::CodeObject object = package::CodeObject::parse(elf);
    for (const package::Symbol &symbol : object.symbols())
      program.variable(symbol.name);
  } catch (const std::runtime_error &) {
  }
  return 0;
}

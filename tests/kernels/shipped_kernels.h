//===- shipped_kernels.h - the machine code in a kernel pack
//-----------------------------------------------===//
#pragma once

#include "package/manifest.h"

#include <cstddef>
#include <string>
#include <vector>

namespace sluice::test {

struct ShippedKernel {
  package::KernelEntry entry;
  std::string name;
  std::vector<std::byte> elf; // for gfx942
};

std::vector<std::byte> read_file(const std::string &path);
std::vector<ShippedKernel> read_kernels(const std::string &pack_path);

} // namespace sluice::test

//===- shipped_kernels.h - the machine code in a kernel pack --------------------------------------------===//
#pragma once

#include "package/manifest.h"
#include "support/files.h"

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace sluice::test {

struct ShippedKernel {
  package::KernelEntry entry;
  std::string name;
  std::vector<std::byte> elf; // for gfx942
};

/// Kernels that compute attention on contiguous tensors, with tiles of rows of one head.
std::vector<ShippedKernel> read_kernels(const std::string &pack_path);
/// All attention kernels.
std::vector<ShippedKernel> read_all_attention_kernels(const std::string &pack_path);
/// The others.
std::vector<ShippedKernel> read_cache_op_kernels(const std::string &pack_path);
/// Without all but the first of each kind of code, among those that `is_one_of_many` names.
std::vector<ShippedKernel> first_of_each_kind(
    std::vector<ShippedKernel> kernels,
    const std::function<bool(const package::KernelName &)> &is_one_of_many = [](const package::KernelName &) {
      return true;
    });
/// A single code object, with the facts in the kernel's name.
ShippedKernel read_code_object(const std::string &path, const std::string &kernel);
/// The kernels that a program's arguments name: a pack, or a code object and the name of its kernel.
std::vector<ShippedKernel> read_arguments(const std::vector<std::string> &files);

} // namespace sluice::test

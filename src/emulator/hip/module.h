//===- module.h - loaded code objects and their kernels -------------------------------------------------===//
//
// A module owns a copy of its code object, the decoded program, and its device memory. Queued launches keep
// it alive, even if its handle is destroyed.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "emulator/hip/types.h"
#include "emulator/machine/machine.h"
#include "package/code_object.h"

namespace sluice::emulator::hip {

class Module {
public:
  /// Throws Failure if it has no code for this device or is not a code object.
  Module(std::vector<std::byte> elf, int device);
  ~Module();
  Module(const Module &) = delete;
  Module &operator=(const Module &) = delete;

  const package::CodeObject &object() const { return code_object; }
  const Program &program() const { return *loaded; }
  int device() const { return on_device; }

private:
  std::vector<std::byte> bytes;
  package::CodeObject code_object; // refers to `bytes`
  std::unique_ptr<Program> loaded;
  std::vector<void *> attached;
  const int on_device;
};

struct Function {
  std::shared_ptr<Module> module;
  const package::Kernel *kernel; // owned by the module
};

/// Returns the kernel's arguments without those that runtimes add, from exactly one of
/// hipModuleLaunchKernel's two ways to pass them. Throws Failure.
std::vector<std::byte> kernel_arguments(const package::Kernel &kernel, void **parameters, void **extra);

} // namespace sluice::emulator::hip

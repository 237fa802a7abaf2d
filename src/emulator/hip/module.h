//===- module.h - loaded code objects and their kernels -------------------------------------------------===//
//
// A module owns a copy of its code object, the decoded program, and its place in device memory. Launches that
// are queued keep it alive, whatever becomes of its handle.
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
  /// Throws Failure: no code for this device, or not a code object at all.
  Module(std::vector<std::byte> elf, int device);
  ~Module();
  Module(const Module &) = delete;
  Module &operator=(const Module &) = delete;

  const package::CodeObject &object() const { return code_object; }
  const Program &program() const { return *loaded; }
  int device() const { return on_device; }

private:
  std::vector<std::byte> bytes;
  package::CodeObject code_object; // of `bytes`
  std::unique_ptr<Program> loaded;
  std::vector<void *> attached;
  const int on_device;
};

struct Function {
  std::shared_ptr<Module> module;
  const package::Kernel *kernel; // of the module
};

/// The kernel's arguments up to those that runtimes add, from exactly one of hipModuleLaunchKernel's two ways
/// to give them. Throws Failure.
std::vector<std::byte> kernel_arguments(const package::Kernel &kernel, void **parameters, void **extra);

} // namespace sluice::emulator::hip

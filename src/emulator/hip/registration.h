//===- registration.h - the code objects, kernels and variables in a program ----------------------------===//
//
// A fat binary is loaded at the first use of one of its kernels or variables; errors in it are reported by
// that call.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "emulator/hip/types.h"

namespace sluice::emulator::hip {

struct FatBinary;

class Registry {
public:
  /// The process's registry. Never destroyed: programs unregister while they end.
  static Registry &get();

  FatBinary *add(const void *wrapper);
  /// Unloads the binary, and forgets its kernels and variables.
  void remove(FatBinary *binary);
  void add_kernel(FatBinary *binary, const void *kernel, const char *device_name);
  void add_variable(FatBinary *binary, const void *variable, const char *device_name);
  /// Creates the variable in memory that host and device can access, and points `*pointer` to it.
  void add_managed(FatBinary *binary, void **pointer, const void *initial, const char *device_name,
                   size_t size);

  /// Throws Failure(hipErrorInvalidDeviceFunction) if the address is not a kernel's.
  hipFunction_t function(const void *kernel);
  /// True if the address names a kernel.
  bool has_kernel(const void *kernel);

  struct Variable {
    std::byte *address;
    size_t size;
  };
  /// Throws Failure(hipErrorInvalidSymbol) if the address is not a variable's.
  Variable variable(const void *symbol);

private:
  struct Named {
    FatBinary *binary;
    std::string device_name;
  };

  static hipModule_t load(FatBinary &binary);

  std::mutex mutex;
  std::map<FatBinary *, std::unique_ptr<FatBinary>> binaries;
  std::map<const void *, Named> kernels;
  std::map<const void *, Named> variables;
};

} // namespace sluice::emulator::hip

//===- context.h - a device, its kernels, and the modules loaded onto it --------------------------------===//
#pragma once

#include "package/pack_reader.h"
#include "runtime/cache_op_kernels.h"
#include "runtime/device.h"
#include "runtime/library.h"

#include <sluice/sluice.h>

#include <cstddef>
#include <mutex>
#include <span>
#include <string>
#include <vector>

namespace sluice::runtime {

class Context {
public:
  /// Throws support::Failure: pack_corrupt, or wrong_arch if the pack has no kernel for the device or the
  /// device has less than its chip.
  Context(Device device, std::span<const std::byte> pack);
  Context(const Context &) = delete;
  Context &operator=(const Context &) = delete;
  ~Context();

  const Device &device() const { return bound; }

  /// The kernels for the device's chip, sorted by name.
  const std::vector<const package::PackedKernel *> &kernels() const { return usable; }

  /// The hipFunction_t of one of kernels(), loaded the first time. Throws support::Failure.
  void *function(const package::PackedKernel &kernel);

  /// The cache operations in kernels().
  const CacheOpKernels &cache_op_kernels() const { return cache_ops; }

  sluice_trace_fn trace = nullptr;
  void *trace_user = nullptr;
  RangeFunctions ranges; // null: no ranges

private:
  void check_fits() const;

  struct Loaded {
    const package::PackedKernel *kernel;
    void *module;
    void *function;
  };

  Device bound;
  package::PackReader reader;
  std::vector<const package::PackedKernel *> usable;
  std::mutex loading;
  std::vector<Loaded> loaded;
  CacheOpKernels cache_ops;
};

/// "a, b, c"
std::string join(const std::vector<std::string> &values);

} // namespace sluice::runtime

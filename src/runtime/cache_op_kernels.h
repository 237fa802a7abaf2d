//===- cache_op_kernels.h - the kernels of cache operations, found by their types -----------------------===//
#pragma once

#include "package/dtypes.h"
#include "package/manifest.h"

#include <sluice/sluice.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace sluice::runtime {

/// A call needs no plan, so this holds what a plan would.
struct CacheOpKernel {
  const package::PackedKernel *packed = nullptr; // null: no such kernel
  std::string name;
  std::atomic<void *> function = nullptr; // null until it is loaded
};

enum class CacheOperation : uint32_t { kv_append, kv_copy, append_step, merge_states };

class CacheOpKernels {
public:
  CacheOpKernels() = default;
  explicit CacheOpKernels(const std::vector<const package::PackedKernel *> &kernels);

  /// For types that sluice.h allows; the pack may have no kernel for them.
  const CacheOpKernel &find(CacheOperation operation, uint32_t from, uint32_t to) const {
    return (*table)[index(operation, from, to)];
  }

  /// Makes the kernel's hipFunction_t available to later calls of find.
  void note_loaded(const package::PackedKernel &kernel, void *function);

private:
  static constexpr size_t types = package::dtypes.size() + 1; // 0 is none
  using Table = std::array<CacheOpKernel, 4 * types * types>;

  static constexpr size_t index(CacheOperation operation, uint32_t from, uint32_t to) {
    return (size_t(operation) * types + from) * types + to;
  }

  std::unique_ptr<Table> table;
};

} // namespace sluice::runtime

//===- cache_op_kernels.cpp - the kernels of cache operations, found by their types ---------------------===//
#include "runtime/cache_op_kernels.h"

#include "runtime/dtype.h"

namespace sluice::runtime {

CacheOpKernels::CacheOpKernels(const std::vector<const package::PackedKernel *> &kernels)
    : table(std::make_unique<Table>()) {
  for (const package::PackedKernel *kernel : kernels) {
    const package::KernelName &name = kernel->entry.name;
    if (name.is_attention()) continue;
    const CacheOperation operation = name.operation == "kv_append"     ? CacheOperation::kv_append
                                     : name.operation == "kv_copy"     ? CacheOperation::kv_copy
                                     : name.operation == "append_step" ? CacheOperation::append_step
                                                                       : CacheOperation::merge_states;
    CacheOpKernel &slot = (*table)[index(operation, dtype_of_name(name.dtype), dtype_of_name(name.to_dtype))];
    slot.packed = kernel;
    slot.name = package::format_kernel_name(name);
  }
}

void CacheOpKernels::note_loaded(const package::PackedKernel &kernel, void *function) {
  for (CacheOpKernel &slot : *table) {
    if (slot.packed == &kernel) slot.function.store(function, std::memory_order_release);
  }
}

} // namespace sluice::runtime

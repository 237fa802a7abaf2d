//===- MergeArguments.cpp - the arguments of a merge ----------------------------------------------------===//
#include "cache_ops/MergeArguments.h"

using namespace mlir;

namespace sluice {

/// Loads all arguments that are not in registers at once, to wait for memory once, and last one first: code
/// that uses the pointers at the front comes right after their load.
MergeArguments::Values MergeArguments::load(MergeEmitter &b, gpu::GPUFuncOp kernel) {
  Values values;
  for (auto [value, field, parameter] :
       llvm::reverse(llvm::zip_equal(values, package::merge_kernarg_fields, kernel.getArguments())))
    if (field.offset < package::merge_usual_bytes)
      value = field.offset < package::merge_preloaded_bytes
                  ? Value(parameter)
                  : b.argument(StringRef(field.name.data(), field.name.size()));
  return values;
}

Value MergeArguments::may(uint32_t mode) const {
  return b.isFalse(b.equal(b.bitAnd(b.opaqueScalar((*this)["mode"]), b.i32(mode)), b.i32(0)));
}

} // namespace sluice

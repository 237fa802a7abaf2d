//===- CacheOps.cpp - the functions of the cache operations ---------------------------------------------===//
#include "cache_ops/CacheOps.h"

#include "attention/Kernel.h"
#include "attention/Passes.h"

using namespace mlir;

namespace sluice {

ArrayRef<package::KernargField> kernargFields(const CacheOpVariant &variant) {
  if (variant.operation == "kv_append") return package::append_kernarg_fields;
  if (variant.operation == "kv_copy") return package::page_copy_kernarg_fields;
  if (variant.operation == "append_step") return package::step_kernarg_fields;
  return package::merge_kernarg_fields;
}

/// The bytes of the arguments that are in registers when a wave starts.
static uint32_t preloadedBytes(const CacheOpVariant &variant) {
  return variant.operation == "merge_states" ? package::merge_preloaded_bytes : 0;
}

OwningOpRef<ModuleOp> buildCacheOpModule(MLIRContext &context, StringRef name,
                                         const CacheOpVariant &variant) {
  context.loadDialect<arith::ArithDialect, math::MathDialect, ROCDL::ROCDLDialect, scf::SCFDialect,
                      vector::VectorDialect>();
  EmptyKernel empty = createKernel(context, name, kernargFields(variant), package::cache_op_threads);
  for (auto [i, field] : llvm::enumerate(kernargFields(variant)))
    if (field.offset < preloadedBytes(variant))
      empty.kernel.setArgAttr(i, LLVM::LLVMDialect::getInRegAttrName(), UnitAttr::get(&context));
  const auto build = variant.operation == "kv_append"     ? buildAppend
                     : variant.operation == "kv_copy"     ? buildPageCopy
                     : variant.operation == "append_step" ? buildAppendStep
                                                          : buildMerge;
  build(empty.kernel, variant);
  auto builder = OpBuilder::atBlockEnd(&empty.kernel.getBody().front());
  gpu::ReturnOp::create(builder, builder.getUnknownLoc());
  return std::move(empty.module);
}

} // namespace sluice

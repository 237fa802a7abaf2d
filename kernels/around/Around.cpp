//===- Around.cpp - the functions of the kernels around attention ---------------------------------------===//
#include "around/Around.h"

#include "attention/Kernel.h"
#include "attention/Passes.h"

using namespace mlir;

namespace sluice {

ArrayRef<package::KernargField> kernargFields(const AroundVariant &variant) {
  if (variant.operation == "kv_append") return package::append_kernarg_fields;
  return package::merge_kernarg_fields;
}

OwningOpRef<ModuleOp> buildAroundModule(MLIRContext &context, StringRef name, const AroundVariant &variant) {
  context.loadDialect<arith::ArithDialect, math::MathDialect, ROCDL::ROCDLDialect, scf::SCFDialect,
                      vector::VectorDialect>();
  EmptyKernel empty = createKernel(context, name, kernargFields(variant), package::around_threads);
  (variant.operation == "kv_append" ? buildAppend : buildMerge)(empty.kernel, variant);
  auto builder = OpBuilder::atBlockEnd(&empty.kernel.getBody().front());
  gpu::ReturnOp::create(builder, builder.getUnknownLoc());
  return std::move(empty.module);
}

} // namespace sluice

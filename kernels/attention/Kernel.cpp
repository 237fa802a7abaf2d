//===- Kernel.cpp - the function around a sluice.attention op
//----------------------------------------------===//
#include "attention/Kernel.h"

#include "package/kernargs.h"

using namespace mlir;

namespace sluice {

SmallVector<Type> attentionParameterTypes(MLIRContext &context) {
  Builder builder(&context);
  SmallVector<Type> types;
  for (const package::KernargField &field : package::attention_kernarg_fields) {
    switch (field.kind) {
    case package::KernargKind::pointer:
      types.push_back(LLVM::LLVMPointerType::get(&context, 1));
      break;
    case package::KernargKind::i64:
      types.push_back(builder.getI64Type());
      break;
    case package::KernargKind::i32:
      types.push_back(builder.getI32Type());
      break;
    case package::KernargKind::f32:
      types.push_back(builder.getF32Type());
      break;
    }
  }
  return types;
}

static unsigned fieldIndex(StringRef name) {
  for (auto [index, field] : llvm::enumerate(package::attention_kernarg_fields))
    if (field.name == std::string_view(name.data(), name.size())) return index;
  llvm_unreachable("not a field of the attention kernarg table");
}

Value attentionParameter(gpu::GPUFuncOp kernel, StringRef name) {
  return kernel.getArgument(fieldIndex(name));
}

uint32_t attentionParameterOffset(StringRef name) {
  return package::attention_kernarg_fields[fieldIndex(name)].offset;
}

OwningOpRef<ModuleOp> buildKernelModule(MLIRContext &context, StringRef name,
                                        const AttentionVariant &variant) {
  context.loadDialect<gpu::GPUDialect, SluiceDialect, LLVM::LLVMDialect>();
  OpBuilder builder(&context);
  Location loc = builder.getUnknownLoc();
  OwningOpRef<ModuleOp> module = ModuleOp::create(loc);
  builder.setInsertionPointToStart(module->getBody());
  auto gpuModule = gpu::GPUModuleOp::create(builder, loc, "kernels");
  builder.setInsertionPointToStart(gpuModule.getBody());
  auto type = builder.getFunctionType(attentionParameterTypes(context), {});
  auto kernel = gpu::GPUFuncOp::create(builder, loc, name, type);
  kernel->setAttr(gpu::GPUDialect::getKernelFuncAttrName(), builder.getUnitAttr());
  kernel.setKnownBlockSizeAttr(builder.getDenseI32ArrayAttr({int32_t(variant.threads()), 1, 1}));

  builder.setInsertionPointToStart(&kernel.getBody().front());
  Type element = variant.dtype == "f16" ? Type(builder.getF16Type()) : Type(builder.getBF16Type());
  AttentionOp::create(builder, loc, element, variant.headDim, variant.tileQ(), variant.tileKv, variant.waves);
  gpu::ReturnOp::create(builder, loc);
  return module;
}

} // namespace sluice

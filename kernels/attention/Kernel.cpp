//===- Kernel.cpp - the function around a sluice.attention op -------------------------------------------===//
#include "attention/Kernel.h"

#include "attention/KeyBlocks.h"

#include "package/kernargs.h"

using namespace mlir;

namespace sluice {

static SmallVector<Type> parameterTypes(MLIRContext &context, ArrayRef<package::KernargField> fields) {
  Builder builder(&context);
  SmallVector<Type> types;
  for (const package::KernargField &field : fields) {
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

SmallVector<Type> attentionParameterTypes(MLIRContext &context) {
  return parameterTypes(context, package::attention_kernarg_fields);
}

EmptyKernel createKernel(MLIRContext &context, StringRef name, ArrayRef<package::KernargField> fields,
                         unsigned threads) {
  context.loadDialect<gpu::GPUDialect, LLVM::LLVMDialect>();
  OpBuilder builder(&context);
  Location loc = builder.getUnknownLoc();
  OwningOpRef<ModuleOp> module = ModuleOp::create(loc);
  builder.setInsertionPointToStart(module->getBody());
  auto gpuModule = gpu::GPUModuleOp::create(builder, loc, "kernels");
  builder.setInsertionPointToStart(gpuModule.getBody());
  auto type = builder.getFunctionType(parameterTypes(context, fields), {});
  auto kernel = gpu::GPUFuncOp::create(builder, loc, name, type);
  kernel->setAttr(gpu::GPUDialect::getKernelFuncAttrName(), builder.getUnitAttr());
  kernel.setKnownBlockSizeAttr(builder.getDenseI32ArrayAttr({int32_t(threads), 1, 1}));
  return {std::move(module), kernel};
}

OwningOpRef<ModuleOp> buildKernelModule(MLIRContext &context, StringRef name, const AttentionVariant &variant,
                                        unsigned waveSize) {
  context.loadDialect<SluiceDialect>();
  EmptyKernel empty =
      createKernel(context, name, package::attention_kernarg_fields, variant.waves * waveSize);
  auto builder = OpBuilder::atBlockBegin(&empty.kernel.getBody().front());
  Location loc = builder.getUnknownLoc();
  auto typeOf = [&](StringRef name) -> Type {
    if (name == "e4m3fnuz") return Float8E4M3FNUZType::get(&context);
    if (name == "e5m2fnuz") return Float8E5M2FNUZType::get(&context);
    if (name == "e4m3fn") return Float8E4M3FNType::get(&context);
    if (name == "e5m2") return Float8E5M2Type::get(&context);
    if (name == "i8") return builder.getI8Type();
    return name == "f16" ? Type(builder.getF16Type()) : Type(builder.getBF16Type());
  };
  Type element = typeOf(variant.dtype);
  bool isInBlocks = KeyBlocks::kindOf(variant.kvDtype).has_value();
  TypeAttr stored =
      variant.kvDtype.empty() || isInBlocks ? TypeAttr() : TypeAttr::get(typeOf(variant.kvDtype));
  StringAttr blocks = isInBlocks ? builder.getStringAttr(variant.kvDtype) : StringAttr();
  TypeAttr result = variant.oDtype.empty() ? TypeAttr() : TypeAttr::get(typeOf(variant.oDtype));
  AttentionOp::create(builder, loc, element, stored, blocks, result, variant.headDimQk, variant.headDimV,
                      variant.tileQ, variant.tileKv, variant.waves, variant.waveRows, variant.paged,
                      variant.vInK, variant.vByColumns);
  gpu::ReturnOp::create(builder, loc);
  return std::move(empty.module);
}

} // namespace sluice

//===- Around.cpp - the functions of the kernels around attention
//--------------------------------------------===//
#include "around/Around.h"

#include "attention/Passes.h"

using namespace mlir;

namespace sluice {

bool canBuild(const AroundVariant &variant, const Chip &chip) {
  return variant.to != "e4m3fnuz" || chip.fp8 == Fp8Flavour::Fnuz;
}

ArrayRef<package::KernargField> kernargFields(const AroundVariant &variant) {
  if (variant.operation == "kv_append") return package::append_kernarg_fields;
  return package::merge_kernarg_fields;
}

static SmallVector<Type> parameterTypes(Builder &builder, ArrayRef<package::KernargField> fields) {
  SmallVector<Type> types;
  for (const package::KernargField &field : fields) {
    switch (field.kind) {
    case package::KernargKind::pointer:
      types.push_back(LLVM::LLVMPointerType::get(builder.getContext(), 1));
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

OwningOpRef<ModuleOp> buildAroundModule(MLIRContext &context, StringRef name, const AroundVariant &variant) {
  context.loadDialect<arith::ArithDialect, gpu::GPUDialect, LLVM::LLVMDialect, math::MathDialect,
                      ROCDL::ROCDLDialect, scf::SCFDialect, vector::VectorDialect>();
  OpBuilder builder(&context);
  Location loc = builder.getUnknownLoc();
  OwningOpRef<ModuleOp> module = ModuleOp::create(loc);
  builder.setInsertionPointToStart(module->getBody());
  auto gpuModule = gpu::GPUModuleOp::create(builder, loc, "kernels");
  builder.setInsertionPointToStart(gpuModule.getBody());
  auto type = builder.getFunctionType(parameterTypes(builder, kernargFields(variant)), {});
  auto kernel = gpu::GPUFuncOp::create(builder, loc, name, type);
  kernel->setAttr(gpu::GPUDialect::getKernelFuncAttrName(), builder.getUnitAttr());
  kernel.setKnownBlockSizeAttr(builder.getDenseI32ArrayAttr({int32_t(package::around_threads), 1, 1}));
  (variant.operation == "kv_append" ? buildAppend : buildMerge)(kernel, variant);
  builder.setInsertionPointToEnd(&kernel.getBody().front());
  gpu::ReturnOp::create(builder, loc);
  return module;
}

} // namespace sluice

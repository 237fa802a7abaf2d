//===- AroundEmitter.cpp - short spellings for rows in memory -------------------------------------------===//
#include "around/AroundEmitter.h"

using namespace mlir;

namespace sluice {

const package::KernargField &AroundEmitter::field(StringRef name) {
  for (const package::KernargField &field : fields)
    if (field.name == std::string_view(name.data(), name.size())) return field;
  llvm_unreachable("not a field of the kernarg table");
}

Type AroundEmitter::typeOf(package::KernargKind kind) {
  switch (kind) {
  case package::KernargKind::pointer:
    return LLVM::LLVMPointerType::get(getContext(), 1);
  case package::KernargKind::i64:
    return getI64Type();
  case package::KernargKind::i32:
    return getI32Type();
  case package::KernargKind::f32:
    return getF32Type();
  }
  llvm_unreachable("not a kind of argument");
}

Value AroundEmitter::argument(StringRef name) {
  const package::KernargField &found = field(name);
  return loadKernarg(found.offset, typeOf(found.kind));
}

Value AroundEmitter::sideArgument(StringRef name, Value side) {
  const package::KernargField &k = field(("k_" + name).str()), &v = field(("v_" + name).str());
  auto pointerType = LLVM::LLVMPointerType::get(getContext(), 4);
  auto segment = LLVM::CallIntrinsicOp::create(
      *this, pointerType, getStringAttr("llvm.amdgcn.kernarg.segment.ptr"), ValueRange{});
  Value offset = add(i32(k.offset), mul(side, i32(v.offset - k.offset)));
  Value place = LLVM::GEPOp::create(*this, pointerType, getI8Type(), segment.getResults(),
                                    ArrayRef<LLVM::GEPArg>{offset});
  return LLVM::LoadOp::create(*this, typeOf(k.kind), place, /*alignment=*/4);
}

Type AroundEmitter::elementType(StringRef name) {
  if (name == "f16") return getF16Type();
  if (name == "bf16") return getBF16Type();
  if (name == "f32") return getF32Type();
  llvm_unreachable("not a type that kernels compute with");
}

SmallVector<Value> AroundEmitter::loop(Value first, Value end, Value step, ValueRange carried,
                                       LoopBody body) {
  OpBuilder::InsertionGuard guard(*this);
  auto op = scf::ForOp::create(*this, first, end, step, carried);
  setInsertionPointToStart(op.getBody());
  SmallVector<Value> next = body(op.getInductionVar(), op.getRegionIterArgs());
  // Without carried values, the loop has a yield of its own.
  if (!carried.empty()) scf::YieldOp::create(*this, next);
  return SmallVector<Value>(op.getResults());
}

} // namespace sluice

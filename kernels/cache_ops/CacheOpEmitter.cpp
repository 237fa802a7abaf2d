//===- CacheOpEmitter.cpp - short spellings for rows in memory ------------------------------------------===//
#include "cache_ops/CacheOpEmitter.h"

using namespace mlir;

namespace sluice {

Type CacheOpEmitter::typeOf(package::KernargKind kind) {
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

Value CacheOpEmitter::loadArgument(const ArgumentPlace &place, package::KernargKind kind) {
  if (!place.number) return loadKernarg(place.offset, typeOf(kind));
  Value offset = add(i32(place.offset), mul(place.number, i32(place.stride)));
  Value segment = kernargSegment();
  Value pointer =
      LLVM::GEPOp::create(*this, segment.getType(), getI8Type(), segment, ArrayRef<LLVM::GEPArg>{offset});
  return LLVM::LoadOp::create(*this, typeOf(kind), pointer, /*alignment=*/4);
}

Type CacheOpEmitter::elementType(StringRef name) {
  if (name == "f16") return getF16Type();
  if (name == "bf16") return getBF16Type();
  if (name == "f32") return getF32Type();
  llvm_unreachable("not a type that kernels compute with");
}

/// The value of another lane of the row of 16; `control` is DPP_CTRL.
Value CacheOpEmitter::crossLanes(Value value, unsigned control) {
  constexpr int32_t all = 0xf; // rows and banks that take part
  return ROCDL::DPPUpdateOp::create(*this, value.getType(), value, value, int32_t(control), all, all,
                                    /*boundCtrl=*/true);
}

Value CacheOpEmitter::toInteger(Value a) {
  return LLVM::InlineAsmOp::create(*this, getI32Type(), a, "v_cvt_i32_f32 $0, $1", "=v,v",
                                   /*has_side_effects=*/false, /*is_align_stack=*/false,
                                   LLVM::TailCallKind::None, LLVM::AsmDialectAttr(), ArrayAttr())
      .getRes();
}

Value CacheOpEmitter::rotateRow(Value value, unsigned count) {
  constexpr unsigned rowRor = 0x120;
  return crossLanes(value, rowRor + count);
}

// Exchanges within a row of 16 lanes: of neighbours, of pairs, and once quads and eights have equal values,
// their mirror images.
static constexpr unsigned exchanges[] = {0xb1, 0x4e, 0x141, 0x140};

Value CacheOpEmitter::exchange(Value value, unsigned step) {
  return crossLanes(value, exchanges[step]);
}

Value CacheOpEmitter::joinLanes(Value value, Value lanesLog2, Join join, unsigned step) {
  constexpr unsigned steps = 6; // 64 lanes
  if (step == steps) return value;
  return branch(
      less(i32(step), opaqueScalar(lanesLog2)),
      [&] {
        Value other;
        if (step < std::size(exchanges)) {
          other = exchange(value, step);
        } else {
          Value lane = bitAnd(ROCDL::ThreadIdXOp::create(*this, getI32Type()), i32(63));
          other = fromLane(value, lane, 1u << step);
        }
        return joinLanes(join(value, other), lanesLog2, join, step + 1);
      },
      [&] { return value; });
}

Value CacheOpEmitter::countStarts(Value starts, Value batch, Value steps, Value row) {
  // Bit by bit, from the highest on.
  return loop(i32(0), steps, i32(1), i32(0), [&](Value step, Value count) {
    Value bit = shiftLeft(i32(1), sub(sub(steps, step), i32(1)));
    Value tried = add(count, bit);
    Value index = minS(sub(tried, i32(1)), batch);
    Value start = load(getI32Type(), starts, zeroExtend(index), 4);
    Value within = both(isFalse(less(add(batch, i32(1)), tried)), isFalse(less(row, start)));
    return select(within, tried, count);
  });
}

} // namespace sluice

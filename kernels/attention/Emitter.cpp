//===- Emitter.cpp - short spellings for the arithmetic of a kernel body --------------------------------===//
#include "attention/Emitter.h"

#include "llvm/ADT/StringExtras.h"

using namespace mlir;

namespace sluice {

Value Emitter::i32(int64_t value) {
  return arith::ConstantOp::create(*this, getI32IntegerAttr(int32_t(value)));
}
Value Emitter::i64(int64_t value) {
  return arith::ConstantOp::create(*this, getI64IntegerAttr(value));
}
Value Emitter::f32(double value) {
  return arith::ConstantOp::create(*this, getF32FloatAttr(float(value)));
}

Value Emitter::less(Value a, Value b) {
  return arith::CmpIOp::create(*this, arith::CmpIPredicate::slt, a, b);
}
Value Emitter::equal(Value a, Value b) {
  return arith::CmpIOp::create(*this, arith::CmpIPredicate::eq, a, b);
}
Value Emitter::equalF(Value a, Value b) {
  return arith::CmpFOp::create(*this, arith::CmpFPredicate::OEQ, a, b);
}
Value Emitter::atMostF(Value a, Value b) {
  return arith::CmpFOp::create(*this, arith::CmpFPredicate::OLE, a, b);
}

Value Emitter::intrinsic(StringRef name, Type result, ValueRange arguments) {
  return LLVM::CallIntrinsicOp::create(*this, result, getStringAttr(name), arguments).getResults();
}

Emitter::Division Emitter::divide(Value dividend, Value d, Value magic, Value shift) {
  Type type = dividend.getType();
  Value one = type.isInteger(64) ? i64(1) : i32(1);
  Value high = arith::MulUIExtendedOp::create(*this, shiftLeft(dividend, one), magic).getHigh();
  Value quotient = shiftRight(high, type.isInteger(64) ? zeroExtend(shift) : shift);
  return {quotient, sub(dividend, mul(quotient, d))};
}

Value Emitter::isNull(Value pointer) {
  return equal(LLVM::PtrToIntOp::create(*this, getI64Type(), pointer), i64(0));
}

Value Emitter::laneValue(Value value, Value lane) {
  Value address = shiftLeft(lane, i32(2));
  Value word = bitcast(getI32Type(), value);
  return bitcast(value.getType(), ROCDL::DsBpermuteOp::create(*this, getI32Type(), address, word));
}

Value Emitter::fromDpp(Value value, uint32_t control) {
  constexpr uint32_t allRows = 0xf, allBanks = 0xf;
  return ROCDL::DPPUpdateOp::create(*this, value.getType(), undef(value.getType()), value, control, allRows,
                                    allBanks, /*boundCtrl=*/true);
}

Value Emitter::rowLaneValue(Value value, unsigned lane) {
  constexpr uint32_t rowNewbcast = 0x150;
  return fromDpp(value, rowNewbcast + lane);
}

Value Emitter::quadLaneValue(Value value, unsigned lane) {
  return fromDpp(value, lane * 0b01010101u);
}

Value Emitter::fromLane(Value value, Value lane, unsigned flip) {
  return laneValue(value, bitXor(lane, i32(flip)));
}

Value Emitter::pointerOfLane(Value pointer, Value lane) {
  return pointerOfLane(pointer, lane, 0);
}

Value Emitter::pointerOfLane(Value pointer, Value lane, unsigned ahead) {
  Value address = shiftLeft(lane, i32(2));
  if (ahead != 0) address = add(address, i32(4 * ahead));
  auto pair = VectorType::get(2, getI32Type());
  Value halves = bitcast(pair, LLVM::PtrToIntOp::create(*this, getI64Type(), pointer));
  auto get = [&](unsigned half) -> Value {
    return ROCDL::DsBpermuteOp::create(*this, getI32Type(), address, extract(halves, half));
  };
  Value bits = bitcast(getI64Type(), pack(pair, {get(0), get(1)}));
  return LLVM::IntToPtrOp::create(*this, pointer.getType(), bits);
}

Value Emitter::anyLane(Value condition) {
  Value mask = ROCDL::BallotOp::create(*this, getI64Type(), condition);
  return arith::CmpIOp::create(*this, arith::CmpIPredicate::ne, mask, i64(0));
}

Value Emitter::emptyAssembly(ValueRange values, StringRef constraints) {
  return LLVM::InlineAsmOp::create(*this, values[0].getType(), values, /*asm_string=*/"", constraints,
                                   /*has_side_effects=*/false, /*is_align_stack=*/false,
                                   LLVM::TailCallKind::None, LLVM::AsmDialectAttr(), ArrayAttr())
      .getRes();
}

Value Emitter::opaque(Value a) {
  return emptyAssembly(a, "=v,0");
}

Value Emitter::opaqueScalar(Value a) {
  return emptyAssembly(a, "=s,0");
}

Value Emitter::opaque(Value a, Value changing) {
  return emptyAssembly({a, changing}, "=v,0,s");
}

Value Emitter::opaqueScalar(Value a, Value changing) {
  return emptyAssembly({a, changing}, "=s,0,s");
}

Value Emitter::after(Value a, Value before) {
  return emptyAssembly({a, before}, "=v,0,v");
}

void Emitter::touch(Value pointer) {
  LLVM::InlineAsmOp::create(*this, TypeRange(), pointer, "global_load_dword v255, $0, off", "v,~{v255}",
                            /*has_side_effects=*/true, /*is_align_stack=*/false, LLVM::TailCallKind::None,
                            LLVM::AsmDialectAttr(), ArrayAttr());
}

void Emitter::await(ValueRange values) {
  SmallVector<StringRef> scalar(values.size(), "s");
  LLVM::InlineAsmOp::create(*this, TypeRange(), values, /*asm_string=*/"", llvm::join(scalar, ","),
                            /*has_side_effects=*/true, /*is_align_stack=*/false, LLVM::TailCallKind::None,
                            LLVM::AsmDialectAttr(), ArrayAttr());
}

void Emitter::computeHere(ValueRange values) {
  SmallVector<StringRef> vector(values.size(), "v");
  LLVM::InlineAsmOp::create(*this, TypeRange(), values, /*asm_string=*/"", llvm::join(vector, ","),
                            /*has_side_effects=*/true, /*is_align_stack=*/false, LLVM::TailCallKind::None,
                            LLVM::AsmDialectAttr(), ArrayAttr());
}

Value Emitter::firstElements(Value vector, unsigned bits, Value count) {
  auto type = cast<VectorType>(vector.getType());
  unsigned perWord = 32 / bits, words = type.getNumElements() * type.getElementTypeBitWidth() / 32;
  auto inWords = VectorType::get(words, getI32Type());
  Value loaded = bitcast(inWords, vector);
  SmallVector<Value> kept;
  for (unsigned word = 0; word < words; ++word) {
    Value keptInWord = clamp(sub(count, i32(word * perWord)), i32(0), i32(perWord));
    Value bitsKept = zeroExtend(mul(keptInWord, i32(bits)));
    Value mask = arith::TruncIOp::create(*this, getI32Type(), sub(shiftLeft(i64(1), bitsKept), i64(1)));
    kept.push_back(bitAnd(extract(loaded, word), mask));
  }
  return bitcast(type, pack(inWords, kept));
}

Value Emitter::advance(Value pointer, Type type, Value count) {
  return LLVM::GEPOp::create(*this, pointer.getType(), type, pointer, ArrayRef<LLVM::GEPArg>{count});
}

Value Emitter::bytesBetween(Value from, Value to) {
  auto bits = [&](Value pointer) -> Value { return LLVM::PtrToIntOp::create(*this, getI64Type(), pointer); };
  return sub(bits(to), bits(from));
}

Value Emitter::loadScalar(Type type, Value pointer, Value index) {
  auto constant = LLVM::LLVMPointerType::get(getContext(), 4);
  Value place = LLVM::AddrSpaceCastOp::create(*this, constant, advance(pointer, type, index));
  return LLVM::LoadOp::create(*this, type, place, /*alignment=*/type.getIntOrFloatBitWidth() / 8);
}

Value Emitter::kernargSegment() {
  return intrinsic("llvm.amdgcn.kernarg.segment.ptr", LLVM::LLVMPointerType::get(getContext(), 4), {});
}

Value Emitter::loadKernarg(uint32_t offsetBytes, Type type, Value segment) {
  if (!segment) segment = kernargSegment();
  Value place = LLVM::GEPOp::create(*this, segment.getType(), getI8Type(), segment,
                                    ArrayRef<LLVM::GEPArg>{int32_t(offsetBytes)});
  return LLVM::LoadOp::create(*this, type, place, /*alignment=*/4);
}

Value Emitter::behindProducts(Value a) {
  // 32 wait states: no chip requires more than 19.
  return LLVM::InlineAsmOp::create(*this, a.getType(), a, /*asm_string=*/"s_nop 15\ns_nop 15", "=v,0",
                                   /*has_side_effects=*/false, /*is_align_stack=*/false,
                                   LLVM::TailCallKind::None, LLVM::AsmDialectAttr(), ArrayAttr())
      .getRes();
}

SmallVector<Value> Emitter::branchOfValues(Value condition, Region then, Region otherwise,
                                           std::optional<bool> usual) {
  auto build = [&](Region region) {
    return [this, region](OpBuilder &, Location) { scf::YieldOp::create(*this, region()); };
  };
  // ImplicitLocOpBuilder passes itself on, so the callbacks emit through this emitter.
  OpBuilder::InsertionGuard guard(*this);
  auto op = scf::IfOp::create(*this, condition, build(then), build(otherwise));
  if (usual) op->setAttr(usualSide, getBoolAttr(*usual));
  return SmallVector<Value>(op.getResults());
}

void Emitter::when(Value condition, llvm::function_ref<void()> then) {
  OpBuilder::InsertionGuard guard(*this);
  auto op = scf::IfOp::create(*this, condition, /*withElseRegion=*/false);
  setInsertionPointToStart(op.thenBlock());
  then();
}

void Emitter::loop(Value first, Value end, Value step, function_ref<void(Value)> body) {
  OpBuilder::InsertionGuard guard(*this);
  auto op = scf::ForOp::create(*this, first, end, step); // has its own yield
  setInsertionPointToStart(op.getBody());
  body(op.getInductionVar());
}

} // namespace sluice

//===- Emitter.h - short spellings for the arithmetic of a kernel body ------------------------*- C++ -*-===//
//
// Thin names over upstream operations, so that the kernel builder reads like the algorithm.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include "attention/Carried.h"
#include "attention/Passes.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace sluice {

class Emitter : public mlir::ImplicitLocOpBuilder {
public:
  using Value = mlir::Value;
  using ImplicitLocOpBuilder::ImplicitLocOpBuilder;

  Value i32(int64_t value);
  Value i64(int64_t value);
  Value f32(double value);
  Value undef(mlir::Type type) { return mlir::LLVM::PoisonOp::create(*this, type); }

  Value add(Value a, Value b) { return mlir::arith::AddIOp::create(*this, a, b); }
  Value sub(Value a, Value b) { return mlir::arith::SubIOp::create(*this, a, b); }
  Value mul(Value a, Value b) { return mlir::arith::MulIOp::create(*this, a, b); }
  Value minS(Value a, Value b) { return mlir::arith::MinSIOp::create(*this, a, b); }
  Value maxS(Value a, Value b) { return mlir::arith::MaxSIOp::create(*this, a, b); }
  /// `low` if the value is less, `high` if it is more; low <= high.
  Value clamp(Value value, Value low, Value high) { return minS(maxS(value, low), high); }
  Value bitAnd(Value a, Value b) { return mlir::arith::AndIOp::create(*this, a, b); }
  Value bitOr(Value a, Value b) { return mlir::arith::OrIOp::create(*this, a, b); }
  Value bitXor(Value a, Value b) { return mlir::arith::XOrIOp::create(*this, a, b); }
  Value shiftLeft(Value a, Value b) { return mlir::arith::ShLIOp::create(*this, a, b); }
  Value shiftRight(Value a, Value b) { return mlir::arith::ShRUIOp::create(*this, a, b); }
  Value signExtend(Value a) { return mlir::arith::ExtSIOp::create(*this, getI64Type(), a); }
  Value zeroExtend(Value a) { return mlir::arith::ExtUIOp::create(*this, getI64Type(), a); }
  Value less(Value a, Value b);
  Value equal(Value a, Value b);
  Value lessUnsigned(Value a, Value b) {
    return mlir::arith::CmpIOp::create(*this, mlir::arith::CmpIPredicate::ult, a, b);
  }
  Value boolean(bool value) { return mlir::arith::ConstantOp::create(*this, getBoolAttr(value)); }
  Value both(Value a, Value b) { return mlir::arith::AndIOp::create(*this, a, b); }
  Value either(Value a, Value b) { return mlir::arith::OrIOp::create(*this, a, b); }
  Value isFalse(Value condition) { return mlir::arith::XOrIOp::create(*this, condition, boolean(true)); }
  Value isNull(Value pointer);
  Value select(Value condition, Value a, Value b) {
    return mlir::arith::SelectOp::create(*this, condition, a, b);
  }

  Value addF(Value a, Value b) { return mlir::arith::AddFOp::create(*this, a, b); }
  Value mulF(Value a, Value b) { return mlir::arith::MulFOp::create(*this, a, b); }
  Value subF(Value a, Value b) { return mlir::arith::SubFOp::create(*this, a, b); }
  Value negF(Value a) { return mlir::arith::NegFOp::create(*this, a); }
  Value fma(Value a, Value b, Value c) { return mlir::math::FmaOp::create(*this, a, b, c); }
  // v_max_f32: a NaN operand gives the other one. NaN scores survive in their exponentials.
  Value maxF(Value a, Value b) { return mlir::arith::MaxNumFOp::create(*this, a, b); }
  Value minF(Value a, Value b) { return mlir::arith::MinNumFOp::create(*this, a, b); }
  Value equalF(Value a, Value b);
  Value atMostF(Value a, Value b);

  /// The raw hardware operations, without LLVM's handling of denormal results.
  Value exp2(Value a) { return intrinsic("llvm.amdgcn.exp2", getF32Type(), {a}); }
  Value log2(Value a) { return intrinsic("llvm.amdgcn.log", getF32Type(), {a}); }
  Value reciprocalRoot(Value a) { return intrinsic("llvm.amdgcn.rsq", getF32Type(), {a}); }
  /// Infinite for a subnormal number, and 0 where the inverse is subnormal: see Divisor.
  Value reciprocal(Value a) { return intrinsic("llvm.amdgcn.rcp", getF32Type(), {a}); }
  /// A number divided into a mantissa, from 1/2 on and below 1, and a power of two. Zero, infinity and NaN
  /// are their own mantissas, with exponent 0.
  Value mantissaOf(Value a) { return intrinsic("llvm.amdgcn.frexp.mant", getF32Type(), {a}); }
  Value exponentOf(Value a) { return intrinsic("llvm.amdgcn.frexp.exp", getI32Type(), {a}); }
  /// a * 2^exponent.
  Value timesPowerOf2(Value a, Value exponent) {
    return intrinsic("llvm.ldexp", getF32Type(), {a, exponent});
  }
  /// Any number to divide by: x / number is x * inverse * 2^exponent. The inverse is at most 1, so that the
  /// first product does not overflow.
  struct Divisor {
    Value inverse, exponent;
    static auto members(auto &of) { return std::tie(of.inverse, of.exponent); }
  };
  Divisor divisorOf(Value number) {
    return {reciprocal(mulF(mantissaOf(number), f32(2))), sub(i32(1), exponentOf(number))};
  }
  /// Bytes of {a, b} chosen by `selector`: 0-3 from b, 4-7 from a (v_perm_b32).
  Value permuteBytes(Value a, Value b, uint32_t selector) {
    return intrinsic("llvm.amdgcn.perm", getI32Type(), {a, b, i32(int32_t(selector))});
  }
  Value leadingZeros(Value a) {
    return mlir::LLVM::CountLeadingZerosOp::create(*this, a.getType(), a, /*is_zero_poison=*/false);
  }
  Value waveUniform(Value a) { return mlir::ROCDL::ReadfirstlaneOp::create(*this, a.getType(), a); }
  /// The value of lane `lane ^ flip`.
  Value fromLane(Value value, Value lane, unsigned flip);
  /// The value of lane `lane`.
  Value laneValue(Value value, Value lane);
  /// The value of lane `lane` of each row of 16 lanes, in all lanes of the row (DPP row_newbcast).
  Value rowLaneValue(Value value, unsigned lane);
  /// The value of lane `lane` of each four lanes, in all of these (DPP quad_perm).
  Value quadLaneValue(Value value, unsigned lane);
  /// The pointer that lane `lane` holds.
  Value pointerOfLane(Value pointer, Value lane);
  /// The same of lane `lane` + `ahead`. All that depend on the same `lane`, an opaque value, share one
  /// register for it: the instruction adds `ahead`.
  Value pointerOfLane(Value pointer, Value lane, unsigned ahead);
  /// Whether the condition holds in any active lane, as a wave-uniform i1.
  Value anyLane(Value condition);

  /// The same value, which the compiler cannot recognise as such. Emits no instruction.
  Value opaque(Value a);
  /// The same for a wave-uniform i32.
  Value opaqueScalar(Value a);
  /// Either, but code that depends on the result stays in the loop in which `changing`, a wave-uniform i32,
  /// changes; outside it would occupy registers throughout the loop.
  Value opaque(Value a, Value changing);
  Value opaqueScalar(Value a, Value changing);

  /// The same value; code that depends on it comes after the code that computes `before`, a value of a lane.
  /// Where many results would otherwise be in registers at once, this makes them follow one another.
  Value after(Value a, Value before);

  /// Values of lanes are in registers here. LLVM would move their arithmetic past a branch that follows,
  /// and keep all operands until then.
  void computeHere(mlir::ValueRange values);

  /// Loads a word of global memory that no instruction waits for, to bring its line into a cache. The word
  /// goes to the last of 256 VGPRs, which must have no other use: a kernel that calls this has at least as
  /// many.
  void touch(Value pointer);

  /// Waits for wave-uniform values of 32 bits, all at once.
  void await(mlir::ValueRange values);

  /// The same value of a lane; code that depends on it can read the results of all MFMAs before. For the
  /// first use of those results in a branch: LLVM 22 counts a wait state too many on some paths into one.
  Value behindProducts(Value a);

  Value bitcast(mlir::Type type, Value a) { return mlir::LLVM::BitcastOp::create(*this, type, a); }
  Value extract(Value vector, int64_t index) { return mlir::vector::ExtractOp::create(*this, vector, index); }
  Value pack(mlir::VectorType type, mlir::ValueRange elements) {
    return mlir::vector::FromElementsOp::create(*this, type, elements);
  }
  Value slice(Value vector, int64_t offset, int64_t size) {
    auto positions = llvm::to_vector(llvm::seq<int64_t>(offset, offset + size));
    return mlir::vector::ShuffleOp::create(*this, vector, vector, positions);
  }
  /// The first `count` elements of a vector, of `bits` bits each, and zeros for the others. Elements are
  /// whole dwords together.
  Value firstElements(Value vector, unsigned bits, Value count);
  /// `pointer` advanced by `count` elements of `type`.
  Value advance(Value pointer, mlir::Type type, Value count);
  Value bytesBetween(Value from, Value to);

  Value kernargSegment();
  /// A kernel argument by its offset in the kernarg segment, or in another copy of the segment's pointer.
  Value loadKernarg(uint32_t offsetBytes, mlir::Type type, Value segment = {});

  /// A wave-uniform element of memory that does not change while the kernel runs, loaded by scalar memory.
  Value loadScalar(mlir::Type type, Value pointer, Value index);

  /// dividend / d and dividend % d; `magic` and `shift` are those of d (support/divisor.h).
  struct Division {
    Value quotient, rest;
  };
  Division divide(Value dividend, Value d, Value magic, Value shift);

  /// scf.if: the state that the side taken returns (Carried.h), if sides return one.
  template <typename Then, typename Otherwise>
  auto branch(Value condition, Then then, Otherwise otherwise, std::optional<bool> usual = {}) {
    if constexpr (std::is_void_v<std::invoke_result_t<Then>>) {
      auto nothing = [](auto side) { return side(), llvm::SmallVector<Value>(); };
      branchOfValues(condition, [&] { return nothing(then); }, [&] { return nothing(otherwise); }, usual);
    } else {
      using State = typename carried::Returned<Then>::State;
      std::optional<State> first;
      llvm::SmallVector<Value> results = branchOfValues(
          condition,
          [&] {
            first = then();
            return carried::flatten(*first);
          },
          [&] { return carried::flatten(State(otherwise())); }, usual);
      return carried::withValues(std::move(*first), results);
    }
  }
  /// The same if most waves take the first side most of the time (see PeelUsualWay.cpp); or the second.
  template <typename Then, typename Otherwise> auto usually(Value condition, Then then, Otherwise otherwise) {
    return branch(condition, then, otherwise, true);
  }
  template <typename Then, typename Otherwise> auto rarely(Value condition, Then then, Otherwise otherwise) {
    return branch(condition, then, otherwise, false);
  }
  void when(Value condition, llvm::function_ref<void()> then);

  /// scf.for: `body` gets the number and the state before a turn, and returns the state after it.
  template <typename State, typename Body>
  State loop(Value first, Value end, Value step, const State &initial, Body body) {
    mlir::OpBuilder::InsertionGuard guard(*this);
    auto op = mlir::scf::ForOp::create(*this, first, end, step, carried::flatten(initial));
    setInsertionPointToStart(op.getBody());
    State next = body(op.getInductionVar(), carried::withValues(initial, op.getRegionIterArgs()));
    mlir::scf::YieldOp::create(*this, carried::flatten(next));
    return carried::withValues(initial, op.getResults());
  }
  /// The same without a state.
  void loop(Value first, Value end, Value step, llvm::function_ref<void(Value)> body);

private:
  using Region = llvm::function_ref<llvm::SmallVector<Value>()>;
  llvm::SmallVector<Value> branchOfValues(Value condition, Region then, Region otherwise,
                                          std::optional<bool> usual);
  Value fromDpp(Value value, uint32_t control);
  /// Returns the first of the values.
  Value emptyAssembly(mlir::ValueRange values, llvm::StringRef constraints);
  Value intrinsic(llvm::StringRef name, mlir::Type result, mlir::ValueRange arguments);
};

} // namespace sluice

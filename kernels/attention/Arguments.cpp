//===- Arguments.cpp - the arguments of an attention kernel, and its sequence ---------------------------===//
#include "attention/Arguments.h"

using namespace mlir;

namespace sluice {

void Arguments::fetchLines() const {
  constexpr unsigned lineBytes = 64; // of the scalar cache (CDNA3 white paper)
  SmallVector<Value> words;
  std::string constraints;
  for (unsigned offset = 0; offset < sizeof(package::AttentionKernargs); offset += lineBytes) {
    words.push_back(b.loadKernarg(offset, b.getI32Type()));
    constraints += constraints.empty() ? "s" : ",s";
  }
  LLVM::InlineAsmOp::create(b, TypeRange(), words, /*asm_string=*/"", constraints, /*has_side_effects=*/true,
                            /*is_align_stack=*/false, LLVM::TailCallKind::None, LLVM::AsmDialectAttr(),
                            ArrayAttr());
}

Value Arguments::scaled(Value value, Name factor, package::ScoreFlag perHead, Value head) const {
  Value pointer = late(factor);
  return b.branch(
      b.isNull(pointer), [&] { return value; },
      [&] {
        Value index = b.select(flag(perHead), head, b.i32(0));
        Value place = b.advance(pointer, b.getF32Type(), b.zeroExtend(index));
        return b.mulF(value, LLVM::LoadOp::create(b, b.getF32Type(), place, /*alignment=*/4));
      });
}

Value Arguments::elementOr(Name array, Type type, Value index, Value otherwise) const {
  Value pointer = late(array);
  return b.branch(
      b.isNull(pointer), [&] { return otherwise; },
      [&] { return b.loadScalar(type, pointer, b.zeroExtend(index)); });
}

Sequence readSequence(Emitter &b, const Arguments &arguments, Value batch) {
  using Name = Arguments::Name;
  auto extent = [&](Name starts, Name rows, Name lengths, Name length) -> std::pair<Value, Value> {
    Value pointer = arguments.late(starts), most = arguments.late(length);
    auto [givenFirst, givenEnd] = b.branch(
        b.isNull(pointer), [&] { return std::pair(b.i32(0), most); },
        [&] {
          Value first = b.loadScalar(b.getI32Type(), pointer, b.zeroExtend(batch));
          Value end = b.loadScalar(b.getI32Type(), pointer, b.zeroExtend(b.add(batch, b.i32(1))));
          return std::pair(first, end);
        });
    // Without starts, all of these conditions already hold: to the kernel, a tensor then has INT32_MAX rows.
    Value zero = b.i32(0), tensorRows = arguments.late(rows);
    Value first = b.clamp(givenFirst, zero, tensorRows), end = b.clamp(givenEnd, first, tensorRows);
    Value count = b.minS(b.sub(end, first), most);
    return {first, b.clamp(arguments.elementOr(lengths, b.getI32Type(), batch, count), zero, count)};
  };
  auto [firstRow, rows] = extent("q_starts", "q_rows", "q_lengths", "q_len");
  auto [firstKey, keys] = extent("kv_starts", "kv_rows", "kv_lengths", "kv_len");
  return {batch, firstRow, rows, firstKey, keys};
}

} // namespace sluice

//===- Query.cpp - Q^T in registers ---------------------------------------------------------------------===//
#include "attention/Query.h"

using namespace mlir;

namespace sluice {

TileMath::Values loadQuery(Emitter &b, TileMath &math, ArrayRef<ColumnRead> reads, Value base, Type inMemory,
                           Type element, Value laneGroup, Value limit) {
  TileMath::Values query;
  const MfmaLayout &layout = math.layout;
  for (const ColumnRead &read : reads) {
    Type type = read.columns == layout.elements() ? math.fragment : VectorType::get(read.columns, element);
    Value column = b.add(b.i32(read.headColumn), b.mul(laneGroup, b.i32(read.columns)));
    auto load = [&] {
      return SmallVector<Value>{LLVM::LoadOp::create(b, type, b.advance(base, inMemory, column),
                                                     /*alignment=*/layout.elementBytes * read.columns)};
    };
    auto zero = [&] { return SmallVector<Value>{arith::ConstantOp::create(b, b.getZeroAttr(type))}; };
    Value loaded = (limit ? b.branch(b.less(column, limit), load, zero) : load())[0];
    llvm::append_range(query, math.fragments(loaded, read.columns));
  }
  return query;
}

} // namespace sluice

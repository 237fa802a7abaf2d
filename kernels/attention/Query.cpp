//===- Query.cpp - Q^T of a block of rows ---------------------------------------------------------------===//
#include "attention/Query.h"

using namespace mlir;

namespace sluice {

Query::Query(Emitter &b, TileMath &math, ArrayRef<ColumnRead> reads, Value base, Type inMemory, Type element,
             Value laneGroup, Value limit, Value unused)
    : b(b), math(math), reads(reads), limit(limit), unused(unused) {
  const MfmaLayout &layout = math.layout;
  for (const ColumnRead &read : reads) {
    Type type = read.columns == layout.elements() ? math.fragment : VectorType::get(read.columns, element);
    Value column = b.add(b.i32(read.headColumn), b.mul(laneGroup, b.i32(read.columns)));
    unsigned bytes = layout.elementBytes * read.columns;
    Value zeros = ZerosOp::create(b, base.getType(), bytes);
    Value place = b.select(b.less(column, limit), b.advance(base, inMemory, column), zeros);
    columns.push_back(LLVM::LoadOp::create(b, type, place, /*alignment=*/bytes));
    firstColumns.push_back(column);
  }
}

void Query::cutRest() {
  if (!unused) return;
  columns = b.branch(
      b.equal(unused, b.i32(0)), [&] { return columns; },
      [&] {
        Value end = b.sub(limit, unused);
        Values cutReads;
        for (auto [read, column] : llvm::zip_equal(columns, firstColumns))
          cutReads.push_back(b.firstElements(read, 8 * math.layout.elementBytes, b.sub(end, column)));
        return cutReads;
      });
}

void Query::park(unsigned parked, Value ownThread, unsigned threadCount) {
  thread = ownThread;
  threads = threadCount;
  auto type = cast<VectorType>(columns.back().getType());
  tile = LdsAllocOp::create(b, LdsTileType::get(b.getContext(), parked * threads, type.getNumElements(),
                                                type.getElementType(),
                                                XorSwizzleAttr::get(b.getContext(), 0, 0)));
  for (unsigned n = parked; n > 0; --n) {
    Value row = b.add(thread, b.i32((n - 1) * threads));
    LdsWriteOp::create(b, columns.pop_back_val(), tile, row, b.i32(0));
  }
}

SmallVector<Value> Query::fragments(unsigned read) const {
  Value row;
  if (read < columns.size()) {
    row = columns[read];
  } else {
    Value place = b.add(thread, b.i32((read - columns.size()) * threads));
    row = LdsReadOp::create(b, columns.front().getType(), tile, place, b.i32(0));
  }
  return math.fragments(row, reads[read].columns);
}

} // namespace sluice

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
          cutReads.push_back(cut(read, b.sub(end, column)));
        return cutReads;
      });
}

/// The first `count` elements, and zeros for the others.
Value Query::cut(Value read, Value count) const {
  auto type = cast<VectorType>(read.getType());
  // Fragments of FP8 are vectors of dwords.
  unsigned bits = 8 * math.layout.elementBytes, perWord = 32 / bits;
  unsigned words = type.getNumElements() * type.getElementTypeBitWidth() / 32;
  auto inWords = VectorType::get(words, b.getI32Type());
  Value loaded = b.bitcast(inWords, read);
  Values kept;
  for (unsigned word = 0; word < words; ++word) {
    Value ofWord = b.clamp(b.sub(count, b.i32(word * perWord)), b.i32(0), b.i32(perWord));
    Value bitsKept = b.zeroExtend(b.mul(ofWord, b.i32(bits)));
    Value mask = arith::TruncIOp::create(b, b.getI32Type(), b.sub(b.shiftLeft(b.i64(1), bitsKept), b.i64(1)));
    kept.push_back(b.bitAnd(b.extract(loaded, word), mask));
  }
  return b.bitcast(type, b.pack(inWords, kept));
}

void Query::park(unsigned parked, Value ofThread, unsigned ofThreads) {
  thread = ofThread;
  threads = ofThreads;
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

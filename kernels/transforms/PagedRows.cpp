//===- PagedRows.cpp - addresses of the rows of a page table, one row per lane --------------------------===//
#include "transforms/PagedRows.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace sluice {

PagedRows::PagedRows(CopyBuilder &builder, Value firstRow, Value rowLimit, PagesOp pages, unsigned lanes)
    : b(builder), lanes(lanes), lastLow(pages.getLastLow()), lastHigh(pages.getLastHigh()) {
  Value row = b.add(firstRow, b.laneOf(ROCDL::ThreadIdXOp::create(b, b.getI32Type()), lanes));
  page = pages.getMagic()
             ? b.shiftRight(b.mulHigh(b.shiftLeft(row, b.i32(1)), pages.getMagic()), pages.getShift())
             : b.divide(row, pages.getRows());
  rowInPage = b.sub(row, b.mul(page, pages.getRows()));
  // Correct modulo 2^32 even if the row's number overflowed.
  exists = b.positive(b.sub(rowLimit, row));
  if (!pages.getHoleBegin()) return;
  Value isHole = b.both(b.less(row, pages.getHoleEnd()), b.isFalse(b.less(row, pages.getHoleBegin())));
  exists = b.both(exists, b.isFalse(isHole));
}

Value PagedRows::lookUp(Value table, Value wide) {
  // A buffer over the entries of these rows. Lanes without a row are out of range and read no entry.
  constexpr unsigned entryBytes = sizeof(int64_t);
  Value bytesLog2 = b.i32(2);
  if (wide) bytesLog2 = b.select(wide, b.i32(3), bytesLog2);
  Value firstPage = b.waveUniform(page);
  Value start = b.advance(table, b.shiftLeft(b.zeroExtend(firstPage), b.zeroExtend(bytesLog2)));
  Value entries = b.buffer(start, b.i64(lanes * entryBytes)), nowhere = b.i32(-1);
  Value offset = b.shiftLeft(b.sub(page, firstPage), bytesLog2);
  Value low = CountedLoadOp::create(b, b.getI32Type(), entries, b.select(exists, offset, nowhere));
  Value high = b.i32(0);
  if (wide) {
    // Narrow entries have no upper half: all lanes are out of range for it.
    constexpr int32_t outOfRange = 1 << 30;
    Value upper = b.add(offset, b.select(wide, b.i32(sizeof(int32_t)), b.i32(outOfRange)));
    high = CountedLoadOp::create(b, b.getI32Type(), entries, b.select(exists, upper, nowhere));
  }
  return vector::FromElementsOp::create(b, VectorType::get(2, b.getI32Type()), ValueRange{low, high});
}

Value PagedRows::addresses(Value base, Value entries, Value pageStrideBytes, Value rowStrideBytes,
                           Value missing, const Packs *packs) {
  Value low = vector::ExtractOp::create(b, entries, 0), high = vector::ExtractOp::create(b, entries, 1);
  Value entry = b.joined(low, high);
  Value number = packs ? b.shiftRight(rowInPage, packs->log2) : rowInPage;
  Value offset = b.add(b.mul(entry, pageStrideBytes), b.mul(b.zeroExtend(number), rowStrideBytes));
  if (packs) {
    Value inPack = b.sub(rowInPage, b.shiftLeft(number, packs->log2));
    offset = b.add(offset, b.mul(b.zeroExtend(inPack), packs->elementBytes));
  }
  Value isThere = exists;
  if (lastLow) {
    isThere = b.both(isThere, isAtMost(b, entries, 0, lastLow));
    isThere = b.both(isThere, isAtMost(b, entries, 1, lastHigh));
  }
  return b.select(isThere, b.advance(base, offset), missing);
}

// Half by half: a 64-bit comparison would need the halves in a pair of registers, and moving a load's result
// there waits for it.
Value isAtMost(CopyBuilder &b, Value entries, unsigned half, Value last) {
  return b.compare(arith::CmpIPredicate::ule, vector::ExtractOp::create(b, entries, half), last);
}

} // namespace sluice

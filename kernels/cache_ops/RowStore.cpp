//===- RowStore.cpp - storing a row that an append_step appends, chunk by chunk -------------------------===//
#include "cache_ops/RowStore.h"

using namespace mlir;

namespace sluice {

Value findRow(const WorkgroupSection &section, Value row, const Columns &columns) {
  CacheOpEmitter &b = section.b;
  if (!columns.are) return b.mul(row, section.out_row_stride());
  auto inColumns = [&](const Argument<uint32_t> &argument) {
    return b.zeroExtend(b.select(columns.are, argument(), b.i32(0)));
  };
  Value pack = b.shiftRight(row, inColumns(section.call.v_pack_log2));
  return b.add(b.mul(pack, section.out_row_stride()), b.bitAnd(row, inColumns(section.call.v_pack_mask)));
}

static void storeInColumns(const WorkgroupSection &section, Value chunk, Value number, Value begin,
                           Type element) {
  CacheOpEmitter &b = section.b;
  const unsigned bytes = element.getIntOrFloatBitWidth() / 8;
  Value elements = b.bitcast(VectorType::get(chunkElements, element), chunk);
  Value stride = section.out_pack_stride();
  Value first = b.mul(b.zeroExtend(firstElement(b, number)), stride);
  Value to = b.advance(section.out(), element, b.add(begin, first));
  for (unsigned i = 0; i < chunkElements; ++i) {
    LLVM::StoreOp::create(b, b.extract(elements, i), to, /*alignment=*/bytes);
    to = b.advance(to, element, stride);
  }
}

static void storeInPack(const WorkgroupSection &section, function_ref<Value()> chunk, Value number,
                        Value begin, Type element) {
  CacheOpEmitter &b = section.b;
  CacheOpEmitter::Division pack =
      b.divide(number, section.pack_chunks(), section.pack_magic(), section.pack_shift());
  Value to = b.add(begin, b.mul(b.zeroExtend(pack.quotient), section.out_pack_stride()));
  to = b.add(to, b.zeroExtend(firstElement(b, pack.rest)));
  Value address = b.advance(section.out(), element, to);
  LLVM::StoreOp::create(b, chunk(), address,
                        /*alignment=*/chunkElements * element.getIntOrFloatBitWidth() / 8);
}

void storeRow(const WorkgroupSection &section, const LaneChunks &lane, const ChunkValues &values, Value begin,
              Type element, function_ref<Value(Value)> convert, const Columns &columns) {
  CacheOpEmitter &b = section.b;
  for (auto [value, chunk] : llvm::zip_equal(values, lane.chunks))
    b.when(chunk.exists, [&, value = value, number = chunk.number] {
      if (!columns.are) return storeInPack(section, [&] { return convert(value); }, number, begin, element);
      Value converted = convert(value);
      b.branch(
          columns.are, [&] { storeInColumns(section, converted, number, begin, element); },
          [&] { storeInPack(section, [&] { return converted; }, number, begin, element); });
    });
}

} // namespace sluice

//===- KeyPages.cpp - the page table of K and V, for the keys of a workgroup ----------------------------===//
#include "attention/KeyPages.h"

using namespace mlir;

namespace sluice {

KeyPages::KeyPages(Emitter &b, const Arguments &arguments, const WorkgroupRows &rows, const KeyRange &keys,
                   unsigned keysTogether)
    : b(b), arguments(arguments), keys(keys) {
  Value sequence = b.zeroExtend(rows.sequence.batch);
  auto globalPointer = LLVM::LLVMPointerType::get(b.getContext(), 1);
  Value callerTable = arguments.late("page_table");
  wide = arguments.flag(package::score_page_index_64);
  table = b.branch(
      b.isNull(callerTable),
      // One page holds everything: its number is read from a zero.
      [&]() -> Value { return ZerosOp::create(b, globalPointer, sizeof(int64_t)); },
      [&] {
        Value entry = b.mul(sequence, arguments.late("page_table_stride"));
        Value starts = arguments.late("page_starts");
        entry = b.branch(
            b.isNull(starts), [&] { return entry; },
            [&] { return b.zeroExtend(b.loadScalar(b.getI32Type(), starts, sequence)); });
        entry = b.add(entry, b.mul(b.zeroExtend(rows.kvHead), arguments.late("page_table_head_stride")));
        Value words = b.shiftLeft(entry, b.zeroExtend(b.select(wide, b.i32(1), b.i32(0))));
        return b.advance(callerTable, b.getI32Type(), words);
      });
  Value holeBegin = keys.holeBegin, holeEnd = keys.holeEnd;
  if (keysTogether != 1) {
    Value whole = b.i32(-int32_t(keysTogether));
    holeBegin = b.bitAnd(b.add(holeBegin, b.i32(keysTogether - 1)), whole);
    holeEnd = b.bitAnd(holeEnd, whole);
  }
  pages = PagesOp::create(b, PagesType::get(b.getContext()), arguments["page_rows"], arguments["page_magic"],
                          arguments["page_shift"], holeBegin, holeEnd, arguments["last_page_low"],
                          arguments["last_page_high"]);
  hidesNone = b.isFalse(arguments.flag(package::score_pages_hidden));
}

Value KeyPages::lookUp(Value firstKey) const {
  return PageLookupOp::create(b, VectorType::get(2, b.getI32Type()), table, firstKey, keys.keyLimit, pages,
                              wide);
}

Value KeyPages::addresses(const Strides &strides, Value base, Value firstKey, Value entries, Type stored,
                          unsigned rowBytes, Value packLog2) const {
  return RowAddressesOp::create(b, base.getType(), base, firstKey, keys.keyLimit, strides.row, entries, pages,
                                strides.page, packLog2, stored.getIntOrFloatBitWidth() / 8, rowBytes);
}

Value KeyPages::addresses(StringRef side, Value base, Value firstKey, Value entries, Type stored,
                          unsigned rowBytes, Value packLog2) const {
  Strides strides{arguments[(side + "_token_stride").str()], arguments[(side + "_batch_stride").str()]};
  return addresses(strides, base, firstKey, entries, stored, rowBytes, packLog2);
}

Value KeyPages::lateAddresses(StringRef array, Value base, Value firstKey, Value entries, Type stored,
                              unsigned rowBytes) const {
  Arguments inLoop = arguments.inLoop(firstKey);
  Strides strides{inLoop.late((array + "_token_stride").str()), inLoop.late((array + "_batch_stride").str())};
  return addresses(strides, base, firstKey, entries, stored, rowBytes, /*packLog2=*/{});
}

Value KeyPages::found(Value entries) const {
  return FoundRowsOp::create(b, b.getI32Type(), entries, pages, hidesNone);
}

void KeyPages::gather(AsyncDmaOp copy, StringRef side, Value entries) const {
  copy.getEntriesMutable().assign(entries);
  copy.getPagesMutable().assign(pages);
  // The batch stride of pages is the stride of pages.
  copy.getPageStrideMutable().assign(arguments[(side + "_batch_stride").str()]);
  if (side != "k") return;
  copy.getPackLog2Mutable().assign(arguments["k_pack_log2"]);
  copy.getPackStrideMutable().assign(arguments["k_pack_stride"]);
}

Value packedColumn(Emitter &b, const Arguments &arguments, Value column) {
  Value log2 = arguments["k_pack_log2"], pack = b.shiftRight(column, log2);
  Value inPack = b.sub(column, b.shiftLeft(pack, log2));
  return b.add(b.mul(b.zeroExtend(pack), arguments["k_pack_stride"]), b.zeroExtend(inPack));
}

} // namespace sluice

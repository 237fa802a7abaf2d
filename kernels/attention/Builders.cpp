//===- Builders.cpp - what the builders of attention kernels share --------------------------------------===//
#include "attention/Builders.h"

using namespace mlir;

namespace sluice {

KeyCopies::KeyCopies(Emitter &b, const Arguments &arguments, const Sequence &sequence, AttentionOp op,
                     Value keyLimit)
    : b(b), arguments(arguments), op(op), keyLimit(keyLimit) {
  if (!op.getPaged()) return;
  auto globalPointer = LLVM::LLVMPointerType::get(b.getContext(), 1);
  Value pages = arguments.late("page_table");
  widePages = arguments.flag(package::score_page_index_64);
  table = b.branch(
      b.isNull(pages),
      // One page holds everything: its number is read from a zero.
      [&] { return SmallVector<Value>{ZerosOp::create(b, globalPointer, sizeof(int64_t))}; },
      [&] {
        Value entry = b.mul(b.zeroExtend(sequence.batch), arguments.late("page_table_stride"));
        Value starts = arguments.late("page_starts");
        entry = b.branch(
            b.isNull(starts), [&] { return SmallVector<Value>{entry}; },
            [&] {
              return SmallVector<Value>{
                  b.zeroExtend(b.loadScalar(b.getI32Type(), starts, b.zeroExtend(sequence.batch)))};
            })[0];
        Value words = b.shiftLeft(entry, b.zeroExtend(b.select(widePages, b.i32(1), b.i32(0))));
        return SmallVector<Value>{b.advance(pages, b.getI32Type(), words)};
      })[0];
}

Value KeyCopies::copy(StringRef side, Value base, Value firstKey, Value tile, Value columnLimit) {
  auto token = TokenType::get(b.getContext());
  Value tokenStride = arguments[(side + "_token_stride").str()];
  auto copied = AsyncDmaOp::create(b, token, base, firstKey, keyLimit, tokenStride, tile);
  if (columnLimit) copied.getColumnLimitMutable().assign(columnLimit);
  if (!op.getPaged()) {
    copied.setCloseRows(true); // the runtime refuses other strides
    return copied;
  }
  copied.getTableMutable().assign(table);
  copied.getPageRowsMutable().assign(arguments["page_rows"]);
  copied.getPageStrideMutable().assign(arguments[(side + "_batch_stride").str()]);
  copied.getPageMagicMutable().assign(arguments["page_magic"]);
  copied.getPageShiftMutable().assign(arguments["page_shift"]);
  copied.getWidePagesMutable().assign(widePages);
  if (side == "k") {
    copied.getPackLog2Mutable().assign(arguments["k_pack_log2"]);
    copied.getPackStrideMutable().assign(arguments["k_pack_stride"]);
  }
  copied.setPageIndexAttr(TypeAttr::get(b.getI32Type()));
  return copied;
}

} // namespace sluice

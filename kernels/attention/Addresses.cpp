//===- Addresses.cpp - addresses of the rows of Q, K, V, O and LSE --------------------------------------===//
#include "attention/Addresses.h"

using namespace mlir;

namespace sluice {

Value Addresses::strideProduct(Value count, StringRef stride) const {
  return b.mul(b.zeroExtend(count), arguments.late(stride));
}

Value Addresses::sideBase(StringRef array, StringRef side, Type type, bool mayBeInPages) const {
  auto contiguous = [&] {
    return b.add(strideProduct(rows.sequence.batch, (side + "_batch_stride").str()),
                 strideProduct(rows.sequence.firstKey, (side + "_token_stride").str()));
  };
  auto inPages = [&] { return b.i64(0); };
  Value firstOffset =
      mayBeInPages ? b.branch(b.isNull(arguments.late("page_table")), contiguous, inPages) : contiguous();
  Value offset = b.add(firstOffset, strideProduct(rows.kvHead, (side + "_head_stride").str()));
  return b.advance(arguments.late(array), type, offset);
}

Value Addresses::offsetOfRow(StringRef tensor, Value firstRow) const {
  Value offset = b.add(strideProduct(rows.sequence.batch, (tensor + "_batch_stride").str()),
                       strideProduct(b.add(firstRow, rows.token), (tensor + "_token_stride").str()));
  return b.add(offset, strideProduct(rows.qHead, (tensor + "_head_stride").str()));
}

Value Addresses::offsetOfSplit(StringRef tensor) const {
  return strideProduct(rows.split, (tensor + "_split_stride").str());
}

} // namespace sluice

//===- Addresses.cpp - where the rows of Q, K, V, O and LSE are in memory -------------------------------===//
#include "attention/Addresses.h"

using namespace mlir;

namespace sluice {

Value Addresses::ofHead(StringRef tensor, Value head, Value firstRow, Type type, Load load,
                        bool inPages) const {
  auto get = [&](StringRef suffix) {
    std::string name = (tensor + suffix).str();
    return load == Load::late ? arguments.late(name) : arguments[name];
  };
  Value offset = b.add(b.mul(b.zeroExtend(head), get("_head_stride")),
                       b.mul(b.zeroExtend(firstRow), get("_token_stride")));
  // The batch stride of pages is the stride of pages.
  if (!inPages) offset = b.add(offset, b.mul(b.zeroExtend(rows.sequence.batch), get("_batch_stride")));
  return b.advance(get(""), type, offset);
}

Value Addresses::ofQueryHead(StringRef tensor, Type type, Load load) const {
  return ofHead(tensor, rows.qHead, rows.sequence.firstRow, type, load, /*inPages=*/false);
}

Value Addresses::ofKeyHead(StringRef side, Type type, bool inPages) const {
  return ofHead(side, rows.kvHead, rows.sequence.firstKey, type, Load::onEntry, inPages);
}

Value Addresses::strideProduct(Value count, StringRef stride) const {
  return b.mul(b.zeroExtend(count), arguments.late(stride));
}

Value Addresses::ofKeys(StringRef side, Type type) const {
  Value pages = arguments.late("page_table");
  Value ofSequence = b.branch(
      b.isNull(pages),
      [&] {
        return SmallVector<Value>{
            b.add(strideProduct(rows.sequence.batch, (side + "_batch_stride").str()),
                  strideProduct(rows.sequence.firstKey, (side + "_token_stride").str()))};
      },
      [&] { return SmallVector<Value>{b.i64(0)}; })[0];
  Value offset = b.add(ofSequence, strideProduct(rows.kvHead, (side + "_head_stride").str()));
  return b.advance(arguments.late(side), type, offset);
}

Value Addresses::offsetOfRow(StringRef tensor, Value firstRow) const {
  Value offset = b.add(strideProduct(rows.sequence.batch, (tensor + "_batch_stride").str()),
                       strideProduct(b.add(firstRow, rows.token), (tensor + "_token_stride").str()));
  return b.add(offset, strideProduct(rows.qHead, (tensor + "_head_stride").str()));
}

Value Addresses::offsetOfPart(StringRef tensor) const {
  return strideProduct(rows.part, (tensor + "_part_stride").str());
}

} // namespace sluice

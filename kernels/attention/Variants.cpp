//===- Variants.cpp - reading the variant table
//------------------------------------------------------------===//
#include "attention/Variants.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Twine.h"

namespace sluice {

using llvm::SmallVector;
using llvm::StringRef;
using llvm::Twine;

static llvm::Error error(const Twine &message) {
  return llvm::createStringError(message);
}

static llvm::Expected<AttentionVariant> parseRow(StringRef row) {
  StringRef columns = row;
  if (!columns.consume_front("SLUICE_ATTENTION_FORWARD(") || !columns.consume_back(")"))
    return error("'" + row + "' is no row SLUICE_ATTENTION_FORWARD(dtype, head_dim, tile_kv, waves)");
  SmallVector<StringRef> values;
  columns.split(values, ',');
  for (StringRef &value : values)
    value = value.trim();
  AttentionVariant variant;
  unsigned *numbers[] = {&variant.headDim, &variant.tileKv, &variant.waves};
  if (values.size() != 1 + std::size(numbers))
    return error("'" + row + "' has " + Twine(values.size()) + " columns instead of " +
                 Twine(1 + std::size(numbers)));
  variant.dtype = values[0].str();
  for (auto [value, number] : llvm::zip_equal(llvm::drop_begin(values), numbers))
    if (value.getAsInteger(10, *number) || *number == 0)
      return error("'" + row + "' has '" + value + "' where a positive number belongs");
  return variant;
}

llvm::Expected<SmallVector<AttentionVariant>> parseVariants(StringRef table) {
  SmallVector<AttentionVariant> variants;
  SmallVector<StringRef> lines;
  table.split(lines, '\n');
  for (auto [index, line] : llvm::enumerate(lines)) {
    StringRef row = line.split("//").first.trim();
    if (row.empty()) continue;
    llvm::Expected<AttentionVariant> variant = parseRow(row);
    if (!variant) return error("line " + Twine(index + 1) + ": " + llvm::toString(variant.takeError()));
    variants.push_back(std::move(*variant));
  }
  return variants;
}

} // namespace sluice

//===- VariantTable.cpp - all rows of the variant table -------------------------------------------------===//
#include "tools/VariantTable.h"

#include "llvm/ADT/STLExtras.h"

using namespace llvm;

namespace sluice {
namespace {

struct RowKind {
  StringRef macro, operation, columns;
  ArrayRef<std::pair<StringRef, StringRef>> types;
};

constexpr std::pair<StringRef, StringRef> appendTypes[] = {
    {"f16", "f16"}, {"bf16", "bf16"}, {"f16", "e4m3fnuz"}, {"bf16", "e4m3fnuz"}};
constexpr std::pair<StringRef, StringRef> mergeTypes[] = {
    {"f32", "f32"}, {"f32", "f16"}, {"f32", "bf16"}, {"f16", "f16"}, {"bf16", "bf16"}};
const RowKind rowKinds[] = {{"SLUICE_KV_APPEND", "kv_append", "source, cache", appendTypes},
                            {"SLUICE_MERGE_STATES", "merge_states", "partial, o", mergeTypes}};

Expected<AroundVariant> parseAround(StringRef row, const RowKind &kind) {
  StringRef columns = row.drop_front(kind.macro.size()).trim();
  if (!columns.consume_front("(") || !columns.consume_back(")"))
    return createStringError("'" + row + "' is no row " + kind.macro + "(" + kind.columns + ")");
  auto [from, to] = columns.split(',');
  std::pair<StringRef, StringRef> types{from.trim(), to.trim()};
  if (!is_contained(kind.types, types))
    return createStringError("'" + row + "' has types that " + kind.operation + " has no kernel for");
  return AroundVariant{kind.operation.str(), types.first.str(), types.second.str()};
}

} // namespace

Expected<SmallVector<Variant>> parseVariantTable(StringRef table) {
  SmallVector<StringRef> lines;
  table.split(lines, '\n');
  SmallVector<Variant> variants;
  for (auto [index, line] : enumerate(lines)) {
    StringRef row = line.split("//").first.trim();
    const RowKind *kind = find_if(rowKinds, [&](const RowKind &k) { return row.starts_with(k.macro); });
    if (kind == std::end(rowKinds)) {
      // Whoever reads the row counts the same lines.
      Expected<SmallVector<AttentionVariant>> attention = parseVariants(std::string(index, '\n') + row.str());
      if (!attention) return attention.takeError();
      variants.append(attention->begin(), attention->end());
      continue;
    }
    Expected<AroundVariant> variant = parseAround(row, *kind);
    if (!variant) return createStringError("line " + Twine(index + 1) + ": " + toString(variant.takeError()));
    variants.push_back(std::move(*variant));
  }
  return variants;
}

} // namespace sluice

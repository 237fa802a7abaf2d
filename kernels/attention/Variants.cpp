//===- Variants.cpp - reading the variant table ---------------------------------------------------------===//
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

namespace {
struct RowKind {
  StringRef macro, columns;
  std::string AttentionVariant::*secondType; // else Q, K, V and O are of the one type
  bool hasTwoDims;                           // else K and V have the one head dim
  unsigned rowsPerWave;
  bool paged, vInK;
};
} // namespace

static constexpr RowKind rowKinds[] = {
    {"SLUICE_ATTENTION_FORWARD", "dtype, head_dim, tile_kv, waves", nullptr, false, 32, false, false},
    {"SLUICE_ATTENTION_PAGED", "dtype, head_dim, tile_kv, waves", nullptr, false, 32, true, false},
    {"SLUICE_ATTENTION_PACKED", "dtype, kv_dtype, head_dim_qk, head_dim_v, tile_kv, waves",
     &AttentionVariant::kvDtype, true, 16, true, false},
    {"SLUICE_ATTENTION_LATENT", "dtype, kv_dtype, head_dim_qk, head_dim_v, tile_kv, waves",
     &AttentionVariant::kvDtype, true, 16, true, true},
    {"SLUICE_ATTENTION_PACKED_TO", "dtype, o_dtype, head_dim_qk, head_dim_v, tile_kv, waves",
     &AttentionVariant::oDtype, true, 16, true, false},
    {"SLUICE_ATTENTION_LATENT_TO", "dtype, o_dtype, head_dim_qk, head_dim_v, tile_kv, waves",
     &AttentionVariant::oDtype, true, 16, true, true},
};

static llvm::Expected<AttentionVariant> parseRow(StringRef row) {
  auto [macro, rest] = row.split('(');
  const RowKind *kind = llvm::find_if(rowKinds, [&](const RowKind &k) { return k.macro == macro; });
  if (kind == std::end(rowKinds)) kind = rowKinds;
  StringRef columns = rest;
  if (kind->macro != macro || !columns.consume_back(")"))
    return error("'" + row + "' is no row " + kind->macro + "(" + kind->columns + ")");
  SmallVector<StringRef> values;
  columns.split(values, ',');
  for (StringRef &value : values)
    value = value.trim();
  AttentionVariant variant{};
  variant.rowsPerWave = kind->rowsPerWave;
  variant.paged = kind->paged;
  variant.vInK = kind->vInK;
  SmallVector<std::string *> types{&variant.dtype};
  if (kind->secondType) types.push_back(&(variant.*kind->secondType));
  SmallVector<unsigned *> numbers{&variant.headDimQk};
  if (kind->hasTwoDims) numbers.push_back(&variant.headDimV);
  numbers.append({&variant.tileKv, &variant.waves});
  if (values.size() != types.size() + numbers.size())
    return error("'" + row + "' has " + Twine(values.size()) + " columns instead of " +
                 Twine(types.size() + numbers.size()));
  for (auto [value, type] : llvm::zip(values, types))
    *type = value.str();
  for (auto [value, number] : llvm::zip_equal(llvm::drop_begin(values, types.size()), numbers))
    if (value.getAsInteger(10, *number) || *number == 0)
      return error("'" + row + "' has '" + value + "' where a positive number belongs");
  if (!kind->hasTwoDims) variant.headDimV = variant.headDimQk;
  for (std::string *other : {&variant.kvDtype, &variant.oDtype})
    if (*other == variant.dtype) other->clear();
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

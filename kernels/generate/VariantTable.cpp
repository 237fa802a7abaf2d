//===- VariantTable.cpp - variants by their names -------------------------------------------------------===//
#include "generate/VariantTable.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/Twine.h"

using namespace llvm;

namespace sluice {
namespace {

struct CacheOpTypes {
  StringRef operation;
  ArrayRef<std::pair<StringRef, StringRef>> types; // from, to
};

constexpr std::pair<StringRef, StringRef> appendTypes[] = {
    {"f16", "f16"}, {"bf16", "bf16"}, {"f16", "e4m3fnuz"}, {"bf16", "e4m3fnuz"}};
constexpr std::pair<StringRef, StringRef> pageCopyTypes[] = {
    {"f16", "f16"},       {"e4m3fnuz", "e4m3fnuz"}, {"f16", "e4m3fnuz"},
    {"bf16", "e4m3fnuz"}, {"e4m3fnuz", "f16"},      {"e4m3fnuz", "bf16"},
    {"q8_0", "q8_0"},     {"e5m2fnuz", "f16"},      {"e5m2fnuz", "bf16"},
    {"i8", "f16"},        {"i8", "bf16"},           {"q8_0", "f16"},
    {"q8_0", "bf16"},     {"q4_0", "f16"},          {"q4_0", "bf16"},
    {"u4", "f16"},        {"u4", "bf16"},           {"f16", "e4m3fn"},
    {"bf16", "e4m3fn"},   {"e4m3fn", "f16"},        {"e4m3fn", "bf16"},
    {"e5m2", "f16"},      {"e5m2", "bf16"}};
constexpr std::pair<StringRef, StringRef> stepTypes[] = {
    {"f16", "f16"},       {"bf16", "bf16"}, {"f16", "e4m3fnuz"}, {"bf16", "e4m3fnuz"}, {"f16", "e5m2fnuz"},
    {"bf16", "e5m2fnuz"}, {"f16", "i8"},    {"bf16", "i8"},      {"f16", "q8_0"},      {"bf16", "q8_0"},
    {"f16", "q4_0"},      {"bf16", "q4_0"}, {"f16", "u4"},       {"bf16", "u4"},       {"f16", "e4m3fn"},
    {"bf16", "e4m3fn"},   {"f16", "e5m2"},  {"bf16", "e5m2"}};
constexpr std::pair<StringRef, StringRef> mergeTypes[] = {
    {"f32", "f32"}, {"f32", "f16"}, {"f32", "bf16"}, {"f16", "f16"}, {"bf16", "bf16"}, {"f32", "e4m3fnuz"}};
const CacheOpTypes cacheOpTypes[] = {{"kv_append", appendTypes},
                                     {"kv_copy", pageCopyTypes},
                                     {"append_step", stepTypes},
                                     {"merge_states", mergeTypes}};

Expected<CacheOpVariant> cacheOpVariant(const package::KernelName &name) {
  const CacheOpTypes *operation =
      find_if(cacheOpTypes, [&](const CacheOpTypes &known) { return known.operation == name.operation; });
  std::pair<StringRef, StringRef> types{name.dtype, name.to_dtype};
  if (!is_contained(operation->types, types)) {
    std::string known;
    for (auto [from, to] : operation->types)
      known += (known.empty() ? "" : ", ") + (from + " to " + to).str();
    return createStringError(name.operation + " has no kernel from " + types.first + " to " + types.second +
                             "; it has " + known);
  }
  return CacheOpVariant{name.operation, name.dtype, name.to_dtype};
}

AttentionVariant attentionVariant(const package::KernelName &name) {
  return {.dtype = name.dtype,
          .kvDtype = name.kv_dtype,
          .oDtype = name.o_dtype,
          .headDimQk = name.head_dim_qk,
          .headDimV = name.head_dim_v,
          .tileQ = name.tile_q,
          .tileKv = name.tile_kv,
          .waves = name.waves,
          .waveRows = name.is_prefill() ? package::prefill_rows_of_wave : package::decode_rows_of_wave,
          .paged = !name.form.empty(),
          .vInK = name.form == "mla",
          .vByColumns = name.form == "columns"};
}

} // namespace

Expected<Variant> parseVariant(StringRef text) {
  std::string_view unread;
  std::optional<package::KernelName> name =
      package::parse_kernel_name(std::string_view(text.data(), text.size()), &unread);
  if (!name)
    return createStringError("'" + text + "' is not the name of a kernel: no name goes on with '" +
                             StringRef(unread.data(), unread.size()) + "' here");
  if (name->is_attention()) return Variant{*name, attentionVariant(*name)};
  Expected<CacheOpVariant> cacheOp = cacheOpVariant(*name);
  if (!cacheOp) return cacheOp.takeError();
  return Variant{*name, std::move(*cacheOp)};
}

Expected<std::vector<Variant>> parseVariantList(StringRef list) {
  SmallVector<StringRef> lines;
  list.split(lines, '\n');
  std::vector<Variant> variants;
  for (auto [index, line] : enumerate(lines)) {
    if (line.empty()) continue;
    Expected<Variant> variant = parseVariant(line);
    if (!variant) return createStringError("line " + Twine(index + 1) + ": " + toString(variant.takeError()));
    variants.push_back(std::move(*variant));
  }
  return variants;
}

} // namespace sluice

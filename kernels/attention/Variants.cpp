//===- Variants.cpp - the variant table as an array
//--------------------------------------------------------===//
#include "attention/Variants.h"

namespace sluice {

llvm::ArrayRef<AttentionVariant> attentionVariants() {
  static constexpr AttentionVariant variants[] = {
#define SLUICE_ATTENTION_FORWARD(dtype, headDim, tileKv, waves) {#dtype, headDim, tileKv, waves},
#include "attention/Variants.inc"
#undef SLUICE_ATTENTION_FORWARD
  };
  return variants;
}

} // namespace sluice

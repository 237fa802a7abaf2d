//===- Variants.h - the variants of the attention kernels as values -----------------------------*- C++
//-*-===//
#pragma once

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

namespace sluice {

struct AttentionVariant {
  llvm::StringRef dtype; // "f16" or "bf16"
  unsigned headDim;
  unsigned tileKv;
  unsigned waves;

  static constexpr unsigned rowsPerWave = 32;
  unsigned tileQ() const { return waves * rowsPerWave; }
  unsigned threads() const { return waves * 64; }
};

llvm::ArrayRef<AttentionVariant> attentionVariants();

} // namespace sluice

//===- Variants.h - the variants of the attention kernels as values -----------------------------*- C++
//-*-===//
#pragma once

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <string>

namespace sluice {

struct AttentionVariant {
  std::string dtype; // "f16" or "bf16"
  unsigned headDim;
  unsigned tileKv;
  unsigned waves;

  static constexpr unsigned rowsPerWave = 32;
  unsigned tileQ() const { return waves * rowsPerWave; }
  unsigned threads() const { return waves * 64; }
};

/// The rows of a table as Variants.inc is one, in order. The generator reads the table when it runs: a
/// changed row must not change the generator, from which every kernel is made.
llvm::Expected<llvm::SmallVector<AttentionVariant>> parseVariants(llvm::StringRef table);

} // namespace sluice

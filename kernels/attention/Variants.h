//===- Variants.h - the variants of the attention kernels as values ---------------------------*- C++ -*-===//
#pragma once

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <string>

namespace sluice {

struct AttentionVariant {
  std::string dtype;   // of Q and the arithmetic: "f16", "bf16" or "e4m3fnuz"
  std::string kvDtype; // of K and V in memory: empty if they are of dtype, or "e4m3fnuz"
  unsigned headDimQk, headDimV;
  unsigned tileKv;
  unsigned waves;
  unsigned rowsPerWave;    // 32, or 16 for tiles of tokens and query heads
  bool paged;              // K and V lie in pages, or with 16 rows a wave may
  bool vInK;               // V is the front of the rows of K
  std::string oDtype = {}; // of O: empty if it is of dtype; of "e4m3fnuz" it is "f16" or "bf16"

  unsigned tileQ() const { return waves * rowsPerWave; }
  unsigned threads() const { return waves * 64; }
  bool isPacked() const { return rowsPerWave == 16; }
  /// Soft cap, bias, mask and ALiBi. Eight waves of 32 rows have no registers left for them.
  bool everyChange() const { return isPacked() || waves < 8; }

  bool operator==(const AttentionVariant &) const = default;
};

/// The rows of a table as Variants.inc is one, in order. The generator reads the table when it runs: a
/// changed row must not change the generator, from which every kernel is made.
llvm::Expected<llvm::SmallVector<AttentionVariant>> parseVariants(llvm::StringRef table);

} // namespace sluice

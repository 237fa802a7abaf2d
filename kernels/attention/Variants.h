//===- Variants.h - the variants of the attention kernels as values ---------------------------*- C++ -*-===//
#pragma once

#include <string>

namespace sluice {

struct AttentionVariant {
  std::string dtype;   // of Q and the arithmetic: "f16", "bf16" or "e4m3fnuz"
  std::string kvDtype; // of K and V in memory: empty if they are of dtype, or "e4m3fnuz"
  std::string oDtype;  // of O: empty if it is of dtype; of "e4m3fnuz" it is "f16" or "bf16"
  unsigned headDimQk, headDimV;
  unsigned tileQ, tileKv;
  unsigned waves;
  unsigned waveRows; // 32 (tall), or 16 for tiles of tokens and query heads (packed)
  bool paged;        // K and V lie in pages, or with 16 rows a wave may
  bool vInK;         // V is the front of the rows of K

  /// Soft cap, bias, mask and ALiBi. Eight waves of 32 rows have no registers left for them.
  bool everyChange() const { return waveRows == 16 || waves < 8; }

  bool operator==(const AttentionVariant &) const = default;
};

} // namespace sluice

//===- Variants.h - the variants of the attention kernels as values ---------------------------*- C++ -*-===//
#pragma once

#include <string>

namespace sluice {

struct AttentionVariant {
  std::string dtype;   // of Q and the arithmetic: "f16", "bf16" or "e4m3fnuz"
  std::string kvDtype; // of K and V in memory: empty if they are of dtype; or "e4m3fnuz", "e5m2fnuz",
                       // "e4m3fn", "e5m2", "i8", "q8_0", "q4_0" or "u4"
  std::string oDtype;  // of O: empty if it is of dtype; for "e4m3fnuz" it is "f16" or "bf16"
  unsigned headDimQk, headDimV;
  unsigned tileQ, tileKv;
  unsigned waves;
  unsigned waveRows; // 32 (prefill) or 16
  bool paged;        // K and V may be in pages
  bool vInK;         // V is the front of the rows of K
  bool vByColumns;   // tokens of a column of V are neighbours in memory

  bool operator==(const AttentionVariant &) const = default;
};

} // namespace sluice

//===- Chips.h - what each chip can do ----------------------------------------------------------*- C++
//-*-===//
//
// The only place that knows chips. Passes and builders ask for a capability, never for a name.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

namespace sluice {

struct Chip {
  llvm::StringRef name;
  unsigned computeUnits;
  unsigned waveSize;
  unsigned ldsBytes;                         // per workgroup
  unsigned vgprs;                            // per lane and SIMD, ArchVGPR and AccVGPR together
  llvm::ArrayRef<unsigned> directToLdsBytes; // per lane and instruction, ascending
};

/// The table's row, or null for a chip we do not know.
const Chip *findChip(llvm::StringRef name);

/// All names, for error messages.
llvm::ArrayRef<Chip> allChips();

} // namespace sluice

//===- Chips.cpp - the chip table
//------------------------------------------------------------------------===//
//
// Sources: AMD Instinct MI300 ISA manual (LDS, MUBUF LDS loads), LLVM's AMDGPU usage document (registers).
// buffer_load_{ubyte,ushort,dword} ... lds exist on gfx942; wider forms do not.
//
//===----------------------------------------------------------------------------------------------------===//
#include "target/Chips.h"

namespace sluice {

static constexpr unsigned directToLdsUpToDword[] = {1, 2, 4};

static const Chip chips[] = {
    {"gfx942", /*computeUnits=*/304, /*waveSize=*/64, /*ldsBytes=*/64 * 1024, /*vgprs=*/512,
     directToLdsUpToDword},
};

llvm::ArrayRef<Chip> allChips() {
  return chips;
}

const Chip *findChip(llvm::StringRef name) {
  for (const Chip &chip : chips)
    if (chip.name == name) return &chip;
  return nullptr;
}

} // namespace sluice

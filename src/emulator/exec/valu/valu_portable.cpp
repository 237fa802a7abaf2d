//===- valu_portable.cpp - the vector ALU on any host ---------------------------------------------------===//
#include <cfenv>
#include <cstdint>
#include <span>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "emulator/exec/valu/paths.h"
#include "emulator/isa/dpp.h"
#include "emulator/isa/gpr_index.h"
#include "emulator/isa/wave.h"

#define SLUICE_SIMD_NAMESPACE portable
#define SLUICE_SIMD_LEVEL 0
#include "emulator/exec/valu/valu.inc"

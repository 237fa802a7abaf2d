//===- Chips.h - what each chip can do --------------------------------------------------------*- C++ -*-===//
//
// The only place, besides the loader's shorter table, that knows chips. Passes and builders ask for a
// capability, never for a name.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

namespace sluice {

/// One block of rows x columns f32 results, contracted over `depth` elements. f16 and bf16 have the same
/// shapes on every chip of the table.
struct MfmaShape {
  unsigned rows, columns, depth;
  bool operator==(const MfmaShape &other) const {
    return rows == other.rows && columns == other.columns && depth == other.depth;
  }
};

/// A shape, and how many passes of 4 clk it occupies the matrix core.
struct Mfma {
  MfmaShape shape;
  unsigned passes;
};

/// How many banks of four bytes serve an LDS read of the given bytes per lane.
struct LdsReadBanks {
  unsigned accessBytes, banks;
};

/// The formats that the chip's 8-bit floating-point instructions use for E4M3 and E5M2.
enum class Fp8Flavour { None, Fnuz, Ocp };

/// Wait states between two instructions of a wave. The schedulers reckon with them; LLVM inserts those that
/// are missing. gfx90a requires none after a transcendental or a mask, but is scheduled like the others.
struct WaitStates {
  unsigned afterMfma = 3; // in addition to its passes, before a vector instruction that reads its result
  unsigned afterTranscendental = 1; // before a vector instruction that reads its result
  unsigned vectorToMatrix = 2;      // between a vector instruction and an MFMA that reads its result
  unsigned afterMask = 2;           // before an instruction that reads a scalar of the vector unit
  unsigned afterM0 = 1;             // between a write of M0 and an instruction that addresses LDS with it
};

/// How long things take a wave, in turns of 4 clk. Passes of MFMAs and wait states are turns, too.
struct Turns {
  unsigned transcendental = 4; // for which a transcendental occupies the vector port
  unsigned ldsRead = 32;       // until a read of LDS is answered
};

/// On all chips of the table.
constexpr unsigned simdsPerComputeUnit = 4;

struct Chip {
  // As in the loader's table, src/package/chips.h.
  llvm::StringRef name = {};
  unsigned computeUnits = 0; // of one device as HIP counts devices
  unsigned waveSize = 0;
  unsigned ldsBytes = 0; // per workgroup

  unsigned vgprs;                            // per lane and SIMD, ArchVGPR and AccVGPR together
  llvm::ArrayRef<unsigned> directToLdsBytes; // per lane and instruction, ascending
  llvm::ArrayRef<LdsReadBanks> ldsReadBanks = {};
  llvm::ArrayRef<Mfma> mfmas = {}; // of f16 and bf16
  /// The endings of these instructions' assembler names, after v_mfma_f32_32x32x8.
  llvm::StringRef f16MfmaSuffix = "_f16", bf16MfmaSuffix = "_bf16";
  llvm::ArrayRef<Mfma> fp8Mfmas = {};   // of E4M3, in the chip's flavour
  llvm::ArrayRef<Mfma> floatMfmas = {}; // of f32
  Fp8Flavour fp8 = Fp8Flavour::None;    // Fnuz is as in the loader's table
  bool transposingLdsReads = false;     // ds_read_b64_tr_b16 and similar
  bool packedBf16Conversion = false;    // v_cvt_pk_bf16_f32
  bool hasHazardRules = false;          // the emulator's checks follow this chip's manual
  WaitStates waitStates = {};
  Turns turns = {};

  /// The passes of an MFMA whose elements have `elementBytes` bytes: 4 for f32, 2 for f16 and bf16, 1 for
  /// E4M3. 0 if the chip does not have it.
  unsigned mfmaPasses(MfmaShape shape, unsigned elementBytes) const;
  bool hasMfma(MfmaShape shape, unsigned elementBytes) const { return mfmaPasses(shape, elementBytes) != 0; }
  /// The wait states between an MFMA of f16 or bf16 and a vector instruction that reads its result.
  unsigned mfmaResultWaitStates(MfmaShape shape) const { return mfmaPasses(shape, 2) + waitStates.afterMfma; }
  /// Banks for reads of `accessBytes` per lane; 0 for an unsupported width.
  unsigned ldsBanks(unsigned accessBytes) const;
};

/// The table's row, or null for an unknown chip.
const Chip *findChip(llvm::StringRef name);

/// All chips, for error messages.
llvm::ArrayRef<Chip> allChips();

/// The table as docs/reference/chips.md shows it, in markdown.
std::string chipTable();

} // namespace sluice

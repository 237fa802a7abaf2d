//===- Chips.cpp - the chip table -----------------------------------------------------------------------===//
//
// Sources of the facts:
//
//   name, wave,     the loader's table, src/package/chips.h
//   compute units,
//   LDS bytes, FNUZ
//   VGPRs           LLVM's AMDGPUUsage: 512 per lane of a SIMD, divided between its waves
//   LDS banks       AMD Instinct MI200 and MI300 ISA manuals; for gfx950 published measurements (HipKittens)
//
//   MFMA passes     LLVM's scheduling models; chips_test checks them against LLVM
//   wait states     what LLVM's hazard recognizer inserts; tests/lit/target/wait-states.ll and, for MFMAs,
//                   tests/lit/lowering/hold-chips.ll check them
//   turns           of transcendentals: docs/concepts/timing.md; of LDS reads: 64 to 128 clk, the upper end
//   everything else LLVM's assembler for the chip; tests/unit/kernels/chips_test.cpp checks it
//
//===----------------------------------------------------------------------------------------------------===//
#include "target/Chips.h"

#include "package/chips.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"

namespace sluice {

static constexpr unsigned upToDword[] = {1, 2, 4};
static constexpr unsigned upToFourDwords[] = {1, 2, 4, 12, 16};

static constexpr LdsReadBanks banks32[] = {{4, 32}, {8, 32}, {12, 32}, {16, 32}};
static constexpr LdsReadBanks banks64[] = {{4, 32}, {8, 64}, {12, 32}, {16, 64}};

static constexpr Mfma halfRate[] = {{{16, 16, 16}, 8}, {{32, 32, 8}, 16}};
static constexpr Mfma fourPerLane[] = {{{16, 16, 16}, 4}, {{32, 32, 8}, 8}};
static constexpr Mfma upToEightPerLane[] = {
    {{16, 16, 16}, 4}, {{16, 16, 32}, 4}, {{32, 32, 8}, 8}, {{32, 32, 16}, 8}};
static constexpr Mfma eightBytesPerLane[] = {{{16, 16, 32}, 4}, {{32, 32, 16}, 8}};
static constexpr Mfma floatMfmas[] = {{{16, 16, 4}, 8}};

/// A row: the loader's table has some of its facts, and `chip` the others.
static Chip extended(std::string_view name, Chip chip) {
  const package::Chip *loaded = package::find_chip(name);
  chip.name = llvm::StringRef(loaded->name);
  chip.computeUnits = loaded->compute_units;
  chip.waveSize = loaded->wave_size;
  chip.ldsBytes = loaded->lds_bytes;
  if (loaded->e4m3fnuz) chip.fp8 = Fp8Flavour::Fnuz;
  return chip;
}

static const Chip chips[] = {
    extended("gfx90a", {.vgprs = 512,
                        .directToLdsBytes = upToDword,
                        .ldsReadBanks = banks32,
                        .mfmas = halfRate,
                        .f16MfmaSuffix = "f16",
                        .bf16MfmaSuffix = "bf16_1k",
                        .floatMfmas = floatMfmas,
                        .transposingLdsReads = false,
                        .packedBf16Conversion = false}),
    extended("gfx942", {.vgprs = 512,
                        .directToLdsBytes = upToDword,
                        .ldsReadBanks = banks32,
                        .mfmas = fourPerLane,
                        .fp8Mfmas = eightBytesPerLane,
                        .floatMfmas = floatMfmas,
                        .transposingLdsReads = false,
                        .packedBf16Conversion = false,
                        .hasHazardRules = true}),
    extended("gfx950", {.vgprs = 512,
                        .directToLdsBytes = upToFourDwords,
                        .ldsReadBanks = banks64,
                        .mfmas = upToEightPerLane,
                        .fp8Mfmas = eightBytesPerLane,
                        .floatMfmas = floatMfmas,
                        .fp8 = Fp8Flavour::Ocp,
                        .transposingLdsReads = true,
                        .packedBf16Conversion = true,
                        .waitStates = {.afterMfma = 4}}),
};

unsigned Chip::mfmaPasses(MfmaShape shape, unsigned elementBytes) const {
  for (const Mfma &mfma : elementBytes == 4 ? floatMfmas : elementBytes == 1 ? fp8Mfmas : mfmas)
    if (mfma.shape == shape) return mfma.passes;
  return 0;
}

unsigned Chip::ldsBanks(unsigned accessBytes) const {
  for (const LdsReadBanks &width : ldsReadBanks)
    if (width.accessBytes == accessBytes) return width.banks;
  return 0;
}

llvm::ArrayRef<Chip> allChips() {
  return chips;
}

const Chip *findChip(llvm::StringRef name) {
  for (const Chip &chip : chips)
    if (chip.name == name) return &chip;
  return nullptr;
}

std::string chipTable() {
  std::string text;
  llvm::raw_string_ostream out(text);
  auto row = [&](llvm::StringRef title, auto &&cell) {
    out << "| " << title << " |";
    for (const Chip &chip : chips) {
      out << " ";
      cell(chip);
      out << " |";
    }
    out << "\n";
  };
  auto yesOrNo = [&](bool value) { out << (value ? "yes" : "no"); };
  row("", [&](const Chip &chip) { out << chip.name; });
  row("---", [&](const Chip &) { out << "---"; });
  row("compute units", [&](const Chip &chip) { out << chip.computeUnits; });
  row("wave", [&](const Chip &chip) { out << chip.waveSize; });
  row("LDS bytes of a workgroup", [&](const Chip &chip) { out << chip.ldsBytes; });
  row("VGPRs of a SIMD, per lane", [&](const Chip &chip) { out << chip.vgprs; });
  row("banks by bytes an LDS read gives a lane", [&](const Chip &chip) {
    llvm::interleaveComma(chip.ldsReadBanks, out, [&](const LdsReadBanks &width) {
      out << width.accessBytes << ": " << width.banks;
    });
  });
  row("bytes a direct-to-LDS load moves for a lane",
      [&](const Chip &chip) { llvm::interleaveComma(chip.directToLdsBytes, out); });
  auto shapes = [&](llvm::ArrayRef<Mfma> of) {
    if (of.empty()) out << "none";
    llvm::interleaveComma(of, out, [&](const Mfma &mfma) {
      const auto &[rows, columns, depth] = mfma.shape;
      out << rows << "x" << columns << "x" << depth << ": " << mfma.passes;
    });
  };
  row("passes by MFMA, f16 and bf16", [&](const Chip &chip) { shapes(chip.mfmas); });
  row("passes by MFMA, E4M3", [&](const Chip &chip) { shapes(chip.fp8Mfmas); });
  row("passes by MFMA, f32", [&](const Chip &chip) { shapes(chip.floatMfmas); });
  row("wait states between 32x32x8 and a read of its result",
      [&](const Chip &chip) { out << chip.mfmaResultWaitStates({32, 32, 8}); });
  row("turns of 4 clk that a transcendental takes",
      [&](const Chip &chip) { out << chip.turns.transcendental; });
  row("turns of 4 clk until a read of LDS is answered", [&](const Chip &chip) { out << chip.turns.ldsRead; });
  row("FP8", [&](const Chip &chip) {
    out << (chip.fp8 == Fp8Flavour::None ? "none" : chip.fp8 == Fp8Flavour::Fnuz ? "FNUZ" : "OCP");
  });
  row("transposing LDS reads", [&](const Chip &chip) { yesOrNo(chip.transposingLdsReads); });
  row("packed conversion to bf16", [&](const Chip &chip) { yesOrNo(chip.packedBf16Conversion); });
  return text;
}

} // namespace sluice

//===- Schedule.h - how an attention kernel uses its registers --------------------------------*- C++ -*-===//
//
// What the variant table leaves open: it depends on how many registers Q, O and the tiles take. The schedule
// is decided once, from the op, before anything is built; builder and passes only read it.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include "llvm/ADT/StringRef.h"

#include <optional>
#include <string>

namespace sluice {

/// The loops over tiles: of a wave's own keys in registers, or of keys in LDS.
enum class KeyLoop {
  OwnTiles, // RegisterLoop
  Ahead,    // the scores one tile ahead
  Plain,
};

struct Schedule {
  /// How many waves of a SIMD share the registers; none: as many as LDS allows.
  std::optional<unsigned> wavesPerSimd;
  KeyLoop loop = KeyLoop::Plain;
  /// Q, O and a tile leave so few registers that nothing may start early.
  bool hasFewRegisters = false;
  /// A wave has registers to keep the addresses of its part of each copy throughout the loop.
  bool keepsAddresses = false;
  /// A wave lacks registers for the addresses of all its reads of a tile.
  bool isFull = false;
  /// O of a wave of many rows takes all its AccVGPRs. The other half holds Q and the data of a tile, but has
  /// no room for rows on their way to LDS: copies are direct unless elements are converted, and tiles of K
  /// and V, which fill LDS, take turns.
  bool holdsOutput = false;
  /// Copies go through registers even if no elements are converted. That takes a quarter of the instructions
  /// of direct copies, each of which has a whole line to ask for, and half the LDS.
  bool copiesThroughRegisters = false;
  /// V is in LDS in the order in which its product reads it: for many rows. It is transposed once for the
  /// workgroup, on its way there, and not by every wave. With wider elements and four waves, whose tiles are
  /// smaller, it would arrive too late: one load for each row of a lane makes twice as many.
  bool valuesByColumns = false;
  /// The reads of Q of each block of rows that do not fit in the registers of a wave, and are in LDS.
  unsigned parkedReads = 0;

  /// Its parts as "name=value", with spaces in between.
  std::string text() const;
  /// Sets a part from its text. False if there is no such part, or it cannot have the value.
  bool set(llvm::StringRef name, llvm::StringRef value);
};

/// The function attribute with the text of parts that replace the usual ones.
inline constexpr llvm::StringLiteral scheduleParts = "sluice.schedule";

} // namespace sluice

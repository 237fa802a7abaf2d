//===- KeyScales.h - a scale for each key of K or V -------------------------------------------*- C++ -*-===//
//
// Scales per token or page are found like rows of K and V: in the same order, through the same page table.
// A page that does not exist has zeros, as its rows have.
//
// Waves with tiles of their own load scales with the rows, a tile ahead (RegisterLoop): TileScales. Others
// look a tile's scales up where they need them: each lane loads the scale of one key, and the other lanes ask
// it for that (ds_bpermute). Keys past the end, and those before the window, whose pages may not exist, then
// get another key's scale: they are hidden.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include "attention/Addresses.h"
#include "attention/KeyPages.h"

namespace sluice {

/// How a kernel gets scales of keys.
enum class KeyScaling { None, LookUp, Loaded };

/// Scales of a tile's keys: each lane has those of one key, that of its number.
struct TileScales {
  mlir::Value k, v;
  static auto members(auto &of) { return std::tie(of.k, of.v); }
};

/// A tile of keys; whether there may be pages.
struct ScaledTile {
  mlir::Value firstKey;
  unsigned keys;
  bool mayBeInPages;
};

/// Loads the scales of a tile with the entries of its keys; they are undefined if the call has no scales.
TileScales loadTileScales(Emitter &b, const Arguments &arguments, const KeyPages &pages, const LaneRows &rows,
                          const ScaledTile &tile, mlir::Value entries);

/// For waves of 16 rows, whose lanes have scores of four neighbouring keys in each block of 16 keys: lane i
/// of 16 gets the value of the key of their score i, in block i / 4, so that the others have it without LDS
/// (Emitter::rowLaneValue). `keyValues`: lane l has that of key l. With blocks of columns in place of blocks
/// of keys, lane l has that of key l % 16 and block l / 16.
mlir::Value byScore(Emitter &b, const LaneRows &rows, mlir::Value keyValues);

/// The scale of one key of the tile from `firstKey` on for each lane, that of its number. `side` is "k" or
/// "v".
mlir::Value loadKeyScale(Emitter &b, const Arguments &arguments, const LaneRows &rows, const KeyRange &keys,
                         llvm::StringRef side, mlir::Value firstKey);

} // namespace sluice

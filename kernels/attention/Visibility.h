//===- Visibility.h - which keys a row sees, and which tiles of keys rows need ----------------*- C++ -*-===//
//
// Row i (a token of the sequence) is at key x = i + shift. It sees the keys j < keys with
//
//   max(x - window_left, 0) <= j <= x + window_right     or, instead of the first, j < sink_tokens
//
// and if x is in a span, also the keys of the span. The two ranges overlap in x, so together they are one.
//
// Both ends grow with i, so the first and the last of a range of rows determine which tiles the range needs:
// first the tiles of the sink tokens, then, numbered without a gap, those of the windows.
//
// A window that hides nothing is kernarg_no_window: x + window and x - window are computed in a way that does
// not overflow with it.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include "attention/Arguments.h"
#include "attention/MfmaLayout.h"

namespace sluice {

class Visibility {
public:
  using Value = mlir::Value;

  Visibility(Emitter &b, const Arguments &arguments, const Sequence &sequence, unsigned tileKv);

  /// The range of keys that a row sees, without sink tokens; last < first if it is empty.
  struct Range {
    Value first, last;
    static auto members(auto &of) { return std::tie(of.first, of.last); }
  };
  /// Those of several rows, all wave-uniform or of a lane.
  llvm::SmallVector<Range> rangesOf(llvm::ArrayRef<Value> rows) const;

  /// Chooses the tiles of rows whose first one sees the keys of `first`, and whose last one those of `last`.
  /// Before the call, no tile is chosen.
  void chooseTiles(const Range &first, const Range &last);
  /// The first key that any of these rows sees, without sink tokens.
  Value firstKeyOfTiles() const { return firstKey; }
  Value tileCount() const { return count; }
  /// The first key of the tile with that number.
  Value keyOfTile(Value tile) const;

  /// A range of tile numbers from `first` up to `end`: in these tiles, and in the one after each, all rows of
  /// the wave see all keys. `waveEnd`: see WaveKeys.
  struct Tiles {
    Value first, end;
  };
  struct Rows;
  Tiles openTiles(const Rows &rows, Value waveEnd) const;

  /// Hides keys of a tile from the rows of a wave. `blocks`: scores, one row per lane, a block for every
  /// layout.rows() keys from `tileKey` on; laneGroup = lane / layout.rows().
  struct Rows {
    Value laneFirst, laneLast; // the range of this lane's row
    Value allFirst, allLast;   // between them, all rows of the wave see all keys
  };
  static Rows rowsOf(const Range &first, const Range &last, const Range &laneRange) {
    return {laneRange.first, laneRange.last, last.first, first.last};
  }
  llvm::SmallVector<Value> hide(llvm::ArrayRef<Value> blocks, Value tileKey, const Rows &rows,
                                MfmaLayout layout, Value laneGroup) const;
  /// Whether the loop asks which keys have a page, for hideMissing().
  bool hidesMissing(MfmaLayout layout) const {
    return package::kernel_hides_missing_pages(layout.rows, tileKv);
  }
  /// Hides the keys of the tile whose bit in `found` is 0; see KeyPages.
  llvm::SmallVector<Value> hideMissing(llvm::ArrayRef<Value> blocks, Value found, MfmaLayout layout,
                                       Value laneGroup) const;
  /// Whether there may be keys of the tile that some row of the wave does not see; wave-uniform.
  Value mayHide(Value tileKey, const Rows &rows) const;

private:
  Value hidesBehind(Value tileKey, const Rows &rows) const;
  Value hidesBefore(Value tileKey, const Rows &rows) const;

  Emitter &b;
  const Arguments &arguments;
  unsigned tileKv;
  Sequence sequence;
  Value shift, windowLeft, windowRight, sinkTokens;
  Value firstKey, sinkTiles, gap, count;
};

/// The key of row 0, on the diagonal of causal masks, windows and ALiBi. Wave-uniform.
mlir::Value shiftOf(Emitter &b, const Arguments &arguments, const Sequence &sequence);

} // namespace sluice

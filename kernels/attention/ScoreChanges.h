//===- ScoreChanges.h - changes to scores before the softmax ----------------------------------*- C++ -*-===//
//
// In the order of sluice.h: scales, soft cap, bias, ALiBi, mask bits. All are in one branch, which a call
// without any of them does not take; scales that are loaded ahead have branches of their own. Changed scores
// are multiplied by log2(e), so that the softmax, which uses base 2, takes them as they are; it multiplies
// others by `factor()`.
//
// A scale for each key of V would multiply P, whose type may not have the range for that. So it is part of
// the exponent: log2(scale) is added to the score, and the running maximum is that of the sums. The
// denominator has no such scale; its terms are the exponentials divided by their keys' scales.
//
// Each kind of change is a file of scores/, and a name in the lists at the end of scores/ScoreTile.h.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include "attention/RowState.h"
#include "attention/scores/ScoreTile.h"

namespace sluice {

class ScoreChanges {
public:
  using Value = mlir::Value;

  /// `rows` are those of the block.
  ScoreChanges(Emitter &b, const Arguments &arguments, const LaneRows &rows, const KeyRange &keys,
               KeyScaling scaling, LocateRow locate);

  /// Whether apply() changes any score, other than by scales that are loaded; the same for the whole launch.
  Value any() const { return changed; }
  /// Converts the scores that apply() returns to exponents of two.
  Value factor() const { return exponentFactor; }

  struct Changed {
    Scores scores;
    Value hidden; // i32, wave-uniform: not 0 if a bias or a mask makes some score -infinity
    static auto members(auto &of) { return std::tie(of.scores, of.hidden); }
  };
  enum class ScoresAre { Any, Zero };
  /// `blocks`: raw scores in the layout of Visibility::hide, or all zero. The scores are unused if
  /// `isNeeded`, wave-uniform, is false. `loaded`: the tile's scales, if they are loaded; unused for zeros.
  Changed apply(llvm::ArrayRef<Value> blocks, Value tileKey, Value isNeeded, MfmaLayout layout, ScoresAre are,
                const TileScales *loaded) const;

  /// Whether there may be keys that apply(), which returned `hidden`, has hidden; wave-uniform. Waves of 16
  /// rows have no registers for the test, and assume so wherever anything is changed.
  Value mayHide(Value hidden, MfmaLayout layout) const {
    return isPrefill(layout) ? b.isFalse(b.equal(hidden, b.i32(0))) : changed;
  }

  /// The denominator of exponentials exp2(score + offset) of changed scores, if V has a scale for each key.
  Softmax::Denominator denominator(Value sum, llvm::ArrayRef<Value> blocks, Value offset, Value tileKey,
                                   MfmaLayout layout) const;

  /// The same with the tile's loaded scales, from the exponentials themselves.
  Value denominator(Value sum, llvm::ArrayRef<Value> exponentials, const TileScales &loaded) const;

private:
  static bool isPrefill(MfmaLayout layout) { return layout.rows == package::prefill_rows_of_wave; }
  Changed change(llvm::ArrayRef<Value> raw, Value scale, Value tileKey, Value lastKey, MfmaLayout layout,
                 ScoresAre are) const;
  using ByScore = llvm::function_ref<Value(Value score, Value keyValue)>;
  llvm::SmallVector<Value> eachByScore(llvm::ArrayRef<Value> blocks, Value keyValues, ByScore combine) const;

  Emitter &b;
  const Arguments &arguments;
  Sequence sequence;
  KeyRange keys;
  LaneRows rows;
  KeyScaling scaling;
  LocateRow locate;
  Value scaleLog2e, changed, hasScales, exponentFactor;
};

} // namespace sluice

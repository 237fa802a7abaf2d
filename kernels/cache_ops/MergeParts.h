//===- MergeParts.h - the parts of a lane's row, in memory and in registers -------------------*- C++ -*-===//
//
// The lane's parts are slot + first + i * slots. `first` is a multiple of the slots of a row times the parts
// that a lane loads at a time, `depth`. "Before the slot" is such a number without the slot.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include "cache_ops/MergeRow.h"

#include <limits>
#include <optional>

namespace sluice {

/// The LSE of a part without weight.
constexpr double emptyLse = -std::numeric_limits<double>::infinity();

/// Code of its own, with the bits of MergeMode after merge_specially, or the code of all other merges.
enum class MergeCode { Usual, Special };

mlir::Value partBeforeSlot(const MergeRow &row, mlir::Value first, unsigned i);
mlir::Value isPresent(const MergeRow &row, mlir::Value partBefore);
/// The lane's part; part 0 if it is past the last.
mlir::Value presentPart(const MergeRow &row, mlir::Value partBefore);
/// Whether there are more parts than slots.
mlir::Value severalPerLane(const MergeRow &row);

/// A chunk as it is in memory.
mlir::Value loadChunk(const MergeRow &row, mlir::Value start, mlir::Value element);

/// A lane's parts, or some of them.
struct LaneParts {
  llvm::SmallVector<mlir::Value> lses;
  llvm::SmallVector<mlir::Value> chunks; // as they are in memory; undefined for those that do not count

  static LaneParts none(const MergeRow &row, unsigned count);
  static auto members(auto &of) { return std::tie(of.lses, of.chunks); }
};

/// A chunk of a lane's row.
struct MergeChunk {
  mlir::Value number;
  mlir::Value matters; // whether it is stored
};

/// Whether a part counts for the chunk.
mlir::Value counts(const MergeRow &row, const MergeChunk &chunk, mlir::Value lse);

/// The lane's row in the LSEs of the parts ...
class PartLses {
public:
  using Value = mlir::Value;

  PartLses(const MergeRow &row, MergeCode code);

  /// The LSEs of the lane's parts number `begin` to `end` - 1; undefined for those past the last part.
  llvm::SmallVector<Value> load(Value first, unsigned begin, unsigned end) const;
  /// Those of the lane's first parts.
  llvm::SmallVector<Value> loadFirst(unsigned depth) const;

private:
  const MergeRow &row;
  const MergeCode code;
  const Value start; // the row's first element in the lane's first part
};

/// ... and in the parts.
class PartChunks {
public:
  using Value = mlir::Value;

  PartChunks(const MergeRow &row, MergeCode code);

  /// The chunk's first element in the lane's first part.
  Value startOf(Value chunk) const;
  /// The parts from number `begin` on, which have these LSEs, with the chunk that starts at `chunkStart` in
  /// the lane's first part.
  LaneParts load(const MergeChunk &chunk, Value chunkStart, Value first, unsigned begin,
                 mlir::ValueRange lses) const;

private:
  const MergeRow &row;
  const MergeCode code;
  const Value start; // the row's first element in the lane's first part
};

/// What decides which parts a row of a cascade has.
struct CascadeRow {
  mlir::Value isLong, seesPrefix;
};

/// Finds the parts that count by their LSEs and numbers.
class CountedParts {
public:
  using Value = mlir::Value;

  CountedParts(const MergeRow &row, MergeCode code, std::optional<CascadeRow> cascade = {})
      : row(row), code(code), cascade(cascade) {}

  /// LSEs from number `begin` on, with -infinity for those past the last part, for those that mark empty
  /// parts, and for those that a row of a cascade does not have.
  llvm::SmallVector<Value> lses(Value first, unsigned begin, mlir::ValueRange loaded) const;

private:
  Value hasPart(Value part) const;

  const MergeRow &row;
  const MergeCode code;
  const std::optional<CascadeRow> cascade;
};

} // namespace sluice

//===- NextQuery.h - prefetching the next workgroup's rows of Q -------------------------------*- C++ -*-===//
//
// A workgroup begins with a wait for its rows of Q, which no other workgroup has read. If it has a compute
// unit to itself, the matrix cores are idle during that wait. So each wave, while it computes its last tile,
// requests rows of the workgroup that probably follows it there (package/rounds.h): one word of each line,
// which is then in L2.
//
// The words go to a register that no other instruction names, and no wave waits for it.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include "attention/Addresses.h"

namespace sluice {

class NextQuery {
public:
  using Value = mlir::Value;

  /// For rows of `columns` elements `inMemory`, or of fewer as the arguments say; a wave has `rowsOfWave` of
  /// the `tileQ` rows of a workgroup, and 256 registers.
  NextQuery(Emitter &b, const Arguments &arguments, unsigned rowsOfWave, unsigned tileQ, unsigned columns,
            mlir::Type inMemory)
      : b(b), arguments(arguments), rowsOfWave(rowsOfWave), tileQ(tileQ), columns(columns),
        inMemory(inMemory) {}

  /// Called in a loop in which `changing`, a wave-uniform i32, changes: none of it is computed before the
  /// loop. `rows` are this workgroup's, located in the loop.
  void prefetch(const LaneRows &rows, Value changing) const;

private:
  Emitter &b;
  const Arguments &arguments;
  unsigned rowsOfWave, tileQ, columns;
  mlir::Type inMemory;
};

} // namespace sluice

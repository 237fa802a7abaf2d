//===- PipelinePlan.h - whether and how copies of a loop can be pipelined ---------------------*- C++ -*-===//
#pragma once

#include "dialect/Sluice.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

#include "llvm/ADT/DenseSet.h"

#include <optional>
#include <string>

namespace sluice {

/// A look-up in the loop that copies share, and the operations that compute its operands.
struct Lookup {
  PageLookupOp op;
  mlir::SmallVector<mlir::Operation *> slice; // in block order, all pure
};

/// One copied tile of the loop: the copy, the wait for it, and the operations that compute its operands.
struct CopyGroup {
  AsyncDmaOp copy;
  AsyncWaitOp wait;
  unsigned barrier = 0;                       // of an iteration, from 0: the one that tells of the tile
  mlir::SmallVector<mlir::Operation *> slice; // in block order, all pure
  std::optional<unsigned> lookup;             // which look-up the copy needs
  bool isFirst = false, isLast = false;       // of those that share it
  bool landsWithNext = false;                 // nobody reads the tile before the wait for the next group
  bool isFreed = false; // a barrier of another one ends its reads before it is overwritten
};

/// Copies that were in the block before the loop, and the operation before which they must have landed.
struct Drain {
  mlir::SmallVector<AsyncDmaOp> copies;
  mlir::Operation *before; // a barrier, an operation that reads LDS, or the loop
};

/// How a loop is pipelined: all that can be said before anything is changed.
struct PipelinePlan {
  mlir::scf::ForOp loop;
  mlir::SmallVector<CopyGroup> groups; // in issue order, which is also the order of the waits
  unsigned stages = 0;                 // a copy is issued one iteration less ahead
  bool isFetched = false;              // all of them go through registers; or none does
  bool firstIsReadLast = false;        // a tile that the first barrier tells of is read behind the last one
  bool takesTurns = false;             // one slot each in LDS: tiles are copied while others are read
  unsigned barriers = 0;               // of an iteration
  mlir::SmallVector<Lookup> lookups;
  bool waitsAhead = false;         // an iteration ends with the first wait of the next one
  BarrierOp trailingBarrier;       // frees the tiles for the next iteration; null if the loop has none
  mlir::SmallVector<Drain> drains; // in program order
  mlir::Operation *prologueBehind = nullptr; // the copy behind which the prologue goes; null: before the loop
};

/// Looks only. `ours`: copies that pipelines of earlier loops have made or drained, with marks and waits of
/// their own. Fails with the reason why the loop stays as it is.
mlir::FailureOr<PipelinePlan> planPipeline(mlir::scf::ForOp loop, unsigned stages, bool takesTurns,
                                           const llvm::DenseSet<mlir::Operation *> &ours,
                                           std::string &reason);

} // namespace sluice

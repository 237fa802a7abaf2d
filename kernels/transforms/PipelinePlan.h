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
  mlir::SmallVector<FoundRowsOp> found;       // which of its rows the iteration finds
};

/// A copied tile of the loop: the copy, the wait for it, and the operations that compute its operands.
struct CopyGroup {
  AsyncDmaOp copy;
  AsyncWaitOp wait;
  unsigned barrier = 0; // of an iteration, from 0: the one after which the tile can be read
  mlir::SmallVector<mlir::Operation *> slice; // in block order, all pure
  std::optional<unsigned> lookup;             // which look-up the copy needs
  bool isFirst = false, isLast = false;       // of the copies that share it
  bool landsWithNext = false;                 // no wave reads the tile before the wait for the next group
  bool isFreed = false; // a barrier of another group ends its reads before it is overwritten
};

/// Copies that were in the block before the loop, and the operation before which they must have landed.
struct Drain {
  mlir::SmallVector<AsyncDmaOp> copies;
  mlir::Operation *before; // a barrier, an operation that reads LDS, or the loop
};

/// How a loop is pipelined, decided before anything changes.
struct PipelinePlan {
  mlir::scf::ForOp loop;
  mlir::SmallVector<CopyGroup> groups; // in issue order, which is also the order of the waits
  unsigned stages = 0;                 // a copy is issued stages - 1 iterations ahead
  bool isFetched = false;              // all copies go through registers, or none
  bool firstIsReadLast = false;        // a tile of the first barrier is read after the last barrier
  bool takesTurns = false;             // one slot each in LDS: tiles are copied while others are read
  unsigned barriers = 0;               // of an iteration
  mlir::SmallVector<Lookup> lookups;
  bool waitsAhead = false;                   // an iteration ends with the first wait of the next one
  BarrierOp trailingBarrier;                 // frees the tiles for the next iteration; null if it is missing
  mlir::SmallVector<Drain> drains;           // in program order
  mlir::Operation *prologueBehind = nullptr; // the copy after which the prologue goes; null: before the loop
};

/// Changes nothing. `ours`: copies that the pipelines of earlier loops have made or drained, with their own
/// marks and waits. Fails with the reason why the loop stays as it is.
mlir::FailureOr<PipelinePlan> planPipeline(mlir::scf::ForOp loop, unsigned stages, bool takesTurns,
                                           const llvm::DenseSet<mlir::Operation *> &ours,
                                           std::string &reason);

} // namespace sluice

//===- SinkCopies.cpp - copies into the branches that multiply ------------------------------------------===//
//
// A pipelined loop copies the next tile behind a barrier, in front of the branches in which waves multiply.
// Issued there in a row, copies hold up their wave while its matrix core is idle. This pass moves them into
// the branches, where interleave-mfma spreads them between MFMAs.
//
//   before: barrier                          after: barrier
//           load_to_lds x8 ; async_mark             scf.if %active {
//           scf.if %active {                          load_to_lds x8 ; async_mark
//             mfma x32                                mfma x32
//           } else {}                               } else {
//                                                     load_to_lds x8 ; async_mark
//                                                   }
//
// All waves copy a tile together, whatever else they do. So every path gets every copy and every mark exactly
// once, in their order: a branch without MFMAs at its start, one with MFMAs in front of the first, or in the
// branches of the operation inside it that has them. What only copies need goes with them. Loads of page
// tables stay, and are in flight before the copies.
//
// Safe direction: a copy that stays is right. One that moves passes nothing but pure operations, loads of
// page tables, branches, and LDS reads of the interval between two barriers it was in: nobody reads the bytes
// that a copy writes before the next wait and barrier, and every reader of what they held is behind the last
// one. Branches that have MFMAs are taken by all lanes of a wave together.
//
//===----------------------------------------------------------------------------------------------------===//
#include "transforms/Copies.h"
#include "transforms/Passes.h"

#include "mlir/Dialect/AMDGPU/IR/AMDGPUDialect.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/SetVector.h"

namespace sluice {
#define GEN_PASS_DEF_SINKCOPIES
#include "transforms/Passes.h.inc"

using namespace mlir;

namespace {

/// Copies pass it, and it stays: a load for others, or what LLVM does not take out of branches and loops,
/// like the number of the wave.
bool stays(Operation *op) {
  return isa<CountedLoadOp, ROCDL::ReadfirstlaneOp>(op);
}

bool isPassed(Operation *op) {
  return stays(op) || isOfCopies(op) || (computesOnly(op) && op->getNumRegions() == 0);
}

/// The copies that stand in front of the branch, behind the last operation they must not pass, with their
/// marks and what only they need; in block order.
SmallVector<Operation *> copiesBefore(scf::IfOp branch) {
  llvm::SetVector<Operation *> found;
  for (Operation *op = branch->getPrevNode(); op && isPassed(op); op = op->getPrevNode()) {
    auto isFound = [&](Operation *user) { return found.contains(user); };
    bool isNeeded = !op->use_empty() && llvm::all_of(op->getUsers(), isFound);
    if (isCopy(op) || isa<AsyncMarkOp>(op) || (isNeeded && !stays(op))) found.insert(op);
  }
  if (llvm::none_of(found, isCopy)) return {};
  return SmallVector<Operation *>(llvm::reverse(found));
}

void sinkInto(scf::IfOp branch, ArrayRef<Operation *> copies);

void sinkInto(Block &block, ArrayRef<Operation *> copies) {
  Operation *place = &block.front();
  for (Operation &op : block) {
    auto inner = dyn_cast<scf::IfOp>(op);
    if (inner && multiplies(inner) && inner.elseBlock()) return sinkInto(inner, copies);
    if (!isa<amdgpu::MFMAOp>(op)) continue;
    place = &op;
    break;
  }
  OpBuilder builder(place);
  IRMapping map;
  for (Operation *op : copies)
    builder.clone(*op, map);
}

void sinkInto(scf::IfOp branch, ArrayRef<Operation *> copies) {
  sinkInto(*branch.thenBlock(), copies);
  sinkInto(*branch.elseBlock(), copies);
}

struct SinkCopiesPass : impl::SinkCopiesBase<SinkCopiesPass> {
  void runOnOperation() override {
    getOperation().walk<WalkOrder::PreOrder>([](scf::IfOp branch) {
      if (!branch.elseBlock() || !multiplies(branch)) return;
      SmallVector<Operation *> copies = copiesBefore(branch);
      if (copies.empty()) return;
      sinkInto(branch, copies);
      for (Operation *op : llvm::reverse(copies))
        op->erase();
    });
  }
};

} // namespace
} // namespace sluice

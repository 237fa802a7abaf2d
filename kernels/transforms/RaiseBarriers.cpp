//===- RaiseBarriers.cpp - move barriers into the branches before them ----------------------------------===//
//
// When a wait and a barrier are between two branches that multiply, no wave has an MFMA in progress there.
// This pass moves them to the ends of the branch before, where interleave-mfma moves them up past the last
// MFMAs, whose operands are in registers by then.
//
//   before: scf.if %active {                 after: scf.if %active {
//             mfma x32                                mfma x32
//           } else {}                                 wait_marks ; barrier
//           wait_marks ; barrier                    } else {
//                                                     wait_marks ; barrier
//                                                   }
//
// Every path gets them once: all waves of a workgroup pass the same number of barriers, whichever branches
// they take.
//
// A barrier at the start of both sides of a branch, as in stores through LDS for each type of O, becomes one
// barrier before the branch.
//
// Safe direction: a barrier that stays is right. One that moves passes only the ends of branches, operations
// without side effects, and, out of a branch, operations that do not access LDS.
//
//===----------------------------------------------------------------------------------------------------===//
#include "transforms/Copies.h"
#include "transforms/Passes.h"

namespace sluice {
#define GEN_PASS_DEF_RAISEBARRIERS
#include "transforms/Passes.h.inc"

using namespace mlir;

namespace {

/// Marks of live tiles are of no use once copies are distributed.
bool isIdle(Operation *op) {
  return isa<LiveInOp, LiveOutOp>(op) || (isPure(op) && op->getNumRegions() == 0);
}

/// The branch that multiplies and is separated from `op` only by idle operations.
scf::IfOp branchBefore(Operation *op) {
  Operation *previous = op->getPrevNode();
  while (previous && isIdle(previous))
    previous = previous->getPrevNode();
  auto branch = dyn_cast_or_null<scf::IfOp>(previous);
  return branch && branch.elseBlock() && multiplies(branch) ? branch : scf::IfOp();
}

void appendTo(scf::IfOp branch, ArrayRef<Operation *> ops) {
  for (Block *block : {branch.thenBlock(), branch.elseBlock()}) {
    if (scf::IfOp inner = branchBefore(block->getTerminator())) {
      appendTo(inner, ops);
      continue;
    }
    OpBuilder builder(block->getTerminator());
    for (Operation *op : ops)
      builder.clone(*op);
  }
}

/// Whether the operation or one inside it may access LDS or synchronise: only this project's own do.
bool mayAccessLds(Operation &op) {
  return op
      .walk([](Operation *inner) {
        bool isOther = inner->getDialect() && !isa<SluiceDialect>(inner->getDialect());
        return isOther || isIdle(inner) ? WalkResult::advance() : WalkResult::interrupt();
      })
      .wasInterrupted();
}

/// The first barrier of the block, if only operations that do not access LDS precede it.
BarrierOp firstIn(Block &block) {
  for (Operation &op : block) {
    if (auto barrier = dyn_cast<BarrierOp>(op)) return barrier;
    if (mayAccessLds(op)) break;
  }
  return {};
}

void moveInFrontOf(scf::IfOp branch) {
  if (!branch.elseBlock()) return;
  BarrierOp one = firstIn(*branch.thenBlock()), other = firstIn(*branch.elseBlock());
  if (!one || !other) return;
  one->moveBefore(branch);
  other->erase();
}

struct RaiseBarriersPass : impl::RaiseBarriersBase<RaiseBarriersPass> {
  void runOnOperation() override {
    SmallVector<BarrierOp> barriers;
    getOperation().walk([&](BarrierOp barrier) { barriers.push_back(barrier); });
    for (BarrierOp barrier : barriers) {
      SmallVector<Operation *> ops{barrier};
      Operation *previous = barrier->getPrevNode();
      while (isa_and_nonnull<LiveInOp, LiveOutOp>(previous))
        previous = previous->getPrevNode();
      if (isa_and_nonnull<WaitMarksOp>(previous)) ops.insert(ops.begin(), previous);
      scf::IfOp branch = branchBefore(ops.front());
      if (!branch) continue;
      appendTo(branch, ops);
      for (Operation *op : ops)
        op->erase();
    }
    getOperation().walk(moveInFrontOf);
  }
};

} // namespace
} // namespace sluice

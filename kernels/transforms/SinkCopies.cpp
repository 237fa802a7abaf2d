//===- SinkCopies.cpp - move copies into the branches that multiply -------------------------------------===//
//
// A pipelined loop copies the next tile after a barrier, before the branches in which waves multiply. Issued
// there in a row, copies hold up their wave while its matrix core is idle. This pass moves them into the
// branches, where interleave-mfma spreads them between MFMAs.
//
//   before: barrier                          after: barrier
//           load_to_lds x8 ; async_mark             scf.if %active {
//           scf.if %active {                          load_to_lds x8 ; async_mark
//             mfma x32                                mfma x32
//           } else {}                               } else {
//                                                     load_to_lds x8 ; async_mark
//                                                   }
//
// Loads and LDS writes of copies through registers go the same way, and the branches yield the loaded values.
//
// All waves copy a tile together, on every path. So every path gets every copy and every mark exactly
// once, in their order: at the start of a branch without MFMAs; in a branch with MFMAs, before the first, or
// in the branches of the nested operation that has them. Operations that only copies need go with them. Loads
// of page tables stay, and are in flight before the copies.
//
// Safe direction: a copy that stays is right. One that moves passes only pure operations, loads of page
// tables, branches, and LDS reads from its own interval between two barriers: no wave reads the bytes that a
// copy writes before the next wait and barrier, and every reader of their former contents is past the last
// one. All lanes of a wave take the branches that have MFMAs together.
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

/// Copies pass it, and it stays: a load for others, or an operation that LLVM does not take out of branches
/// and loops, such as the number of the wave.
bool stays(Operation *op) {
  return isa<CountedLoadOp, ROCDL::ReadfirstlaneOp>(op);
}

/// Keeps LLVM from moving fetches further, as the branches do.
bool isFence(Operation *op) {
  return isa<LLVM::FenceOp>(op);
}

/// Whether copies sink past it. Operands that follow copies into a branch are all live there at once, so in
/// kernels that keep no addresses copies do not pass opaque values.
bool isPassed(Operation *op) {
  if (isOpaque(op)) return !op->getParentOfType<gpu::GPUFuncOp>()->hasAttr(noAddresses);
  return stays(op) || isOfCopies(op) || isFence(op) || (computesOnly(op) && op->getNumRegions() == 0);
}

/// The copies before the branch, after the last operation that they must not pass, with their marks, the
/// operations that only they need and those computed from fetched rows; in block order.
SmallVector<Operation *> copiesBefore(scf::IfOp branch) {
  llvm::DenseSet<Operation *> found;
  Operation *first = branch;
  for (Operation *op = branch->getPrevNode(); op && isPassed(op); op = op->getPrevNode()) {
    auto isFound = [&](Operation *user) { return found.contains(user); };
    bool isNeeded = !op->use_empty() && llvm::all_of(op->getUsers(), isFound);
    if (isCopy(op) || isa<AsyncMarkOp>(op) || (isNeeded && !stays(op))) found.insert(op);
    first = op;
  }
  SmallVector<Operation *> ordered;
  for (Operation *op = first; op != branch; op = op->getNextNode()) {
    auto isFound = [&](Value operand) { return found.contains(operand.getDefiningOp()); };
    if (llvm::any_of(op->getOperands(), isFound)) found.insert(op);
    if (found.contains(op)) ordered.push_back(op);
  }
  if (llvm::none_of(ordered, isCopy)) return {};
  return ordered;
}

/// Copies, and which of their values other operations use.
struct Sunk {
  SmallVector<Operation *> copies;
  SmallVector<Value> results;
};

SmallVector<Value> sinkInto(scf::IfOp branch, const Sunk &sunk);

/// Returns the results in the block.
SmallVector<Value> sinkInto(Block &block, const Sunk &sunk) {
  Operation *place = &block.front();
  for (Operation &op : block) {
    auto inner = dyn_cast<scf::IfOp>(op);
    if (inner && multiplies(inner) && inner.elseBlock()) return sinkInto(inner, sunk);
    if (!isa<amdgpu::MFMAOp>(op)) continue;
    place = &op;
    break;
  }
  OpBuilder builder(place);
  IRMapping map;
  for (Operation *op : sunk.copies)
    builder.clone(*op, map);
  return llvm::map_to_vector(sunk.results, [&](Value value) { return map.lookup(value); });
}

/// Returns the results of the branch that replaces `branch`.
SmallVector<Value> sinkInto(scf::IfOp branch, const Sunk &sunk) {
  for (Block *block : {branch.thenBlock(), branch.elseBlock()}) {
    SmallVector<Value> results = sinkInto(*block, sunk);
    block->getTerminator()->insertOperands(block->getTerminator()->getNumOperands(), results);
  }
  if (sunk.results.empty()) return {};
  auto types = llvm::to_vector(branch.getResultTypes());
  llvm::append_range(types, ValueRange(sunk.results).getTypes());
  OpBuilder builder(branch);
  auto wider = scf::IfOp::create(builder, branch.getLoc(), types, branch.getCondition());
  wider->setAttrs(branch->getAttrs());
  wider.getThenRegion().takeBody(branch.getThenRegion());
  wider.getElseRegion().takeBody(branch.getElseRegion());
  size_t before = branch.getNumResults();
  branch.replaceAllUsesWith(wider.getResults().take_front(before));
  branch.erase();
  return SmallVector<Value>(wider.getResults().drop_front(before));
}

/// Returns the branch, or its replacement.
scf::IfOp sink(scf::IfOp branch) {
  Sunk sunk{copiesBefore(branch), {}};
  if (sunk.copies.empty()) return branch;
  llvm::DenseSet<Operation *> moved(sunk.copies.begin(), sunk.copies.end());
  for (Operation *op : sunk.copies)
    for (Value result : op->getResults())
      if (llvm::any_of(result.getUsers(), [&](Operation *user) { return !moved.contains(user); }))
        sunk.results.push_back(result);
  for (Operation *op = sunk.copies.front(); op != branch;) {
    Operation *fence = op;
    op = op->getNextNode();
    if (isFence(fence)) fence->erase();
  }
  Operation *next = branch->getNextNode();
  SmallVector<Value> results = sinkInto(branch, sunk);
  for (auto [result, inBranches] : llvm::zip_equal(sunk.results, results))
    result.replaceAllUsesWith(inBranches);
  for (Operation *op : llvm::reverse(sunk.copies))
    op->erase();
  return cast<scf::IfOp>(next->getPrevNode());
}

/// Outer branches first: they receive all copies, and keep those that they do not pass on.
void sinkAll(Region &region) {
  for (Block &block : region)
    for (Operation *visited = &block.front(); visited; visited = visited->getNextNode()) {
      if (auto branch = dyn_cast<scf::IfOp>(visited); branch && branch.elseBlock() && multiplies(branch))
        visited = sink(branch);
      for (Region &inner : visited->getRegions())
        sinkAll(inner);
    }
}

struct SinkCopiesPass : impl::SinkCopiesBase<SinkCopiesPass> {
  void runOnOperation() override { sinkAll(getOperation().getBody()); }
};

} // namespace
} // namespace sluice

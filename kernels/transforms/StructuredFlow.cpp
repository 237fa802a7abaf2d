//===- StructuredFlow.cpp - dataflow over loops and branches that are still regions ---------------------===//
#include "transforms/StructuredFlow.h"

#include "mlir/IR/Operation.h"

using namespace mlir;

namespace sluice {

SmallVector<RegionEdge> regionEdges(Operation *op) {
  auto branches = cast<RegionBranchOpInterface>(op);
  SmallVector<RegionEdge> edges;
  auto add = [&](RegionBranchPoint point, Region *from) {
    SmallVector<RegionSuccessor> successors;
    branches.getSuccessorRegions(point, successors);
    for (const RegionSuccessor &successor : successors)
      edges.push_back({from, successor.isParent() ? nullptr : successor.getSuccessor()});
  };
  add(RegionBranchPoint::parent(), nullptr);
  for (Region &region : op->getRegions())
    if (!region.empty())
      add(cast<RegionBranchTerminatorOpInterface>(region.front().getTerminator()), &region);
  return edges;
}

LogicalResult verifyStructured(Operation *root) {
  for (Region &region : root->getRegions()) {
    if (!region.empty() && !region.hasOneBlock())
      return root->emitError() << "has branches between blocks; only structured control flow can be followed";
    for (Operation &op : region.getOps()) {
      if (op.getNumRegions() == 0) continue;
      auto ends = [](Region &body) {
        return body.empty() || isa<RegionBranchTerminatorOpInterface>(body.front().back());
      };
      if (!isa<RegionBranchOpInterface>(op) || !llvm::all_of(op.getRegions(), ends))
        return op.emitError() << "does not say how control goes through its regions";
      if (failed(verifyStructured(&op))) return failure();
    }
  }
  return success();
}

} // namespace sluice

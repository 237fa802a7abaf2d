//===- PeelUsualWay.cpp - a path without branches through a loop's usual iterations ---------------------===//
//
// Most tiles of keys need only two products and a softmax: every wave has rows that see every key, and no
// score needs an addition. Everything else a kernel can do is in branches that such an iteration does not
// take. But a branch ends a block, and the code after it cannot begin while the MFMAs before it are in
// progress.
//
// Branches say which side is usual (`sluice.usual`), and `usual_way` says in which iterations all of them
// take it. This pass gives those iterations a copy of the body in which the usual sides follow one another:
//
//   before: scf.for {                         after: scf.for {
//             usual_way %holds                         scf.if %holds { a ; usual ; b ; usual }
//             a                                        else { a
//             scf.if %a {usual} { ... }                       scf.if %a { ... }
//             b                                               b
//             scf.if %b {usual} { ... }                       scf.if %b { ... } }
//           }                                        }
//
// A loop whose iterations work on several tiles has a promise for each: all must hold. Branches without a
// mark stay branches in both copies. Kernels with few registers do not change.
//
// Safe direction: a promise that fails to hold costs time. A promise that holds where a branch would have
// taken the other side gives wrong code, which this pass cannot detect; the tests with every mask do.
//
//===----------------------------------------------------------------------------------------------------===//
#include "transforms/Copies.h"
#include "transforms/Passes.h"

#include "mlir/IR/IRMapping.h"

namespace sluice {
#define GEN_PASS_DEF_PEELUSUALWAY
#include "transforms/Passes.h.inc"

using namespace mlir;

namespace {

class Peeling {
public:
  explicit Peeling(scf::ForOp loop) : loop(loop), builder(loop), loc(loop.getLoc()) {
    findPromises(*loop.getBody());
  }

  void peel() {
    Block *body = loop.getBody();
    auto yield = cast<scf::YieldOp>(body->getTerminator());
    Operation *first = &body->front();
    builder.setInsertionPointToStart(body);
    Value holds = allHold();
    auto split = scf::IfOp::create(builder, loc, yield.getOperandTypes(), holds, /*withElseRegion=*/true);
    // scf creates the yields of a branch without results itself.
    for (Block *side : {split.thenBlock(), split.elseBlock()})
      if (!side->empty()) side->getTerminator()->erase();
    builder.setInsertionPointToStart(split.thenBlock());
    IRMapping map;
    cloneUsual(*body, Block::iterator(first), map);
    SmallVector<Value> results;
    for (Value value : yield.getOperands())
      results.push_back(map.lookupOrDefault(value));
    scf::YieldOp::create(builder, loc, results);

    Block *otherwise = split.elseBlock();
    otherwise->getOperations().splice(otherwise->end(), body->getOperations(), Block::iterator(first),
                                      Block::iterator(yield));
    OpBuilder::atBlockEnd(otherwise).clone(*yield);
    yield->setOperands(split.getResults());
    yield->moveAfter(split);
  }

  bool isPossible() const { return !promises.empty(); }

private:
  static bool side(scf::IfOp branch) { return cast<BoolAttr>(branch->getAttr(usualSide)).getValue(); }
  static Block &usualBlock(scf::IfOp branch) {
    return side(branch) ? *branch.thenBlock() : *branch.elseBlock();
  }

  void findPromises(Block &block) {
    for (Operation &op : block) {
      if (auto promise = dyn_cast<UsualWayOp>(op)) promises.push_back(promise);
      if (auto branch = dyn_cast<scf::IfOp>(op); branch && branch->hasAttr(usualSide))
        findPromises(usualBlock(branch));
    }
  }

  /// Whether all promises hold, computed where an iteration begins.
  Value allHold() {
    IRMapping map;
    Value all;
    for (UsualWayOp promise : promises) {
      Value holds = evaluate(promise.getHolds(), map);
      all = all ? arith::AndIOp::create(builder, loc, all, holds).getResult() : holds;
    }
    return all;
  }

  Value evaluate(Value value, IRMapping &map) {
    if (loop.isDefinedOutsideOfLoop(value) || isa<BlockArgument>(value)) return value;
    if (Value known = map.lookupOrNull(value)) return known;
    Operation *op = value.getDefiningOp();
    IRMapping operands;
    for (Value operand : op->getOperands())
      operands.map(operand, evaluate(operand, map));
    map.map(op->getResults(), builder.clone(*op, operands)->getResults());
    return map.lookup(value);
  }

  void cloneUsual(Block &block, Block::iterator from, IRMapping &map) {
    for (Operation &op : llvm::make_range(from, std::prev(block.end()))) {
      // Marks of live tiles are of no use once copies are distributed, and would separate the code around
      // them.
      if (isa<LiveInOp, LiveOutOp, UsualWayOp>(op)) continue;
      auto branch = dyn_cast<scf::IfOp>(op);
      if (!branch || !branch->hasAttr(usualSide)) {
        builder.clone(op, map);
        continue;
      }
      map.map(branch.getCondition(), arith::ConstantIntOp::create(builder, loc, side(branch), 1));
      Block &chosen = usualBlock(branch);
      cloneUsual(chosen, chosen.begin(), map);
      for (auto [result, value] : llvm::zip(branch.getResults(), chosen.getTerminator()->getOperands()))
        map.map(result, map.lookupOrDefault(value));
    }
  }

  scf::ForOp loop;
  SmallVector<UsualWayOp> promises;
  OpBuilder builder;
  Location loc;
};

struct PeelUsualWayPass : impl::PeelUsualWayBase<PeelUsualWayPass> {
  void runOnOperation() override {
    SmallVector<scf::ForOp> loops;
    getOperation().walk([&](scf::ForOp loop) { loops.push_back(loop); });
    if (!getOperation()->hasAttr(fewRegisters))
      for (scf::ForOp loop : loops)
        if (Peeling peeling(loop); peeling.isPossible()) peeling.peel();
    getOperation().walk([](UsualWayOp promise) { promise.erase(); });
  }
};

} // namespace
} // namespace sluice

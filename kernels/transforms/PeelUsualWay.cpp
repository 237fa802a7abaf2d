//===- PeelUsualWay.cpp - a way without branches through a loop's usual iterations ----------------------===//
//
// Most tiles of keys need nothing but two products and a softmax: every wave has rows that see every key, and
// nothing is to be added to scores. What else a kernel can do stands in branches that such an iteration does
// not take. But a branch ends a block, and what is behind it cannot begin while MFMAs before it are under way.
//
// Branches say which side is usual (`sluice.usual`). This pass asks once, at the beginning of an iteration,
// whether all of them whose conditions are known by then go there, and gives iterations in which they do a
// copy of the body in which those sides stand in a row:
//
//   before: scf.for {                         after: scf.for {
//             a                                        %all = a's condition and b's condition
//             scf.if %a {usual} { ... }                scf.if %all { a, usual, b, usual }
//             b                                        else { the body as it was }
//             scf.if %b {usual} { ... }              }
//           }
//
// A condition is known if it follows, by operations without side effects, from what the iteration begins
// with, or from what the usual sides yield. Branches whose conditions are not stay branches in both copies.
//
// Safe direction: both copies do the same; each wave takes the one or the other by itself and meets as many
// barriers on both.
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
    SmallVector<Value> initial(loop.getInitArgs());
    initial.push_back(isUsual(loop.getLowerBound(), loop.getInitArgs()));
    auto peeled =
        scf::ForOp::create(builder, loc, loop.getLowerBound(), loop.getUpperBound(), loop.getStep(), initial);
    builder.setInsertionPointToStart(peeled.getBody());
    ValueRange arguments = peeled.getRegionIterArgs();
    Value zero = arith::ConstantIntOp::create(builder, loc, 0, 32);
    Value goes = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ne, arguments.back(), zero);
    auto split =
        scf::IfOp::create(builder, loc, ValueRange(initial).getTypes(), goes, /*withElseRegion=*/true);
    for (bool goesUsualWay : {true, false}) {
      builder.setInsertionPointToStart(goesUsualWay ? split.thenBlock() : split.elseBlock());
      IRMapping map;
      map.map(loop.getInductionVar(), peeled.getInductionVar());
      map.map(loop.getRegionIterArgs(), arguments.drop_back());
      clone(*loop.getBody(), goesUsualWay, map);
      SmallVector<Value> results;
      for (Value value : loop.getBody()->getTerminator()->getOperands())
        results.push_back(map.lookupOrDefault(value));
      Value next = arith::AddIOp::create(builder, loc, peeled.getInductionVar(), loop.getStep());
      results.push_back(isUsual(next, results));
      scf::YieldOp::create(builder, loc, results);
    }
    builder.setInsertionPointToEnd(peeled.getBody());
    scf::YieldOp::create(builder, loc, split.getResults());
    loop->replaceAllUsesWith(peeled.getResults().drop_back());
    loop->erase();
  }

  bool isPossible() const { return !promises.empty(); }

private:
  static bool side(scf::IfOp branch) {
    return cast<BoolAttr>(branch->getAttr(usualSide)).getValue();
  }
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

  /// i32: whether all promises hold for an iteration that begins with these.
  Value isUsual(Value inductionVar, ValueRange arguments) {
    IRMapping map;
    map.map(loop.getInductionVar(), inductionVar);
    map.map(loop.getRegionIterArgs(), arguments);
    Value all;
    for (UsualWayOp promise : promises) {
      Value holds = evaluate(promise.getHolds(), map);
      all = all ? arith::AndIOp::create(builder, loc, all, holds).getResult() : holds;
    }
    return arith::ExtUIOp::create(builder, loc, builder.getI32Type(), all);
  }

  Value evaluate(Value value, IRMapping &map) {
    if (loop.isDefinedOutsideOfLoop(value)) return value;
    if (Value known = map.lookupOrNull(value)) return known;
    Operation *op = value.getDefiningOp();
    IRMapping operands;
    for (Value operand : op->getOperands())
      operands.map(operand, evaluate(operand, map));
    map.map(op->getResults(), builder.clone(*op, operands)->getResults());
    return map.lookup(value);
  }

  void clone(Block &block, bool goesUsualWay, IRMapping &map) {
    for (Operation &op : block.without_terminator()) {
      // Marks of live tiles have done their work when copies are distributed, and would part what is between.
      if (goesUsualWay && isa<LiveInOp, LiveOutOp, UsualWayOp>(op)) continue;
      auto branch = dyn_cast<scf::IfOp>(op);
      if (!goesUsualWay || !branch || !branch->hasAttr(usualSide)) {
        builder.clone(op, map);
        continue;
      }
      map.map(branch.getCondition(), arith::ConstantIntOp::create(builder, loc, side(branch), 1));
      Block &chosen = usualBlock(branch);
      clone(chosen, goesUsualWay, map);
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

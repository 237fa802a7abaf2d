//===- PipelinePlan.cpp - whether and how copies of a loop can be pipelined -----------------------------===//
#include "transforms/PipelinePlan.h"

#include "llvm/ADT/SetVector.h"

namespace sluice {

using namespace mlir;

namespace {

/// Whether the operation, or one inside it, is a barrier or reads LDS.
bool needsLandedCopies(Operation *op) {
  return op
      ->walk([](Operation *inner) {
        return isa<BarrierOp, LdsReadOp>(inner) ? WalkResult::interrupt() : WalkResult::advance();
      })
      .wasInterrupted();
}

/// `ours`: copies that pipelines of earlier loops have made or drained, with their own marks and waits.
SmallVector<Drain> collectDrains(scf::ForOp loop, const llvm::DenseSet<Operation *> &ours) {
  SmallVector<Drain> drains;
  SmallVector<AsyncDmaOp> pending;
  for (Operation &op : *loop->getBlock()) {
    bool isLoop = &op == loop.getOperation();
    if (!pending.empty() && (isLoop || needsLandedCopies(&op))) {
      drains.push_back({pending, &op});
      pending.clear();
    }
    if (isLoop) break;
    if (auto copy = dyn_cast<AsyncDmaOp>(op); copy && !ours.contains(copy)) pending.push_back(copy);
  }
  return drains;
}

/// Collects in block order what `op` needs from inside the loop body, except entries of page tables. Fails,
/// naming the obstacle, if it needs more than pure functions of the induction variable.
FailureOr<SmallVector<Operation *>> operandSlice(scf::ForOp loop, Operation *op, std::string &reason) {
  llvm::SetVector<Operation *> needed;
  SmallVector<Value> pending(op->getOperands());
  while (!pending.empty()) {
    Value value = pending.pop_back_val();
    if (auto argument = dyn_cast<BlockArgument>(value)) {
      if (argument.getOwner() == loop.getBody() && argument != loop.getInductionVar()) {
        reason = "the source of a copy depends on a value carried by the loop";
        return failure();
      }
      continue;
    }
    Operation *definition = value.getDefiningOp();
    if (definition->getBlock() != loop.getBody()) continue;
    if (isa<AsyncDmaOp>(op) && isa<PageLookupOp>(definition)) continue;
    // Inline assembly hides a value from LLVM; without side effects it is still a function of its operands.
    bool isFunction =
        isPure(definition) || (isa<LLVM::InlineAsmOp>(definition) && isMemoryEffectFree(definition));
    if (!isFunction || definition->getNumRegions() != 0) {
      reason = "the source of a copy is computed by '" + definition->getName().getStringRef().str() +
               "', which cannot be repeated ahead of time";
      return failure();
    }
    if (needed.insert(definition)) llvm::append_range(pending, definition->getOperands());
  }
  SmallVector<Operation *> ordered(needed.begin(), needed.end());
  llvm::sort(ordered, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
  return ordered;
}

/// Whether the operands of the pipeline's first copies are available after `point`, an operation of the
/// loop's block. Constants always are: they are repeated.
bool prologueFitsBehind(const PipelinePlan &plan, Operation *point) {
  auto available = [&](Value value) {
    Operation *definition = value.getDefiningOp();
    return !definition || isa<arith::ConstantOp>(definition) || definition->getBlock() != point->getBlock() ||
           definition->isBeforeInBlock(point);
  };
  auto allAvailable = [&](Operation *op) { return llvm::all_of(op->getOperands(), available); };
  scf::ForOp loop = plan.loop;
  return available(loop.getLowerBound()) &&
         llvm::all_of(plan.groups,
                      [&](const CopyGroup &group) {
                        return allAvailable(AsyncDmaOp(group.copy)) &&
                               llvm::all_of(group.slice, allAvailable);
                      }) &&
         llvm::all_of(plan.lookups, [&](const Lookup &lookup) {
           return allAvailable(PageLookupOp(lookup.op)) && llvm::all_of(lookup.slice, allAvailable);
         });
}

/// Makes the plan step by step. A step that fails leaves the reason.
class Planner {
public:
  Planner(scf::ForOp loop, const llvm::DenseSet<Operation *> &ours, std::string &reason)
      : body(loop.getBody()), ours(ours), reason(reason) {
    plan.loop = loop;
  }

  FailureOr<PipelinePlan> run(unsigned stages, bool takesTurns) {
    if (getConstantIntValue(plan.loop.getStep()) != 1) return decline("its step is not 1");
    for (AsyncDmaOp copy : body->getOps<AsyncDmaOp>())
      if (failed(addGroup(copy))) return failure();
    if (plan.groups.empty()) return decline("it has no asynchronous copy");
    plan.isFetched = plan.groups.front().copy.isFetched();
    plan.stages = plan.isFetched ? 2 : stages; // one in LDS, one in registers
    plan.takesTurns = takesTurns;
    if (llvm::any_of(plan.groups, [&](CopyGroup &group) { return group.copy.isFetched() != plan.isFetched; }))
      return decline("some of its copies go through registers and some do not");
    findBarriers();
    if (failed(shareLookups()) || failed(findTrailingBarrier())) return failure();
    plan.waitsAhead = mayWaitAhead();
    if (takesTurns && failed(checkTurns())) return failure();
    findDrains();
    return std::move(plan);
  }

private:
  LogicalResult decline(const llvm::Twine &why) {
    reason = why.str();
    return failure();
  }

  /// Appends the group of a copy.
  LogicalResult addGroup(AsyncDmaOp copy) {
    CopyGroup group;
    group.copy = copy;
    if (!copy.getToken().hasOneUse()) return decline("a copy does not have exactly one wait");
    group.wait = dyn_cast<AsyncWaitOp>(*copy.getToken().user_begin());
    if (!group.wait || group.wait->getBlock() != body)
      return decline("the wait for a copy is not in its loop body");
    if (failed(checkTile(group))) return failure();
    FailureOr<SmallVector<Operation *>> slice = operandSlice(plan.loop, copy, reason);
    if (failed(slice)) return failure();
    group.slice = *slice;
    if (failed(addLookup(group))) return failure();
    if (!plan.groups.empty() && !plan.groups.back().wait->isBeforeInBlock(group.wait))
      return decline("the waits are not in the order of the copies");
    plan.groups.push_back(group);
    return success();
  }

  /// The tile belongs to the loop, and only this copy writes it.
  LogicalResult checkTile(CopyGroup &group) {
    auto alloc = group.copy.getTile().getDefiningOp<LdsAllocOp>();
    if (!alloc || plan.loop->isAncestor(alloc))
      return decline("a copied tile is not allocated before the loop");
    for (Operation *user : alloc->getUsers()) {
      if (user == group.copy) continue;
      Operation *inBody = body->findAncestorOpInBlock(*user);
      if (!inBody) return decline("a copied tile is used outside the loop");
      if (isa<AsyncDmaOp>(user)) return decline("two copies of the loop write the same tile");
      if (!group.wait->isBeforeInBlock(inBody))
        return decline("a copied tile is read before the wait for its copy");
    }
    return success();
  }

  /// The look-up whose entries the copy needs. Copies may share it.
  LogicalResult addLookup(CopyGroup &group) {
    auto lookup =
        group.copy.isGather() ? group.copy.getEntries().getDefiningOp<PageLookupOp>() : PageLookupOp();
    if (!lookup || lookup->getBlock() != body) return success();
    auto known = llvm::find_if(plan.lookups, [&](const Lookup &l) { return l.op == lookup; });
    group.lookup = known - plan.lookups.begin();
    if (known != plan.lookups.end()) return success();
    FailureOr<SmallVector<Operation *>> slice = operandSlice(plan.loop, lookup, reason);
    if (failed(slice)) return failure();
    plan.lookups.push_back({lookup, *slice, {}});
    return success();
  }

  /// Whether all reads of a group's tile come before a wait.
  bool isReadBefore(CopyGroup &group, AsyncWaitOp wait) const {
    return llvm::all_of(group.copy.getTile().getUsers(), [&](Operation *user) {
      return user == group.copy || body->findAncestorOpInBlock(*user)->isBeforeInBlock(wait);
    });
  }
  /// Whether none does.
  bool isReadAfter(CopyGroup &group, AsyncWaitOp wait) const {
    return llvm::none_of(group.copy.getTile().getUsers(), [&](Operation *user) {
      return user != group.copy && body->findAncestorOpInBlock(*user)->isBeforeInBlock(wait);
    });
  }

  /// Gives each group its barrier.
  void findBarriers() {
    AsyncWaitOp lastWait = plan.groups.back().wait;
    bool isBarrierInFront = false;
    for (size_t next = 1; next < plan.groups.size(); ++next) {
      CopyGroup &group = plan.groups[next - 1];
      group.landsWithNext = isReadAfter(group, plan.groups[next].wait);
      group.isFreed = isBarrierInFront || isReadBefore(group, lastWait);
      isBarrierInFront |= !group.landsWithNext;
    }
    for (CopyGroup &group : plan.groups) {
      group.barrier = plan.barriers;
      plan.barriers += !group.landsWithNext;
      plan.firstIsReadLast |= group.barrier == 0 && !isReadBefore(group, lastWait);
    }
  }

  /// Finds who uses each look-up.
  LogicalResult shareLookups() {
    for (auto [number, lookup] : llvm::enumerate(plan.lookups)) {
      SmallVector<CopyGroup *> sharing;
      for (CopyGroup &group : plan.groups)
        if (group.lookup == number) sharing.push_back(&group);
      sharing.front()->isFirst = sharing.back()->isLast = true;
      for (Operation *user : lookup.op->getUsers())
        if (auto found = dyn_cast<FoundRowsOp>(user); found && found->getBlock() == body && !plan.takesTurns)
          lookup.found.push_back(found);
      if (size_t(llvm::range_size(lookup.op->getUsers())) != sharing.size() + lookup.found.size())
        return decline("entries of a page table serve more than its copies");
    }
    return success();
  }

  LogicalResult findTrailingBarrier() {
    plan.trailingBarrier = dyn_cast_or_null<BarrierOp>(body->getTerminator()->getPrevNode());
    bool otherBarrier = false;
    plan.loop->walk([&](BarrierOp barrier) { otherBarrier |= barrier != plan.trailingBarrier; });
    if (otherBarrier) return decline("it has a barrier that is not the last operation of its body");
    return success();
  }

  /// The wait moves to the end of the iteration before, and so in front of everything that precedes it now.
  bool mayWaitAhead() const {
    const CopyGroup &first = plan.groups.front();
    AsyncWaitOp wait = first.wait;
    auto beforeWait = llvm::make_range(body->begin(), Block::iterator(wait));
    return !first.landsWithNext && llvm::all_of(beforeWait, [](Operation &op) {
      return isa<AsyncDmaOp, PageLookupOp>(op) || isMemoryEffectFree(&op);
    });
  }

  /// A tile that is not read after the next barrier can be copied while the others are read.
  LogicalResult checkTurns() {
    auto isReadInTurn = [&](CopyGroup &group) {
      auto next = llvm::find_if(plan.groups, [&](CopyGroup &g) { return g.barrier == group.barrier + 1; });
      return next == plan.groups.end() || isReadBefore(group, next->wait);
    };
    if (plan.barriers < 2 || !llvm::all_of(plan.groups, isReadInTurn))
      return decline("its tiles take turns, but a tile is read in another one's turn");
    if (llvm::any_of(plan.groups, [](const CopyGroup &group) { return group.isFirst != group.isLast; }))
      return decline("its tiles take turns, but their copies share a look-up");
    return success();
  }

  /// Finds the copies that are in the block before the loop, and where the pipeline's first copies go.
  void findDrains() {
    plan.drains = collectDrains(plan.loop, ours);
    if (plan.drains.empty()) return;
    Operation *lastCopy = plan.drains.back().copies.back();
    if (prologueFitsBehind(plan, lastCopy)) plan.prologueBehind = lastCopy;
  }

  PipelinePlan plan;
  Block *body;
  const llvm::DenseSet<Operation *> &ours;
  std::string &reason;
};

} // namespace

FailureOr<PipelinePlan> planPipeline(scf::ForOp loop, unsigned stages, bool takesTurns,
                                     const llvm::DenseSet<Operation *> &ours, std::string &reason) {
  return Planner(loop, ours, reason).run(stages, takesTurns);
}

} // namespace sluice

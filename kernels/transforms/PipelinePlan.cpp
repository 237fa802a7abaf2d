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

} // namespace

FailureOr<PipelinePlan> planPipeline(scf::ForOp loop, unsigned stages, bool takesTurns,
                                     const llvm::DenseSet<Operation *> &ours, std::string &reason) {
  PipelinePlan plan;
  plan.loop = loop;
  auto decline = [&](const llvm::Twine &why) {
    reason = why.str();
    return failure();
  };
  if (getConstantIntValue(loop.getStep()) != 1) return decline("its step is not 1");

  Block *body = loop.getBody();
  for (AsyncDmaOp copy : body->getOps<AsyncDmaOp>()) {
    CopyGroup group;
    group.copy = copy;
    if (!copy.getToken().hasOneUse()) return decline("a copy does not have exactly one wait");
    group.wait = dyn_cast<AsyncWaitOp>(*copy.getToken().user_begin());
    if (!group.wait || group.wait->getBlock() != body)
      return decline("the wait for a copy is not in its loop body");
    auto alloc = copy.getTile().getDefiningOp<LdsAllocOp>();
    if (!alloc || loop->isAncestor(alloc)) return decline("a copied tile is not allocated before the loop");
    for (Operation *user : alloc->getUsers()) {
      if (user == copy) continue;
      Operation *inBody = body->findAncestorOpInBlock(*user);
      if (!inBody) return decline("a copied tile is used outside the loop");
      if (isa<AsyncDmaOp>(user)) return decline("two copies of the loop write the same tile");
      if (!group.wait->isBeforeInBlock(inBody))
        return decline("a copied tile is read before the wait for its copy");
    }
    FailureOr<SmallVector<Operation *>> slice = operandSlice(loop, copy, reason);
    if (failed(slice)) return failure();
    group.slice = *slice;
    auto lookup = copy.isGather() ? copy.getEntries().getDefiningOp<PageLookupOp>() : PageLookupOp();
    if (lookup && lookup->getBlock() == body) {
      auto known = llvm::find_if(plan.lookups, [&](const Lookup &l) { return l.op == lookup; });
      group.lookup = known - plan.lookups.begin();
      if (known == plan.lookups.end()) {
        FailureOr<SmallVector<Operation *>> lookupSlice = operandSlice(loop, lookup, reason);
        if (failed(lookupSlice)) return failure();
        plan.lookups.push_back({lookup, *lookupSlice, {}});
      }
    }
    if (!plan.groups.empty() && !plan.groups.back().wait->isBeforeInBlock(group.wait))
      return decline("the waits are not in the order of the copies");
    plan.groups.push_back(group);
  }
  if (plan.groups.empty()) return decline("it has no asynchronous copy");
  plan.isFetched = plan.groups.front().copy.isFetched();
  plan.stages = plan.isFetched ? 2 : stages; // one in LDS, one in registers
  if (llvm::any_of(plan.groups, [&](CopyGroup &group) { return group.copy.isFetched() != plan.isFetched; }))
    return decline("some of its copies go through registers and some do not");
  auto readersOf = [&](CopyGroup &group) {
    SmallVector<Operation *> readers;
    for (Operation *user : group.copy.getTile().getUsers())
      if (user != group.copy) readers.push_back(body->findAncestorOpInBlock(*user));
    return readers;
  };
  auto isBefore = [](AsyncWaitOp wait) {
    return [wait](Operation *reader) { return reader->isBeforeInBlock(wait); };
  };
  bool isBarrierInFront = false;
  for (size_t next = 1; next < plan.groups.size(); ++next) {
    CopyGroup &group = plan.groups[next - 1];
    SmallVector<Operation *> readers = readersOf(group);
    group.landsWithNext = llvm::none_of(readers, isBefore(plan.groups[next].wait));
    group.isFreed = isBarrierInFront || llvm::all_of(readers, isBefore(plan.groups.back().wait));
    isBarrierInFront |= !group.landsWithNext;
  }
  for (CopyGroup &group : plan.groups) {
    group.barrier = plan.barriers;
    plan.barriers += !group.landsWithNext;
    plan.firstIsReadLast |=
        group.barrier == 0 && !llvm::all_of(readersOf(group), isBefore(plan.groups.back().wait));
  }
  for (unsigned lookup = 0; lookup < plan.lookups.size(); ++lookup) {
    SmallVector<CopyGroup *> sharing;
    for (CopyGroup &group : plan.groups)
      if (group.lookup == lookup) sharing.push_back(&group);
    sharing.front()->isFirst = sharing.back()->isLast = true;
    for (Operation *user : plan.lookups[lookup].op->getUsers())
      if (auto found = dyn_cast<FoundRowsOp>(user); found && found->getBlock() == body && !takesTurns)
        plan.lookups[lookup].found.push_back(found);
    if (size_t(llvm::range_size(plan.lookups[lookup].op->getUsers())) !=
        sharing.size() + plan.lookups[lookup].found.size())
      return decline("entries of a page table serve more than its copies");
  }

  plan.trailingBarrier = dyn_cast_or_null<BarrierOp>(body->getTerminator()->getPrevNode());
  bool otherBarrier = false;
  loop->walk([&](BarrierOp barrier) { otherBarrier |= barrier != plan.trailingBarrier; });
  if (otherBarrier) return decline("it has a barrier that is not the last operation of its body");

  // The wait moves to the end of the iteration before, and so in front of everything that precedes it now.
  auto beforeWait = llvm::make_range(body->begin(), Block::iterator(plan.groups.front().wait));
  auto mayWaitAhead = [](Operation &op) {
    return isa<AsyncDmaOp, PageLookupOp>(op) || isMemoryEffectFree(&op);
  };
  plan.waitsAhead = !plan.groups.front().landsWithNext && llvm::all_of(beforeWait, mayWaitAhead);

  // A tile that is not read after the next barrier can be copied while the others are read.
  auto isReadInTurn = [&](CopyGroup &group) {
    auto next = llvm::find_if(plan.groups, [&](CopyGroup &g) { return g.barrier == group.barrier + 1; });
    return next == plan.groups.end() || llvm::all_of(readersOf(group), isBefore(next->wait));
  };
  auto sharesLookup = [](const CopyGroup &group) { return group.isFirst != group.isLast; };
  plan.takesTurns = takesTurns;
  if (takesTurns && (plan.barriers < 2 || !llvm::all_of(plan.groups, isReadInTurn)))
    return decline("its tiles take turns, but a tile is read in another one's turn");
  if (takesTurns && llvm::any_of(plan.groups, sharesLookup))
    return decline("its tiles take turns, but their copies share a look-up");

  plan.drains = collectDrains(loop, ours);
  if (!plan.drains.empty()) {
    Operation *lastCopy = plan.drains.back().copies.back();
    if (prologueFitsBehind(plan, lastCopy)) plan.prologueBehind = lastCopy;
  }
  return plan;
}

} // namespace sluice

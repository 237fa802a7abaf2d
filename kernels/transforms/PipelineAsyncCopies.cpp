//===- PipelineAsyncCopies.cpp - overlap copies with the work of earlier iterations ---------------------===//
//
// A loop that copies tiles into LDS and then works on them is given N LDS slots per tile. The copy for
// iteration t + N - 1 is issued in iteration t, so that a whole iteration or more hides its latency.
//
//   before:                                  after (N = 2, one tile):
//     scf.for %t = 0 to %T step 1 {            async_dma tile 0 -> slot 0 ; async_mark
//       %c = async_dma tile t -> %tile         wait_marks 0 ; barrier
//       async_wait %c                          scf.for %t = 0 to %T step 2 {
//       work(%tile)                              async_dma tile t+1 -> slot 1 ; async_mark
//       barrier                                  work(slot 0)
//     }                                          wait_marks 0 ; barrier
//                                                scf.if t+1 < T { the same with the slots exchanged } }
//                                              wait_marks 0
//
// Copies before the loop in its block (the first tile of keys, say) are not part of the pipeline and never
// count in its groups. They get their own mark and one wait for all of them, before the first barrier or the
// first operation (nested ones included) that reads LDS, whichever comes first. The pipeline's own first
// copies are issued right after them where their operands allow, so that both are in flight together: the
// wait then leaves exactly the pipeline's copies in flight. Otherwise they are issued before the loop, after
// a wait that leaves nothing in flight.
//
// A copy that gathers needs entries of a page table, which `page_lookup` reads. The entries for the copies of
// iteration t + N - 1 are looked up in iteration t - 1, after the first copy issued there, and carried. Their
// result arrives after that copy: with two slots, the copy has been waited for by then anyway; with more, one
// tile less stays in flight. Copies that share a look-up share its entries. The rows that they find
// (found_rows) are computed where the first of the copies is issued, and carried to the iteration that works
// on the tile.
//
// The first wait and barrier of an iteration move to the end of the iteration before, and those of the first
// iteration to before the loop. raise-barriers continues from there.
//
// The loop is unrolled N times so that every slot has a static address: the backend can then tell the slots
// apart and adds no wait of its own. Values that only the next iteration needs, such as scores computed one
// tile ahead, are then in different registers than those this iteration consumes, and the last iteration does
// not carry them on. If two iterations shared registers, each would have to move them.
//
// Copies through registers (fetch_rows, land_rows) have their second slot in registers: there is one slot in
// LDS for any N, and the loop is unrolled only for values that only the next iteration needs. Rows for
// iteration t + 1 are fetched after the barrier that makes tile t readable, and land after the barrier before
// the one that makes them readable. sink-copies moves both into the work that follows.
//
//   before:                                  after (K and V):
//     scf.for %t = 0 to %T step 1 {            %k = fetch K(0) ; %v = fetch V(0) ; land %k ; barrier
//       %c = async_dma K(t) from ...           scf.for %t = 0 to %T step 1 iter_args(%v) {
//       %d = async_dma V(t) from ...             land %v ; %k = fetch K(t+1)
//       async_wait %c                            work on K
//       work on K                                barrier ; land %k ; %v = fetch V(t+1)
//       async_wait %d                            work on V
//       work on V                                barrier }
//       barrier }
//
// If the kernel says that tiles take turns (sluice.tiles_take_turns), LDS has room for one slot of each tile,
// and registers for the rows of one tile: a tile is copied while the others are read. Half an iteration must
// hide the latency.
//
//   before: as above, direct copies          after:
//                                            async_dma K(0) -> K ; async_mark ; wait_marks 0 ; barrier
//                                            scf.for %t = 0 to %T step 1 {
//                                              async_dma V(t) -> V ; async_mark
//                                              work on K
//                                              wait_marks 0 ; barrier
//                                              async_dma K(t+1) -> K ; async_mark
//                                              work on V
//                                              wait_marks 0 ; barrier }
//
// Why one barrier per copy is enough: `wait_marks` completes this wave's part of tile t; the barrier extends
// that to all waves (read after write). The same barrier separates the work of iteration t - 1 in every wave
// from the copy issued after it, which overwrites the slot of iteration t - 1 (write after read), because the
// barrier op completes LDS reads first. The barrier that ended the original loop body is therefore dropped.
//
// Why it is also enough for rows that land: they are written between two barriers, and the second makes them
// readable; the barrier op also completes LDS writes (read after write). The contents they overwrite were
// read in the iteration before, and no wave reads them after the first of the two barriers (write after
// read). For the second or a later barrier of an iteration, that first one is in the same iteration; for the
// first barrier, it is the last barrier of the iteration before, provided that the tile is not read after it.
// If it is, one more barrier is added at the end, and the rows land after that.
//
// Tiles that are first read after the wait for a later tile (two parts of a row, say) need no wait of their
// own: copies land in order, and that wait and its barrier cover both. Their own barrier then only protects
// what is overwritten after it. It goes too if another barrier is between the reads of iteration t - 1 and
// the copy: the barrier of the loop's last wait, if all reads are before it, or of a wait before their own.
//
// A copy beyond the last iteration is still issued (its rows are past the limit or unused): every wave then
// has the same number of marks in flight in every iteration, and the waits stay exact.
//
// Safe direction: waiting for more marks than needed is slow; waiting for fewer is a race. A loop without
// this shape is left as it is, with a remark that says why: unpipelined code is correct.
//
//===----------------------------------------------------------------------------------------------------===//
#include "transforms/Passes.h"
#include "transforms/PipelinePlan.h"

#include "mlir/IR/IRMapping.h"

namespace sluice {
#define GEN_PASS_DEF_PIPELINEASYNCCOPIES
#include "transforms/Passes.h.inc"

using namespace mlir;

namespace {

/// Writes the pipelined loop. Cannot fail.
class PipelineRewriter {
public:
  /// `lanes`: lanes of the workgroup.
  PipelineRewriter(PipelinePlan &plan, unsigned lanes, llvm::DenseSet<Operation *> &ours)
      : plan(plan), loop(plan.loop), stages(plan.stages),
        slots(plan.isFetched || plan.takesTurns ? 1 : stages),
        turns(carriesScores() && !plan.takesTurns ? stages : slots), lanes(lanes), ours(ours),
        builder(plan.loop), loc(plan.loop.getLoc()) {}

  void rewrite() {
    allocateSlots();
    drainEarlierCopies();
    issuePrologue();

    // The loop's own values, then the entries for the next copies, then which rows the tiles on their way
    // have, then rows that have not landed.
    SmallVector<Value> initial(loop.getInitArgs());
    llvm::append_range(initial, entries);
    for (auto &lookupRows : found)
      llvm::append_range(initial, lookupRows);
    if (plan.isFetched) landFor(0);
    appendCarriedRows(initial);
    if (plan.waitsAhead) waitFor(plan.groups.front());
    auto pipelined = scf::ForOp::create(builder, loc, loop.getLowerBound(), loop.getUpperBound(),
                                        constant(turns), initial);
    startBlock(pipelined.getBody());
    SmallVector<Value> carried(pipelined.getRegionIterArgs());
    for (unsigned turn = 0; turn < turns; ++turn) {
      Value iteration = add(pipelined.getInductionVar(), turn);
      unsigned slot = turn % slots;
      carried = turn == 0 ? stage(iteration, slot, carried) : guardedStage(iteration, slot, carried);
    }
    scf::YieldOp::create(builder, loc, carried);

    // Copies issued beyond the last iteration must land before the LDS is reused or given back. Rows in
    // registers may be dropped.
    builder.setInsertionPointAfter(pipelined);
    if (!plan.isFetched) WaitMarksOp::create(builder, loc, 0);
    loop->replaceAllUsesWith(pipelined.getResults().take_front(loop.getNumResults()));
    loop->erase();
    for (auto &[tile, slots] : slotsOf)
      tile.getDefiningOp()->erase();
  }

private:
  /// Whether the loop carries values that only its next iteration needs, such as the scores of the next tile.
  bool carriesScores() {
    return llvm::any_of(loop.getResults(), [](Value result) { return result.use_empty(); });
  }

  Value constant(unsigned value) {
    return arith::ConstantOp::create(builder, loc,
                                     builder.getIntegerAttr(loop.getInductionVar().getType(), value));
  }
  Value add(Value base, unsigned offset) {
    return offset == 0 ? base : arith::AddIOp::create(builder, loc, base, constant(offset)).getResult();
  }

  /// scf creates the yield of a block that yields nothing; here every block gets its own.
  void startBlock(Block *block) {
    if (!block->empty()) block->getTerminator()->erase();
    builder.setInsertionPointToStart(block);
  }

  void allocateSlots() {
    for (CopyGroup &group : plan.groups) {
      OpBuilder::InsertionGuard guard(builder);
      builder.setInsertionPoint(group.copy.getTile().getDefiningOp());
      auto alloc = group.copy.getTile().getDefiningOp<LdsAllocOp>();
      for (unsigned slot = 0; slot < slots; ++slot) {
        auto slotAlloc = LdsAllocOp::create(builder, loc, group.copy.getTile().getType());
        if (StringAttr label = alloc.getLabelAttr())
          slotAlloc.setLabel(slots == 1 ? label.getValue().str()
                                        : (label.getValue() + "." + llvm::Twine(slot)).str());
        slotsOf[group.copy.getTile()].push_back(slotAlloc);
      }
    }
  }

  /// One mark and one wait for the copies of each drain. The copies' own waits go: nothing reads LDS between
  /// such a wait and that of its drain. Copies through registers are fetched together, and land where the
  /// others are waited for.
  void drainEarlierCopies() {
    OpBuilder::InsertionGuard guard(builder);
    for (Drain &drain : plan.drains) {
      bool prologueInFlight = plan.prologueBehind == drain.copies.back();
      builder.setInsertionPointAfter(drain.copies.back());
      SmallVector<std::pair<Value, AsyncDmaOp>> landings; // rows, and the copy they belong to
      for (AsyncDmaOp copy : drain.copies)
        if (copy.isFetched()) landings.push_back({FetchRowsOp::of(copy, builder, lanes), copy});
      bool isMarked = landings.size() != drain.copies.size();
      if (isMarked) AsyncMarkOp::create(builder, loc);
      if (prologueInFlight) plan.prologueBehind = &*std::prev(builder.getInsertionPoint());
      builder.setInsertionPoint(drain.before);
      unsigned marksOfPrologue = prologueInFlight && !plan.isFetched ? prologueMarks() : 0;
      if (isMarked) WaitMarksOp::create(builder, loc, marksOfPrologue);
      for (auto [rows, copy] : landings)
        LandRowsOp::create(builder, loc, rows, copy.getTile(), *copy.getSourceType());
      if (!isa<BarrierOp>(drain.before)) BarrierOp::create(builder, loc);
      for (AsyncDmaOp copy : drain.copies) {
        for (Operation *wait : llvm::make_early_inc_range(copy.getToken().getUsers()))
          if (wait->getBlock() == loop->getBlock() && wait->isBeforeInBlock(loop)) wait->erase();
        if (copy.isFetched())
          copy.erase();
        else
          ours.insert(copy);
      }
    }
  }

  unsigned prologueMarks() const {
    if (!plan.takesTurns) return (stages - 1) * plan.groups.size();
    return llvm::count_if(plan.groups, [](const CopyGroup &group) { return group.barrier == 0; });
  }

  /// The copies of the first stages - 1 iterations; if tiles take turns, those of the first barrier.
  void issuePrologue() {
    OpBuilder::InsertionGuard guard(builder);
    IRMapping constants;
    if (plan.prologueBehind) {
      builder.setInsertionPointAfter(plan.prologueBehind);
      auto repeat = [&](Value value) {
        auto constant = value.getDefiningOp<arith::ConstantOp>();
        if (constant && constant->getBlock() == loop->getBlock() && !constants.contains(value))
          builder.clone(*constant, constants);
      };
      repeat(loop.getLowerBound());
      for (CopyGroup &group : plan.groups) {
        llvm::for_each(group.copy->getOperands(), repeat);
        for (Operation *op : group.slice)
          llvm::for_each(op->getOperands(), repeat);
      }
      for (Lookup &lookup : plan.lookups) {
        llvm::for_each(lookup.op->getOperands(), repeat);
        for (Operation *op : lookup.slice)
          llvm::for_each(op->getOperands(), repeat);
      }
    }
    Value first = constants.lookupOrDefault(Value(loop.getLowerBound()));
    for (Lookup &lookup : plan.lookups)
      entries.push_back(lookUp(lookup, first, constants));
    ahead = entries;
    found.resize(plan.lookups.size());
    for (unsigned tile = 0; tile + 1 < stages; ++tile)
      for (CopyGroup &group : plan.groups)
        if (!plan.takesTurns || group.barrier == 0) issue(group, add(first, tile), tile, constants);
  }

  /// The entries for iteration number `iteration`.
  Value lookUp(Lookup &lookup, Value iteration, IRMapping map) {
    map.map(loop.getInductionVar(), iteration);
    for (Operation *op : lookup.slice)
      builder.clone(*op, map);
    return builder.clone(*lookup.op, map)->getResult(0);
  }

  /// The copy of `group` for iteration number `iteration`, into `slot` and closed by its own mark, or into
  /// registers. The first of the copies that share a look-up is followed by the look-up for the next
  /// iteration.
  void issue(CopyGroup &group, Value iteration, unsigned slot, const IRMapping &outside = {}) {
    IRMapping map(outside);
    map.map(loop.getInductionVar(), iteration);
    map.map(group.copy.getTile(), slotsOf[group.copy.getTile()][slot]);
    if (group.lookup) map.map(plan.lookups[*group.lookup].op.getEntries(), entries[*group.lookup]);
    if (group.isFirst)
      for (FoundRowsOp rows : plan.lookups[*group.lookup].found)
        found[*group.lookup].push_back(builder.clone(*rows, map)->getResult(0));
    for (Operation *op : group.slice)
      builder.clone(*op, map);
    auto copy = cast<AsyncDmaOp>(builder.clone(*group.copy, map));
    if (plan.isFetched) {
      rowsOf[group.copy.getTile()] = FetchRowsOp::of(copy, builder, lanes);
      copy.erase();
    } else {
      ours.insert(copy);
      AsyncMarkOp::create(builder, loc);
    }
    if (group.isFirst) ahead[*group.lookup] = lookUp(plan.lookups[*group.lookup], add(iteration, 1), outside);
    if (group.isLast) entries[*group.lookup] = ahead[*group.lookup];
  }

  /// The groups in flight when a group is waited for are those after it, up to the group issued last, stages
  /// - 1 iterations ahead. All of them are younger, so all may stay. If tiles take turns, no group is
  /// younger.
  void waitFor(const CopyGroup &group) {
    unsigned younger = plan.takesTurns ? 0 : (stages - 1) * plan.groups.size() - 1;
    if (!group.landsWithNext && !plan.isFetched) WaitMarksOp::create(builder, loc, younger);
    if (!group.landsWithNext || (!group.isFreed && !plan.takesTurns)) BarrierOp::create(builder, loc);
  }

  /// One iteration on one slot; returns the values it carries on.
  SmallVector<Value> stage(Value iteration, unsigned slot, ValueRange carried) {
    IRMapping map;
    map.map(loop.getInductionVar(), iteration);
    map.map(loop.getRegionIterArgs(), carried.take_front(loop.getNumResults()));
    entries = ahead = SmallVector<Value>(carried.slice(loop.getNumResults(), plan.lookups.size()));
    ValueRange inRegisters = carried.drop_front(loop.getNumResults() + plan.lookups.size());
    for (auto [lookup, lookupRows] : llvm::zip_equal(plan.lookups, found)) {
      size_t count = lookup.found.size();
      map.map(SmallVector<Value>(lookup.found.begin(), lookup.found.end()), inRegisters.take_front(count));
      lookupRows = SmallVector<Value>(inRegisters.slice(count, (stages - 2) * count));
      inRegisters = inRegisters.drop_front((stages - 1) * count);
    }
    for (CopyGroup &group : plan.groups) {
      if (!isCarried(group)) continue;
      rowsOf[group.copy.getTile()] = inRegisters.front();
      inRegisters = inRegisters.drop_front();
    }
    for (CopyGroup &group : plan.groups)
      map.map(group.copy.getTile(), slotsOf[group.copy.getTile()][slot]);
    for (Operation &op : loop.getBody()->without_terminator()) {
      bool isCarriedOn = llvm::any_of(op.getResults(), [&](Value value) { return map.contains(value); });
      if (isa<AsyncDmaOp, PageLookupOp>(op) || isCarriedOn || &op == plan.trailingBarrier) continue;
      if (auto wait = dyn_cast<AsyncWaitOp>(op)) {
        CopyGroup &group = *llvm::find_if(plan.groups, [&](CopyGroup &g) { return g.wait == wait; });
        if (plan.isFetched) {
          if (!group.landsWithNext) exchangeRows(group.barrier, iteration);
          continue;
        }
        if (!plan.waitsAhead || &group != &plan.groups.front()) waitFor(group);
        if (!plan.takesTurns)
          issue(group, add(iteration, stages - 1), (slot + stages - 1) % stages);
        else if (!group.landsWithNext)
          issueBehind(group.barrier, iteration);
        continue;
      }
      builder.clone(op, map);
    }
    if (plan.isFetched) {
      if (plan.firstIsReadLast) BarrierOp::create(builder, loc);
      if (!landsEarly(0)) landFor(0);
    }
    if (plan.waitsAhead) waitFor(plan.groups.front());
    SmallVector<Value> results;
    for (Value value : loop.getBody()->getTerminator()->getOperands())
      results.push_back(map.lookupOrDefault(value));
    llvm::append_range(results, entries);
    for (auto &lookupRows : found)
      llvm::append_range(results, lookupRows);
    appendCarriedRows(results);
    return results;
  }

  /// Whether the rows land in the iteration after the one that fetched them.
  bool isCarried(const CopyGroup &group) const {
    return plan.isFetched && !plan.takesTurns && group.barrier != 0;
  }
  void appendCarriedRows(SmallVector<Value> &values) const {
    for (const CopyGroup &group : plan.groups)
      if (isCarried(group)) values.push_back(rowsOf.lookup(AsyncDmaOp(group.copy).getTile()));
  }
  /// Whether the tiles of barrier number `barrier` may land after the barrier before it: no wave reads them
  /// any more, and the rows were fetched after another barrier.
  bool landsEarly(unsigned barrier) const {
    return !plan.takesTurns && (barrier != 0 || !plan.firstIsReadLast);
  }
  /// Barrier number `barrier`. After it, the rows of the next barrier land, and the rows for the slots that
  /// it has freed are fetched.
  void exchangeRows(unsigned barrier, Value iteration) {
    if (barrier != 0 && !landsEarly(barrier)) landFor(barrier);
    if (barrier != 0 || !plan.waitsAhead) BarrierOp::create(builder, loc);
    unsigned next = (barrier + 1) % plan.barriers;
    if (landsEarly(next)) landFor(next);
    issueBehind(barrier, iteration);
  }
  /// Issues the copies into the only slot after barrier number `barrier`: the next rows of its tiles, into
  /// registers; or, if tiles take turns, the tiles of the next barrier, which no wave reads any more.
  void issueBehind(unsigned barrier, Value iteration) {
    unsigned turn = plan.takesTurns ? (barrier + 1) % plan.barriers : barrier;
    bool isNext = !plan.takesTurns || turn == 0;
    for (CopyGroup &group : plan.groups)
      if (group.barrier == turn) issue(group, add(iteration, isNext), /*slot=*/0);
  }
  /// Lands the tiles that barrier number `barrier` makes readable.
  void landFor(unsigned barrier) {
    for (CopyGroup &group : plan.groups)
      if (group.barrier == barrier)
        LandRowsOp::create(builder, loc, rowsOf.lookup(group.copy.getTile()),
                           slotsOf[group.copy.getTile()].front(), *group.copy.getSourceType());
  }

  SmallVector<Value> guardedStage(Value iteration, unsigned slot, ValueRange carried) {
    Value inRange =
        arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::slt, iteration, loop.getUpperBound());
    auto branch = scf::IfOp::create(builder, loc, TypeRange(carried), inRange, /*withElseRegion=*/true);
    branch->setAttr(usualSide, builder.getBoolAttr(true));
    OpBuilder::InsertionGuard guard(builder);
    startBlock(branch.thenBlock());
    scf::YieldOp::create(builder, loc, stage(iteration, slot, carried));
    startBlock(branch.elseBlock());
    SmallVector<Value> last(carried); // the loop ends here: values that only an iteration needs are dropped
    for (auto [index, result] : llvm::enumerate(loop.getResults()))
      if (result.use_empty()) last[index] = LLVM::PoisonOp::create(builder, loc, result.getType());
    scf::YieldOp::create(builder, loc, last);
    return SmallVector<Value>(branch.getResults());
  }

  PipelinePlan &plan;
  scf::ForOp loop;
  unsigned stages, slots, turns; // turns: iterations of the loop in one iteration of the pipelined loop
  unsigned lanes;
  llvm::DenseSet<Operation *> &ours;
  OpBuilder builder;
  Location loc;
  llvm::MapVector<Value, SmallVector<Value>> slotsOf;
  llvm::DenseMap<Value, Value> rowsOf; // by tile that goes through registers: the rows fetched last
  // By look-up: the entries for the copies issued next, and those for one iteration later, once looked up.
  SmallVector<Value> entries, ahead;
  // By look-up: which rows of the next tiles were found, for stages - 1 iterations, the nearest first.
  SmallVector<SmallVector<Value>> found;
};

struct PipelineAsyncCopiesPass : impl::PipelineAsyncCopiesBase<PipelineAsyncCopiesPass> {
  using PipelineAsyncCopiesBase::PipelineAsyncCopiesBase;

  void runOnOperation() override {
    if (stages < 1 || stages > 4) {
      getOperation().emitError() << "pipeline-async-copies: stages is " << stages << "; 1 to 4 are supported";
      return signalPassFailure();
    }
    if (stages == 1) return; // one slot: nothing to overlap
    std::optional<ArrayRef<int32_t>> block = getOperation().getKnownBlockSize();
    unsigned lanes = block ? (*block)[0] : 0;
    bool anyFetched = false;
    getOperation().walk([&](AsyncDmaOp copy) { anyFetched |= copy.isFetched(); });
    if (anyFetched && lanes == 0) {
      getOperation().emitError()
          << "pipeline-async-copies: known_block_size is missing; a copy through registers "
             "is divided among all lanes";
      return signalPassFailure();
    }
    llvm::DenseSet<Operation *> ours;
    SmallVector<Attribute> pipelines;
    SmallVector<scf::ForOp> loops;
    getOperation().walk([&](scf::ForOp loop) {
      if (!loop.getBody()->getOps<AsyncDmaOp>().empty()) loops.push_back(loop);
    });
    bool takesTurns = getOperation()->hasAttr("sluice.tiles_take_turns");
    for (scf::ForOp loop : loops) {
      std::string reason;
      FailureOr<PipelinePlan> plan = planPipeline(loop, stages, takesTurns, ours, reason);
      if (failed(plan)) {
        loop.emitRemark() << "not pipelined: " << reason;
        continue;
      }
      pipelines.push_back(describe(*plan));
      PipelineRewriter(*plan, lanes, ours).rewrite();
    }
    if (!pipelines.empty())
      getOperation()->setAttr("sluice.pipeline", ArrayAttr::get(&getContext(), pipelines));
  }

  /// Records what was decided, for readers of the kernel.
  Attribute describe(const PipelinePlan &plan) {
    Builder attributes(&getContext());
    SmallVector<Attribute> groups;
    for (auto [index, group] : llvm::enumerate(plan.groups)) {
      AsyncDmaOp copy = group.copy;
      auto alloc = copy.getTile().getDefiningOp<LdsAllocOp>();
      std::string name = alloc.getLabel() ? alloc.getLabel()->str() : std::to_string(index);
      groups.push_back(attributes.getStringAttr(name));
    }
    unsigned early = 0;
    for (const Drain &drain : plan.drains)
      early += drain.copies.size();
    return attributes.getDictionaryAttr(
        {attributes.getNamedAttr("drains", attributes.getI32IntegerAttr(plan.drains.size())),
         attributes.getNamedAttr("earlier_copies", attributes.getI32IntegerAttr(early)),
         attributes.getNamedAttr("groups", attributes.getArrayAttr(groups)),
         attributes.getNamedAttr("stages", attributes.getI32IntegerAttr(plan.stages))});
  }
};

} // namespace
} // namespace sluice

//===- AnnotateLdsLiveness.cpp - where each LDS tile begins and ceases to be live -----------------------===//
//
//   before:  %a = lds_alloc ; %b = lds_alloc       after:  %a = lds_alloc ; %b = lds_alloc
//            %t = async_dma into %a                        live_in %a
//            async_wait %t                                 %t = async_dma into %a
//            lds_read %a                                   async_wait %t
//            scf.for {                                     lds_read %a
//              barrier                                     live_out %a
//              lds_write %b                                scf.for {
//              lds_read %b                                   barrier
//            }                                               live_in %b
//                                                            lds_write %b
//                                                            lds_read %b
//                                                          }
//                                                          live_out %b
//
// A tile is live at a point if, on some path,
//   * it was written before and is read later, with no copy of the whole tile in between; or
//   * a copy into it is in flight; and at every access.
// The first needs both directions: a tile written in one iteration and read in the next is live around the
// back edge, but not on entry to the loop, where it has not been written. A copy counts from its issue to the
// wait for it, wherever that is, read or not: a pipeline issues copies whose data is never used. %b above
// stays live around the back edge because a wave's write is not known to fill the tile; only an async_dma
// ends the former contents.
//
// Waves that take a branch others do not are at no known point: an operation with regions in which the waves
// do not meet is one step, with the marks around it.
//
// Errors: a read that some path reaches without a write; a write from which no read can be reached.
//
// Safe direction: too long a range costs LDS; too short a range lets another tile overwrite data.
//
//===----------------------------------------------------------------------------------------------------===//
#include "transforms/LdsAccess.h"
#include "transforms/Passes.h"
#include "transforms/StructuredFlow.h"

namespace sluice {
#define GEN_PASS_DEF_ANNOTATELDSLIVENESS
#include "transforms/Passes.h.inc"

using namespace mlir;
using llvm::BitVector;

namespace {

struct Past {
  BitVector written;   // on some path
  BitVector unwritten; // on some path
  CopiesInFlight copies;

  void join(const Past &other) {
    written |= other.written;
    unwritten |= other.unwritten;
    copies.join(other.copies);
  }
  bool operator==(const Past &other) const = default;
};

struct Future {
  BitVector read;      // on some path, before a copy of the whole tile
  BitVector readAtAll; // on some path

  void join(const Future &other) {
    read |= other.read;
    readAtAll |= other.readAtAll;
  }
  bool operator==(const Future &other) const = default;
};

class Liveness {
public:
  Liveness(gpu::GPUFuncOp kernel, const LdsTiles &tiles)
      : tiles(tiles), body(kernel.getBody().front()),
        past(body, {BitVector(tiles.size()), BitVector(tiles.size(), true), CopiesInFlight(tiles)},
             [&](Operation *op, Past &state) { stepForward(op, state); }),
        future(body, {BitVector(tiles.size()), BitVector(tiles.size())},
               [&](Operation *op, Future &state) { stepBackward(op, state); }) {}

  LogicalResult checkAccesses() {
    bool failed = false;
    body.walk([&](Operation *op) {
      std::optional<LdsAccess> access = tiles.accessOf(op);
      if (!access) return;
      if (access->kind == LdsAccess::read && past.before(op).unwritten[access->tile]) {
        report(op, access->tile) << "on some path nothing was written to " << tiles.describe(access->tile)
                                 << " before this read";
        failed = true;
      }
      if (access->kind != LdsAccess::read && !future.after(op).readAtAll[access->tile]) {
        report(op, access->tile) << "nothing reads what this writes to " << tiles.describe(access->tile);
        failed = true;
      }
    });
    return failure(failed);
  }

  BitVector liveBefore(Operation *op) const { return live(past.before(op), future.before(op)); }
  BitVector liveAfter(Operation *op) const { return live(past.after(op), future.after(op)); }

private:
  InFlightDiagnostic report(Operation *op, unsigned tile) {
    InFlightDiagnostic diagnostic = op->emitError();
    diagnostic.attachNote(tiles[tile].getLoc()) << "the tile";
    return diagnostic;
  }

  static BitVector live(const Past &past, const Future &future) {
    BitVector result = past.written;
    result &= future.read;
    result |= past.copies.targets();
    return result;
  }

  void stepForward(Operation *op, Past &state) const {
    state.copies.apply(op);
    std::optional<LdsAccess> access = tiles.accessOf(op);
    if (!access || access->kind == LdsAccess::read) return;
    state.written.set(access->tile);
    state.unwritten.reset(access->tile);
  }

  void stepBackward(Operation *op, Future &state) const {
    std::optional<LdsAccess> access = tiles.accessOf(op);
    if (!access) return;
    if (access->kind == LdsAccess::copyWhole) state.read.reset(access->tile);
    if (access->kind != LdsAccess::read) return;
    state.read.set(access->tile);
    state.readAtAll.set(access->tile);
  }

  const LdsTiles &tiles;
  Block &body;
  StructuredFlow<Past, Direction::forward> past;
  StructuredFlow<Future, Direction::backward> future;
};

/// Tiles that are not live on some path, or have not been accessed since they became live where paths met.
struct Unclaimed {
  BitVector tiles;

  void join(const Unclaimed &other) { tiles |= other.tiles; }
  bool operator==(const Unclaimed &other) const = default;
};

/// Places the marks so that following them forwards reproduces the live tiles of every point.
class MarkPlanner {
public:
  MarkPlanner(gpu::GPUFuncOp kernel, const LdsTiles &tiles, const Liveness &liveness)
      : tiles(tiles), liveness(liveness),
        unclaimed(kernel.getBody().front(), {BitVector(tiles.size(), true)},
                  [&](Operation *op, Unclaimed &state) { claim(op, state); }) {
    planBlock(kernel.getBody().front());
  }

  void place() const {
    for (const Mark &mark : marks) {
      OpBuilder builder(mark.block, mark.before);
      Location loc = mark.source->getLoc();
      for (unsigned tile : mark.tiles.set_bits()) {
        LdsAllocOp alloc = tiles[tile];
        if (mark.isStart)
          LiveInOp::create(builder, loc, alloc.getTile());
        else
          LiveOutOp::create(builder, loc, alloc.getTile());
      }
    }
  }

private:
  struct Mark {
    bool isStart;
    BitVector tiles;
    Block *block;
    Block::iterator before;
    Operation *source; // the operation that made it necessary
  };

  void planBlock(Block &block) {
    for (Operation &op : block) {
      BitVector before = liveness.liveBefore(&op), after = liveness.liveAfter(&op);
      auto next = std::next(op.getIterator());
      if (op.getNumRegions() != 0 && isCollective(&op)) {
        for (Region &region : op.getRegions()) {
          if (region.empty()) continue;
          Block &inner = region.front();
          BitVector entry = liveness.liveBefore(&inner.front());
          plan(false, less(arriving(&op, &region), entry), &op, inner, inner.begin());
          planBlock(inner);
        }
        plan(false, less(arriving(&op, nullptr), after), &op, block, next);
        continue;
      }
      BitVector accessed(tiles.size());
      op.walk([&](Operation *inner) {
        if (std::optional<LdsAccess> access = tiles.accessOf(inner)) accessed.set(access->tile);
      });
      BitVector during = before;
      during |= after;
      during |= accessed;
      accessed &= unclaimed.before(&op).tiles;
      plan(true, less(during, less(before, accessed)), &op, block, op.getIterator());
      plan(false, less(during, after), &op, block, next);
    }
  }

  /// A tile that is live only on the path around a loop is not live on the path into it: the first access
  /// there has a mark too.
  void claim(Operation *op, Unclaimed &state) const {
    auto addDead = [&](BitVector live) { state.tiles |= live.flip(); };
    addDead(liveness.liveBefore(op));
    if (op->getNumRegions() != 0) return;
    if (std::optional<LdsAccess> access = tiles.accessOf(op)) state.tiles.reset(access->tile);
    addDead(liveness.liveAfter(op));
  }

  /// The live tiles where control comes from to `region`, or to the point after `op`.
  BitVector arriving(Operation *op, Region *region) const {
    BitVector result(tiles.size());
    for (const RegionEdge &edge : regionEdges(op))
      if (edge.to == region)
        result |=
            edge.from ? liveness.liveAfter(edge.from->front().getTerminator()) : liveness.liveBefore(op);
    return result;
  }

  static BitVector less(BitVector set, const BitVector &subset) { return set.reset(subset); }

  void plan(bool isStart, BitVector set, Operation *source, Block &block, Block::iterator before) {
    if (set.any()) marks.push_back({isStart, std::move(set), &block, before, source});
  }

  const LdsTiles &tiles;
  const Liveness &liveness;
  StructuredFlow<Unclaimed, Direction::forward> unclaimed;
  SmallVector<Mark> marks;
};

struct AnnotateLdsLivenessPass : impl::AnnotateLdsLivenessBase<AnnotateLdsLivenessPass> {
  void runOnOperation() override {
    gpu::GPUFuncOp kernel = getOperation();
    if (!kernel.isKernel()) return;
    eraseMarks(kernel);
    FailureOr<LdsTiles> tiles = LdsTiles::of(kernel);
    if (failed(tiles)) return signalPassFailure();
    if (tiles->size() == 0) return;
    if (failed(verifyStructured(kernel))) return signalPassFailure();
    Liveness liveness(kernel, *tiles);
    if (failed(liveness.checkAccesses())) return signalPassFailure();
    MarkPlanner(kernel, *tiles, liveness).place();
  }

  static void eraseMarks(gpu::GPUFuncOp kernel) {
    kernel.walk([](Operation *op) {
      if (isa<LiveInOp, LiveOutOp>(op)) op->erase();
    });
  }
};

} // namespace
} // namespace sluice

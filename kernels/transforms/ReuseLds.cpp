//===- ReuseLds.cpp - tiles that are never live together share bytes of LDS -----------------------------===//
//
//   before:  %a = lds_alloc ; %b = lds_alloc        after:  %a = lds_alloc {offset = 0}
//            live_in %a                                     %b = lds_alloc {offset = 0}
//            ...                                            live_in %a
//            lds_read %a                                    ...
//            live_out %a                                    lds_read %a
//            live_in %b                                     live_out %a
//            ...                                            barrier
//                                                           live_in %b
//                                                           ...
//
// Tiles interfere if the marks of annotate-lds-liveness leave both live at some point. Each tile, larger ones
// first, takes the lowest bytes that no interfering tile has.
//
// Before a tile takes over bytes, every wave must be done with the tile that had them: at the new tile's
// live_in, on every path, a barrier must have happened since the last access to the old tile, and the landing
// of a copy is an access. Existing barriers count; where one is missing, it is inserted before the live_in.
// (A copy still in flight at that point means a wrong mark, and is an error: no barrier waits for it.)
//
// Safe direction: too much interference costs LDS, too many barriers cost time; too little of either is a
// race.
//
//===----------------------------------------------------------------------------------------------------===//
#include "target/RequireChip.h"
#include "transforms/LdsAccess.h"
#include "transforms/Passes.h"
#include "transforms/StructuredFlow.h"

#include "llvm/Support/MathExtras.h"

namespace sluice {
#define GEN_PASS_DEF_REUSELDS
#include "transforms/Passes.h.inc"

using namespace mlir;
using llvm::BitVector;

namespace {

constexpr unsigned tileAlignment = 128; // one pass over the 32 banks

unsigned bytesOf(const LdsTiles &tiles, unsigned tile) {
  return LdsAllocOp(tiles[tile]).getTile().getType().getBytes();
}

//===-- Interference --------------------------------------------------------------------------===//

struct MarkedLive {
  BitVector live; // on some path
  BitVector dead; // on some path

  void join(const MarkedLive &other) {
    live |= other.live;
    dead |= other.dead;
  }
  bool operator==(const MarkedLive &other) const = default;
};

struct Interference {
  SmallVector<BitVector> with;  // by tile
  SmallVector<unsigned> ranges; // by tile
  SmallVector<unsigned> order;  // tiles by their first live range
  BitVector worst;              // the tiles live at the point that needs most
  unsigned worstBytes = 0;
};

/// Fails, with an error, if a tile is accessed where the marks do not say that it is live.
FailureOr<Interference> interferenceOf(gpu::GPUFuncOp kernel, const LdsTiles &tiles) {
  Block &body = kernel.getBody().front();
  auto step = [&](Operation *op, MarkedLive &state) {
    if (auto mark = dyn_cast<LiveInOp>(op)) {
      state.live.set(tiles.numberOf(mark.getTile()));
      state.dead.reset(tiles.numberOf(mark.getTile()));
    } else if (auto mark = dyn_cast<LiveOutOp>(op)) {
      state.live.reset(tiles.numberOf(mark.getTile()));
      state.dead.set(tiles.numberOf(mark.getTile()));
    }
  };
  StructuredFlow<MarkedLive, Direction::forward> flow(
      body, {BitVector(tiles.size()), BitVector(tiles.size(), true)}, step);

  Interference result;
  result.with.assign(tiles.size(), BitVector(tiles.size()));
  result.ranges.assign(tiles.size(), 0);
  result.worst.resize(tiles.size());
  WalkResult walk = body.walk<WalkOrder::PreOrder>([&](Operation *op) -> WalkResult {
    const MarkedLive &before = flow.before(op);
    if (std::optional<LdsAccess> access = tiles.accessOf(op); access && before.dead[access->tile])
      return op->emitError() << "accesses " << tiles.describe(access->tile)
                             << " outside its live ranges; annotate-lds-liveness marks them";
    if (auto mark = dyn_cast<LiveInOp>(op)) {
      unsigned tile = tiles.numberOf(mark.getTile());
      if (result.ranges[tile]++ == 0) result.order.push_back(tile);
    }
    // Before and after together: for joining paths, and for a mark that adds a tile.
    for (const BitVector &live : {before.live, flow.after(op).live}) {
      unsigned bytes = 0;
      for (unsigned tile : live.set_bits()) {
        result.with[tile] |= live;
        bytes += llvm::alignTo(bytesOf(tiles, tile), tileAlignment);
      }
      if (bytes <= result.worstBytes) continue;
      result.worstBytes = bytes;
      result.worst = live;
    }
    return WalkResult::advance();
  });
  if (walk.wasInterrupted()) return failure();
  for (unsigned tile = 0; tile < tiles.size(); ++tile) {
    result.with[tile].reset(tile);
    if (result.ranges[tile] == 0) result.order.push_back(tile);
  }
  return result;
}

//===-- Placement -----------------------------------------------------------------------------===//

struct Placement {
  SmallVector<unsigned> offsets;  // by tile
  SmallVector<BitVector> sharing; // by tile: the tiles that share some of its bytes
  unsigned arenaBytes = 0;
  unsigned bytesWithoutReuse = 0;
};

Placement place(const LdsTiles &tiles, const Interference &interference) {
  Placement result;
  result.offsets.assign(tiles.size(), 0);
  result.sharing.assign(tiles.size(), BitVector(tiles.size()));
  // Among tiles of equal size, first fit does best in the order of their live ranges.
  SmallVector<unsigned> order = interference.order;
  llvm::stable_sort(order, [&](unsigned a, unsigned b) { return bytesOf(tiles, a) > bytesOf(tiles, b); });
  auto overlap = [&](unsigned a, unsigned b) {
    return result.offsets[a] < result.offsets[b] + bytesOf(tiles, b) &&
           result.offsets[b] < result.offsets[a] + bytesOf(tiles, a);
  };
  BitVector placed(tiles.size());
  for (unsigned tile : order) {
    BitVector obstacles = interference.with[tile];
    obstacles &= placed;
    // The lowest place is the bottom or the top of an obstacle.
    SmallVector<unsigned> candidates{0};
    for (unsigned other : obstacles.set_bits())
      candidates.push_back(llvm::alignTo(result.offsets[other] + bytesOf(tiles, other), tileAlignment));
    llvm::sort(candidates);
    for (unsigned candidate : candidates) {
      result.offsets[tile] = candidate;
      if (llvm::none_of(obstacles.set_bits(), [&](unsigned other) { return overlap(tile, other); })) break;
    }
    placed.set(tile);
    result.arenaBytes = std::max(result.arenaBytes, result.offsets[tile] + bytesOf(tiles, tile));
  }
  for (unsigned a = 0; a < tiles.size(); ++a) {
    result.bytesWithoutReuse = llvm::alignTo(result.bytesWithoutReuse, tileAlignment) + bytesOf(tiles, a);
    for (unsigned b = 0; b < tiles.size(); ++b)
      if (a != b && overlap(a, b)) result.sharing[a].set(b);
  }
  return result;
}

//===-- Barriers ------------------------------------------------------------------------------===//

struct Hazards {
  BitVector touched; // accessed, on some path, since the last barrier
  CopiesInFlight copies;

  void join(const Hazards &other) {
    touched |= other.touched;
    copies.join(other.copies);
  }
  bool operator==(const Hazards &other) const = default;
};

/// The live_in marks that need a barrier before them. Fails, with an error, if a barrier does not help.
FailureOr<SmallVector<LiveInOp>> planBarriers(gpu::GPUFuncOp kernel, const LdsTiles &tiles,
                                              const Placement &placement) {
  SmallVector<LiveInOp> takeovers;
  kernel.walk([&](LiveInOp mark) {
    if (placement.sharing[tiles.numberOf(mark.getTile())].any()) takeovers.push_back(mark);
  });

  SmallVector<LiveInOp> planned;
  auto step = [&](Operation *op, Hazards &state) {
    if (isa<BarrierOp>(op) || llvm::is_contained(planned, op)) state.touched.reset();
    state.touched |= state.copies.apply(op);
    if (std::optional<LdsAccess> access = tiles.accessOf(op)) state.touched.set(access->tile);
  };
  // Each planned barrier changes what the following marks need: plan one at a time, in program order.
  for (;;) {
    StructuredFlow<Hazards, Direction::forward> flow(kernel.getBody().front(),
                                                     {BitVector(tiles.size()), CopiesInFlight(tiles)}, step);
    LiveInOp next;
    for (LiveInOp mark : takeovers) {
      unsigned tile = tiles.numberOf(mark.getTile());
      const BitVector &sharing = placement.sharing[tile];
      BitVector writing = flow.before(mark).copies.targets();
      if (writing.anyCommon(sharing)) {
        writing &= sharing;
        return mark.emitError() << tiles.describe(tile) << " takes over bytes of "
                                << tiles.describe(writing.find_first())
                                << ", into which a copy is still in flight";
      }
      if (!next && flow.after(mark).touched.anyCommon(sharing)) next = mark;
    }
    if (!next) return planned;
    for (Operation *parent = next->getParentOp(); parent != kernel; parent = parent->getParentOp())
      if (!isCollective(parent))
        return next.emitError() << tiles.describe(tiles.numberOf(next.getTile()))
                                << " takes over bytes where not all waves may come, and needs a barrier";
    planned.push_back(next);
  }
}

//===-- The pass ------------------------------------------------------------------------------===//

struct ReuseLdsPass : impl::ReuseLdsBase<ReuseLdsPass> {
  using ReuseLdsBase::ReuseLdsBase;

  void runOnOperation() override {
    gpu::GPUFuncOp kernel = getOperation();
    if (!kernel.isKernel()) return;
    if (failed(reuse(kernel))) signalPassFailure();
  }

  LogicalResult reuse(gpu::GPUFuncOp kernel) {
    const Chip *target = requireChip(*this, kernel, chip);
    if (!target) return failure();
    FailureOr<LdsTiles> tiles = LdsTiles::of(kernel);
    if (failed(tiles)) return failure();
    if (tiles->size() == 0) return success();
    if (failed(verifyStructured(kernel))) return failure();
    FailureOr<Interference> interference = interferenceOf(kernel, *tiles);
    if (failed(interference)) return failure();
    Placement placement = place(*tiles, *interference);
    if (placement.arenaBytes > target->ldsBytes) {
      InFlightDiagnostic diagnostic = emitError(kernel.getLoc());
      diagnostic << "needs " << placement.arenaBytes << " bytes of LDS; " << target->name << " has "
                 << target->ldsBytes << "; live at once, in " << interference->worstBytes << " bytes: ";
      llvm::interleaveComma(interference->worst.set_bits(), diagnostic,
                            [&](unsigned tile) { diagnostic << tiles->describe(tile); });
      return diagnostic;
    }
    FailureOr<SmallVector<LiveInOp>> barriers = planBarriers(kernel, *tiles, placement);
    if (failed(barriers)) return failure();
    apply(kernel, *tiles, *interference, placement, *barriers);
    return success();
  }

  static void apply(gpu::GPUFuncOp kernel, const LdsTiles &tiles, const Interference &interference,
                    const Placement &placement, ArrayRef<LiveInOp> barriers) {
    Builder attributes(kernel.getContext());
    SmallVector<Attribute> texts;
    for (unsigned tile = 0; tile < tiles.size(); ++tile) {
      LdsAllocOp(tiles[tile]).setOffset(placement.offsets[tile]);
      std::string text = tiles.describe(tile) + " at " + std::to_string(placement.offsets[tile]) + ", " +
                         std::to_string(interference.ranges[tile]) + " live ranges";
      if (placement.sharing[tile].any()) text += ", shares bytes with";
      for (unsigned other : placement.sharing[tile].set_bits())
        text += ' ' + std::to_string(other);
      texts.push_back(attributes.getStringAttr(text));
    }
    for (LiveInOp mark : barriers) {
      OpBuilder builder(mark);
      BarrierOp::create(builder, mark.getLoc());
    }
    kernel->setAttr(
        "sluice.lds",
        attributes.getDictionaryAttr(
            {attributes.getNamedAttr("arena_bytes", attributes.getI32IntegerAttr(placement.arenaBytes)),
             attributes.getNamedAttr("bytes_without_reuse",
                                     attributes.getI32IntegerAttr(placement.bytesWithoutReuse)),
             attributes.getNamedAttr("tiles", attributes.getArrayAttr(texts))}));
    if (placement.arenaBytes < placement.bytesWithoutReuse)
      emitRemark(kernel.getLoc()) << kernel.getName() << ": " << placement.arenaBytes << " bytes of LDS, "
                                  << placement.bytesWithoutReuse - placement.arenaBytes << " saved by reuse";
  }
};

} // namespace
} // namespace sluice

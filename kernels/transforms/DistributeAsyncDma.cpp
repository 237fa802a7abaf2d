//===- DistributeAsyncDma.cpp - workgroup-level copies become copies of its waves -----------------------===//
//
//   before: async_dma %base[%first] limit %limit stride %s into %tile          (by the workgroup)
//   after:  for each batch of the nested layout: load_to_lds or gather_to_lds   (by each wave: CopyLoads.cpp)
//
// A copy through registers can write rows where the swizzle wants them, and can convert the elements it
// loaded:
//
//   before: %rows = fetch_rows %base[%first] limit %limit stride %s for tile from type
//           land_rows %rows into %tile from type
//   after:  for each batch: load 8 columns of the lane's row                    (CopyLoads.cpp)
//           for each batch: convert them if needed ; lds_write                  (LandRows.cpp)
//
// An async_dma through registers that no pipeline took over does both, one after the other. Its wait is only
// for the other waves: a barrier. Fetched rows are ordinary loads, which marks do not count: LLVM waits for
// them where they land. A fence, which emits no instruction, keeps LLVM from moving the loads there.
//
// page_lookup becomes loads of the table, which marks count as well. Their results arrive in the order of all
// vector memory: a look-up one tile ahead of the copies that need it adds no other wait.
//
// A copy that cannot be distributed is an error that names the tile, the widths tried and the reason.
//
//===----------------------------------------------------------------------------------------------------===//
#include "target/RequireChip.h"
#include "transforms/Copies.h"
#include "transforms/DistributedCopy.h"
#include "transforms/PagedRows.h"
#include "transforms/Passes.h"

namespace sluice {
#define GEN_PASS_DEF_DISTRIBUTEASYNCDMA
#include "transforms/Passes.h.inc"

using namespace mlir;

namespace {

struct DistributeAsyncDmaPass : impl::DistributeAsyncDmaBase<DistributeAsyncDmaPass> {
  using DistributeAsyncDmaBase::DistributeAsyncDmaBase;

  void runOnOperation() override {
    gpu::GPUFuncOp kernel = getOperation();
    const Chip *target = requireChip(*this, kernel, chip);
    if (!target) return signalPassFailure();
    std::optional<ArrayRef<int32_t>> block = kernel.getKnownBlockSize();
    bool areWavesKnown = block && (*block)[0] % target->waveSize == 0;
    if (areWavesKnown) splitFetched(kernel, (*block)[0]);
    SmallVector<Operation *> copies;
    kernel.walk([&](Operation *op) {
      if (isa<AsyncDmaOp, FetchRowsOp, LandRowsOp>(op)) copies.push_back(op);
    });
    lowerLookups(kernel, target->waveSize);
    if (copies.empty()) return erasePages(kernel);
    if (!areWavesKnown) {
      kernel.emitError() << "distribute-async-dma: known_block_size must be a multiple of the wave size";
      return signalPassFailure();
    }
    unsigned waves = (*block)[0] / target->waveSize;
    // Decide for all copies before touching any.
    SmallVector<NestedLayout> layouts;
    for (Operation *copy : copies) {
      FailureOr<NestedLayout> layout = layoutOf(copy, waves, *target);
      if (failed(layout)) return signalPassFailure();
      layouts.push_back(*layout);
    }
    for (auto [op, layout] : llvm::zip_equal(copies, layouts)) {
      // Values that depend on the wave's number are computed outside loops only if requested there.
      bool isEarly = !kernel->hasAttr(noAddresses);
      CopyBuilder b(op->getLoc(),
                    isEarly ? OpBuilder::atBlockBegin(&kernel.getBody().front()) : OpBuilder(op));
      Value thread = ROCDL::ThreadIdXOp::create(b, b.getI32Type());
      Value wave = b.waveUniform(b.waveOf(thread, target->waveSize));
      if (auto copy = dyn_cast<AsyncDmaOp>(op))
        loadToLds(copy, layout, target->waveSize, wave);
      else if (auto fetch = dyn_cast<FetchRowsOp>(op))
        fetchRows(fetch, layout, target->waveSize, wave);
      else
        landRows(cast<LandRowsOp>(op), layout, target->waveSize, wave);
    }
    lowerUnpipelinedWaits(kernel);
    for (Operation *copy : copies)
      copy->erase();
    erasePages(kernel);
  }

  /// A copy through registers that no pipeline took over lands where it is issued. Its waits are only for the
  /// other waves.
  static void splitFetched(gpu::GPUFuncOp kernel, unsigned lanes) {
    SmallVector<AsyncDmaOp> fetched;
    kernel.walk([&](AsyncDmaOp copy) {
      if (copy.isFetched()) fetched.push_back(copy);
    });
    for (AsyncDmaOp copy : fetched) {
      OpBuilder builder(copy);
      LandRowsOp::create(builder, copy.getLoc(), FetchRowsOp::of(copy, builder, lanes), copy.getTile(),
                         *copy.getSourceType());
      for (Operation *wait : llvm::make_early_inc_range(copy.getToken().getUsers())) {
        builder.setInsertionPoint(wait);
        BarrierOp::create(builder, wait->getLoc());
        wait->erase();
      }
      copy.erase();
    }
  }

  /// The layout, or an error that says why it does not exist.
  static FailureOr<NestedLayout> layoutOf(Operation *op, unsigned waves, const Chip &chip) {
    if (auto copy = dyn_cast<AsyncDmaOp>(op)) {
      LdsTileType tile = copy.getTile().getType();
      unsigned granule = copy.getColumnLimit() ? AsyncDmaOp::columnGranule : 0;
      if (failed(checkGather(copy, tile, chip))) return failure();
      return orRefuse(op, tile, waves, [&](std::string &reason) {
        return computeNestedLayout(tile, waves, chip, granule, reason);
      });
    }
    auto fetch = dyn_cast<FetchRowsOp>(op);
    auto land = dyn_cast<LandRowsOp>(op);
    auto tile = fetch ? cast<LdsTileType>(fetch.getTileType()) : land.getTile().getType();
    if (fetch && failed(checkGather(fetch, tile, chip))) return failure();
    FailureOr<NestedLayout> layout = orRefuse(op, tile, waves, [&](std::string &reason) {
      return computeFetchLayout(tile, waves, chip.waveSize, reason);
    });
    Type rows = fetch ? fetch.getRows().getType() : land.getRows().getType();
    Type source = fetch ? fetch.getSourceType() : land.getSourceType();
    VectorType wanted = FetchRowsOp::rowsType(tile, source, waves * chip.waveSize);
    if (succeeded(layout) && rows != wanted)
      return op->emitError() << "has rows of type " << rows << "; of " << tile << ", each lane of " << waves
                             << " waves has " << wanted;
    return layout;
  }

  template <typename Op> static LogicalResult checkGather(Op copy, LdsTileType tile, const Chip &chip) {
    if (!copy.isGather() || tile.getRows() <= chip.waveSize) return success();
    return copy.emitError() << "cannot gather " << tile << ": a wave finds " << chip.waveSize
                            << " rows at a time";
  }

  static FailureOr<NestedLayout>
  orRefuse(Operation *op, LdsTileType tile, unsigned waves,
           llvm::function_ref<FailureOr<NestedLayout>(std::string &reason)> compute) {
    std::string reason;
    FailureOr<NestedLayout> layout = compute(reason);
    if (failed(layout))
      op->emitError() << "cannot distribute " << tile << " over " << waves << " waves: " << reason;
    return layout;
  }

  /// Erases the pages, which have no uses left.
  static void erasePages(gpu::GPUFuncOp kernel) {
    kernel.walk([](PagesOp pages) { pages.erase(); });
  }

  static void lowerLookups(gpu::GPUFuncOp kernel, unsigned lanes) {
    SmallVector<Operation *> lowered;
    kernel.walk([&](Operation *op) {
      CopyBuilder b(op->getLoc(), op);
      if (auto lookup = dyn_cast<PageLookupOp>(op)) {
        lookup.replaceAllUsesWith(
            PagedRows(b, lookup, lanes).lookUp(lookup.getTable(), lookup.getWidePages()));
      } else if (auto rows = dyn_cast<RowAddressesOp>(op)) {
        Value element = b.i64(rows.getElementBytes());
        Value zeros = ZerosOp::create(b, rows.getBase().getType(), rows.getRowBytes());
        PagedRows::Packs packs{rows.getPackLog2(), element};
        rows.replaceAllUsesWith(
            PagedRows(b, rows, lanes)
                .addresses(rows.getBase(), rows.getEntries(), b.mul(rows.getPageStride(), element),
                           b.mul(rows.getRowStride(), element), zeros, packs.log2 ? &packs : nullptr));
      } else if (auto rows = dyn_cast<FoundRowsOp>(op)) {
        auto pages = rows.getPages().getDefiningOp<PagesOp>();
        Value found = isAtMost(b, rows.getEntries(), 0, pages.getLastLow());
        found = b.both(found, isAtMost(b, rows.getEntries(), 1, pages.getLastHigh()));
        Value ballot = ROCDL::BallotOp::create(b, b.getI64Type(), b.either(found, rows.getAll()));
        rows.replaceAllUsesWith(arith::TruncIOp::create(b, b.getI32Type(), ballot).getResult());
      } else {
        return;
      }
      lowered.push_back(op);
    });
    for (Operation *op : lowered)
      op->erase();
  }

  // All waves wait completely for a copy that no pipeline took over.
  static void lowerUnpipelinedWaits(gpu::GPUFuncOp kernel) {
    SmallVector<AsyncWaitOp> waits;
    kernel.walk([&](AsyncWaitOp wait) { waits.push_back(wait); });
    for (AsyncWaitOp wait : waits) {
      OpBuilder builder(wait);
      AsyncMarkOp::create(builder, wait.getLoc());
      WaitMarksOp::create(builder, wait.getLoc(), 0);
      BarrierOp::create(builder, wait.getLoc());
      wait.erase();
    }
  }
};

} // namespace
} // namespace sluice

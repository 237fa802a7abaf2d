//===- DistributeAsyncDma.cpp - workgroup-level copies to direct-to-LDS loads ---------------------------===//
//
//   before: async_dma %base[%first] limit %limit stride %s into %tile     (by the workgroup)
//   after:  for each batch of the nested layout, in each wave:
//             %row = %first + (batch * waves + wave) * threadRows          (wave-uniform)
//             %rsrc = descriptor of %base + %row * %s, extent = the rows below %limit
//             load_to_lds %rsrc[swizzled column of the lane] into %tile[...]
//
// Direct-to-LDS loads write lane-contiguous, so a swizzle cannot be applied to the LDS address. The map is an
// involution within a row: the lane that owns LDS cell (row, c) loads the global column swizzle(row, c).
//
// The descriptor is rebuilt in scalar registers for the rows of every instruction from a 64-bit base. Caches
// of any size are addressed without wrapping, and the range check zero-fills rows at or past the limit. When
// an instruction moves several rows, their stride must not be negative and the end of the last one must fit
// in the 32 bits of the descriptor's extent: the runtime refuses other strides.
//
// Rows that are close together need no more than one descriptor for all instructions of a wave: the lane's
// offset, which the range check covers, then steps from batch to batch. (The scalar offset would be cheaper
// still, but whether the check includes it is told differently by different sources.)
//
// With a column limit the extent ends with the limit in the last row: what one row is read through has no
// column behind it. Where a descriptor has several rows, there the next row may begin: a lane whose column is
// at or past the limit then gets the largest offset there is, which no extent covers.
//
// In a gather the lanes of the wave compute the addresses of the tile's rows together, one row each
// (PagedRows.h), from entries of the page table that page_lookup has read: the same for pages of any size. An
// instruction then takes the addresses of its rows from their lanes:
//
//   one row per instruction        v_readlane, and a descriptor as above; its extent is 0 if there is no row
//   several rows per instruction   ds_bpermute, and gather_to_lds: 64-bit addresses, a lane that of its row.
//                                  There is no range check: where there is no row, and columns at or past
//                                  their limit, are read from zeros in the code object's constant data.
//
// Either way it is one vector-memory instruction per batch, whatever the limit is, so that marks stay exact,
// and what reads zeros is ordered like every other copy.
//
// page_lookup becomes loads of the table that marks count as well. Their results come in the order of all
// vector memory: whoever looks up a tile ahead of the copies that need it waits for nothing else.
//
// A copy that cannot be distributed is an error that names the tile, the widths tried and the reason.
//
//===----------------------------------------------------------------------------------------------------===//
#include "target/RequireChip.h"
#include "transforms/NestedLayout.h"
#include "transforms/PagedRows.h"
#include "transforms/Passes.h"

namespace sluice {
#define GEN_PASS_DEF_DISTRIBUTEASYNCDMA
#include "transforms/Passes.h.inc"

using namespace mlir;

namespace {

class CopyDistributor {
public:
  /// `lanes`: of a wave.
  CopyDistributor(AsyncDmaOp copy, const NestedLayout &layout, unsigned lanes)
      : b(copy.getLoc(), copy), copy(copy), layout(layout), tile(copy.getTile().getType()), lanes(lanes),
        rowsOfWave(layout.waveTile().rows), rowsOfBatch(layout.batchTile().rows) {}

  void run() {
    locateLane();
    strideBytes = b.mul(copy.getRowStride(), b.i64(tile.getElementBytes()));
    if (copy.isGather())
      gatherRows();
    else if (copy.getCloseRows())
      loadCloseRows();
    else
      loadRows();
  }

private:
  void locateLane() {
    Value thread = ROCDL::ThreadIdXOp::create(b, b.getI32Type());
    Value lane = b.laneOf(thread, lanes), wave = b.waveUniform(b.waveOf(thread, lanes));
    laneRow = b.divide(lane, b.i32(layout.thread.columns));
    laneColumn = b.mul(b.remainder(lane, b.i32(layout.thread.columns)), b.i32(layout.element.columns));
    Value waveOfRows = wave;
    waveColumn = b.i32(0);
    if (layout.subgroup.columns != 1) {
      waveOfRows = b.divide(wave, b.i32(layout.subgroup.columns));
      waveColumn = b.mul(b.remainder(wave, b.i32(layout.subgroup.columns)), b.i32(layout.waveTile().columns));
    }
    waveRow = b.mul(waveOfRows, b.i32(rowsOfWave)); // within the rows of one batch
  }

  /// The column of the source that this lane loads for its cell of LDS.
  Value sourceColumn(unsigned batchRow, unsigned batchColumn) {
    Value tileRow = b.add(b.add(waveRow, laneRow), b.i32(batchRow * rowsOfBatch));
    Value cell = b.add(b.add(waveColumn, laneColumn), b.i32(batchColumn * layout.batchTile().columns));
    return swizzleColumn(b, b.getLoc(), tile, tileRow, cell);
  }

  /// Bytes from the start of a row to a column.
  Value columnOffset(Value column) {
    if (copy.getPackLog2()) {
      Value pack = arith::ShRUIOp::create(b, column, copy.getPackLog2());
      Value inPack = b.sub(column, arith::ShLIOp::create(b, pack, copy.getPackLog2()));
      Value stride = arith::TruncIOp::create(b, b.getI32Type(), copy.getPackStride());
      column = b.add(b.mul(pack, stride), inPack);
    }
    return b.mul(column, b.i32(tile.getElementBytes()));
  }

  /// The lane's offset in a buffer of several rows, its own one `rowOffset` bytes behind the base; beyond
  /// every extent if rows have no such column.
  Value bufferOffset(Value column, Value rowOffset) {
    Value offset = columnOffset(column);
    if (!copy.getColumnLimit()) return b.add(offset, rowOffset);
    // The sum saturates: a missing column stays beyond every extent, whatever the row.
    offset = b.select(b.less(column, copy.getColumnLimit()), offset, b.i32(-1));
    return LLVM::UAddSat::create(b, offset, rowOffset);
  }

  /// Where in the tile the wave's instruction writes, in bytes.
  Value ldsOffset(unsigned batchRow, unsigned batchColumn) {
    Value ofWave =
        b.add(b.mul(waveRow, b.i32(tile.getRowBytes())), b.mul(waveColumn, b.i32(tile.getElementBytes())));
    return b.add(ofWave, b.i32(batchRow * rowsOfBatch * tile.getRowBytes() +
                               batchColumn * layout.batchTile().columns * tile.getElementBytes()));
  }

  void loadToLds(Value resource, Value voffset, unsigned batchRow, unsigned batchColumn) {
    LoadToLdsOp::create(b, resource, voffset, copy.getTile(), ldsOffset(batchRow, batchColumn),
                        layout.elementBytes);
  }

  /// All loads of the wave through one descriptor, from its first row on.
  void loadCloseRows() {
    Value first = b.add(copy.getFirstRow(), waveRow), stride = b.truncate(strideBytes);
    Value resource = descriptor(first, layout.batch.rows * rowsOfBatch);
    Value laneRows = b.mul(laneRow, stride);
    for (unsigned batchRow = 0; batchRow < layout.batch.rows; ++batchRow) {
      Value rowOffset = b.add(laneRows, b.mul(stride, b.i32(batchRow * rowsOfBatch)));
      for (unsigned batchColumn = 0; batchColumn < layout.batch.columns; ++batchColumn) {
        Value voffset = bufferOffset(sourceColumn(batchRow, batchColumn), rowOffset);
        loadToLds(resource, voffset, batchRow, batchColumn);
      }
    }
  }

  /// Each instruction's rows, which are one stride apart, through a descriptor of their own.
  void loadRows() {
    for (unsigned batchRow = 0; batchRow < layout.batch.rows; ++batchRow) {
      Value resource;
      for (unsigned batchColumn = 0; batchColumn < layout.batch.columns; ++batchColumn) {
        if (!resource)
          resource = descriptor(b.add(copy.getFirstRow(), b.add(waveRow, b.i32(batchRow * rowsOfBatch))),
                                rowsOfWave);
        Value column = sourceColumn(batchRow, batchColumn);
        Value voffset = rowsOfWave > 1 ? bufferOffset(column, b.mul(laneRow, b.truncate(strideBytes)))
                                       : columnOffset(column);
        loadToLds(resource, voffset, batchRow, batchColumn);
      }
    }
  }

  /// Covers at most `rows` rows from number `row` on.
  Value descriptor(Value row, unsigned rows) {
    // The number of rows below the limit: right modulo 2^32 even if the row's number overflowed.
    Value remaining = b.sub(copy.getRowLimit(), row), extent = rowExtent();
    // One stride for each row before the last one below the limit.
    if (rows > 1) {
      Value valid = arith::MinSIOp::create(b, remaining, b.i32(rows));
      Value rowsBefore = b.signExtend(b.sub(valid, b.i32(1)));
      extent = b.add(b.mul(rowsBefore, strideBytes), extent);
    }
    Value start = b.advance(copy.getBase(), b.mul(b.signExtend(row), strideBytes));
    return b.buffer(start, b.select(b.positive(remaining), extent, b.i64(0)));
  }

  /// The bytes of a row that may be read. Packs of columns are anywhere; they keep to the limit themselves.
  Value rowExtent() {
    if (copy.getPackLog2()) return b.i64(INT32_MAX);
    Value limit = copy.getColumnLimit();
    if (!limit) return b.i64(tile.getRowBytes());
    Value columns = arith::MinSIOp::create(b, limit, b.i32(tile.getColumns()));
    return b.mul(b.signExtend(columns), b.i64(tile.getElementBytes()));
  }

  void gatherRows() {
    PagedRows rows(b, copy, lanes);
    Value pageBytes = b.mul(copy.getPageStride(), b.i64(tile.getElementBytes()));
    bool descriptors = rowsOfWave == 1;
    // Packs go beyond the zeros, which therefore are read from their start, where a row's address is null.
    Value missing = descriptors || copy.getPackLog2() ? b.toPointer(b.i64(0)) : zeros();
    auto [low, high] = b.halves(
        b.toInteger(rows.addresses(copy.getBase(), copy.getEntries(), pageBytes, strideBytes, missing)));
    Value inWave = waveRow;
    for (unsigned batchRow = 0; batchRow < layout.batch.rows; ++batchRow) {
      // Left alone, LLVM makes the descriptors of all rows first, and runs out of scalar registers.
      if (descriptors) inWave = b.inOrder(inWave);
      Value first = b.add(inWave, b.i32(batchRow * rowsOfBatch));
      if (descriptors)
        loadRow(ROCDL::ReadlaneOp::create(b, b.getI32Type(), low, first),
                ROCDL::ReadlaneOp::create(b, b.getI32Type(), high, first), batchRow);
      else
        gather(fromRow(low, first), fromRow(high, first), batchRow);
    }
  }

  /// The value of the lane that has this lane's row of an instruction, whose rows begin with `first`.
  Value fromRow(Value value, Value first) {
    Value address = b.shiftLeft(b.add(first, laneRow), b.i32(2));
    return ROCDL::DsBpermuteOp::create(b, b.getI32Type(), address, value);
  }

  Value zeros() { return ZerosOp::create(b, copy.getBase().getType(), tile.getRowBytes()); }

  /// Loads of one row, whose address is in halves.
  void loadRow(Value low, Value high, unsigned batchRow) {
    Value resource;
    for (unsigned batchColumn = 0; batchColumn < layout.batch.columns; ++batchColumn) {
      if (!resource) {
        Value isThere = b.isFalse(b.equal(b.bitOr(low, high), b.i32(0)));
        resource = b.buffer(b.toPointer(b.joined(low, high)), b.select(isThere, rowExtent(), b.i64(0)));
      }
      Value column = sourceColumn(batchRow, batchColumn);
      Value voffset = copy.getPackLog2() ? bufferOffset(column, b.i32(0)) : columnOffset(column);
      loadToLds(resource, voffset, batchRow, batchColumn);
    }
  }

  /// One load of several rows, this lane's with its address in halves. Such rows are whole: there is one
  /// batch column.
  void gather(Value low, Value high, unsigned batchRow) {
    Value address = b.joined(low, high), isMissing;
    if (copy.getPackLog2()) isMissing = b.equal(address, b.i64(0));
    Value column = sourceColumn(batchRow, 0);
    Value pointer = b.advance(b.toPointer(address), b.zeroExtend(columnOffset(column)));
    if (Value limit = copy.getColumnLimit()) {
      Value isBehind = b.isFalse(b.less(column, limit));
      isMissing = isMissing ? b.either(isMissing, isBehind) : isBehind;
    }
    if (isMissing) pointer = b.select(isMissing, zeros(), pointer);
    GatherToLdsOp::create(b, pointer, copy.getTile(), ldsOffset(batchRow, 0), layout.elementBytes);
  }

  CopyBuilder b;
  AsyncDmaOp copy;
  NestedLayout layout;
  LdsTileType tile;
  unsigned lanes;
  unsigned rowsOfWave, rowsOfBatch; // rows of one instruction; of one instruction of all waves
  Value strideBytes;
  Value laneRow, laneColumn; // the lane's place in its wave's instruction
  Value waveRow, waveColumn; // the wave's place in a batch
};

struct DistributeAsyncDmaPass : impl::DistributeAsyncDmaBase<DistributeAsyncDmaPass> {
  using DistributeAsyncDmaBase::DistributeAsyncDmaBase;

  void runOnOperation() override {
    gpu::GPUFuncOp kernel = getOperation();
    const Chip *target = requireChip(*this, kernel, chip);
    if (!target) return signalPassFailure();
    SmallVector<AsyncDmaOp> copies;
    kernel.walk([&](AsyncDmaOp copy) { copies.push_back(copy); });
    lowerLookups(kernel, target->waveSize);
    if (copies.empty()) return erasePages(kernel);
    std::optional<ArrayRef<int32_t>> block = kernel.getKnownBlockSize();
    if (!block || (*block)[0] % target->waveSize != 0) {
      kernel.emitError() << "distribute-async-dma: known_block_size must be a multiple of the wave size";
      return signalPassFailure();
    }
    unsigned waves = (*block)[0] / target->waveSize;
    // Decide for all copies before touching any.
    SmallVector<NestedLayout> layouts;
    for (AsyncDmaOp copy : copies) {
      std::string reason;
      if (copy.isGather() && copy.getTile().getType().getRows() > target->waveSize) {
        copy.emitError() << "cannot gather " << copy.getTile().getType() << ": a wave finds "
                         << target->waveSize << " rows at a time";
        return signalPassFailure();
      }
      unsigned granule = copy.getColumnLimit() ? AsyncDmaOp::columnGranule : 0;
      FailureOr<NestedLayout> layout =
          computeNestedLayout(copy.getTile().getType(), waves, *target, granule, reason);
      if (failed(layout)) {
        copy.emitError() << "cannot distribute " << copy.getTile().getType() << " over " << waves
                         << " waves: " << reason;
        return signalPassFailure();
      }
      layouts.push_back(*layout);
    }
    for (auto [copy, layout] : llvm::zip_equal(copies, layouts))
      CopyDistributor(copy, layout, target->waveSize).run();
    lowerUnpipelinedWaits(kernel);
    for (AsyncDmaOp copy : copies)
      copy.erase();
    erasePages(kernel);
  }

  /// Nothing asks them any more.
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
        rows.replaceAllUsesWith(PagedRows(b, rows, lanes)
                                    .addresses(rows.getBase(), rows.getEntries(),
                                               b.mul(rows.getPageStride(), element),
                                               b.mul(rows.getRowStride(), element), zeros));
      } else {
        return;
      }
      lowered.push_back(op);
    });
    for (Operation *op : lowered)
      op->erase();
  }

  // A copy that no pipeline took over is waited for completely, by everybody.
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

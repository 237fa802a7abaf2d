//===- CopyLoads.cpp - the loads of a copy, directly to LDS or into registers ---------------------------===//
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
// The descriptor is rebuilt in scalar registers for the rows of every instruction from a 64-bit base. This
// addresses caches of any size without wrapping, and the range check zero-fills rows at or past the limit.
// When an instruction moves several rows, their stride must not be negative and the end of the last one must
// fit in the 32 bits of the descriptor's extent: the runtime refuses other strides.
//
// Rows that are close together need only one descriptor for all instructions of a wave: the lane's offset,
// which the range check covers, then steps from batch to batch. (The scalar offset would be cheaper still,
// but sources disagree on whether the check includes it.)
//
// With a column limit the extent ends at the limit in the last row: a descriptor of one row has no column
// after it. In a descriptor of several rows the next row may begin there, so a lane whose column is at or
// past the limit gets the largest possible offset, which no extent covers.
//
// In a gather the lanes of the wave compute the addresses of the tile's rows together, one row each
// (PagedRows.h), from entries of the page table that page_lookup has read: the same for pages of any size. An
// instruction then takes the addresses of its rows from their lanes:
//
//   one row per instruction        v_readlane, and a descriptor as above; its extent is 0 for a missing row
//   several rows per instruction   ds_bpermute, and gather_to_lds: each lane with its row's 64-bit address.
//                                  There is no range check: missing rows, and columns at or past their limit,
//                                  are read from zeros in the code object's constant data.
//
// Either way a batch is one vector-memory instruction, whatever the limit is, so that marks stay exact and
// reads of zeros are ordered like every other copy.
//
//===----------------------------------------------------------------------------------------------------===//
#include "transforms/Copies.h"
#include "transforms/DistributedCopy.h"
#include "transforms/PagedRows.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

namespace sluice {

using namespace mlir;

namespace {

/// The loads of an async_dma, directly to LDS, or of a fetch_rows, into registers.
template <typename Op> class CopyDistributor {
  static constexpr bool isFetch = std::is_same_v<Op, FetchRowsOp>;

public:
  /// `lanes`: of a wave; `wave`: its number.
  CopyDistributor(Op copy, LdsTileType tile, unsigned elementBytes, const NestedLayout &layout,
                  unsigned lanes, Value wave)
      : b(copy.getLoc(), copy), copy(copy), layout(layout), tile(tile), elementBytes(elementBytes),
        lanes(lanes), rowsOfWave(layout.waveTile().rows), place(b, layout, lanes, wave) {}

  /// Returns the loaded data of a fetch, in dwords.
  SmallVector<Value> run() {
    strideBytes = b.mul(copy.getRowStride(), b.i64(elementBytes));
    if (copy.isGather())
      gatherRows();
    else if (copy.getCloseRows())
      loadCloseRows();
    else
      loadRows();
    return loaded;
  }

private:
  /// The column of the source that this lane loads for its cell of LDS.
  Value sourceColumn(unsigned batchRow, unsigned batchColumn) {
    if (isFetch) return place.column(batchColumn);
    Value tileRow = place.row(batchRow), cell = place.column(batchColumn);
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
    return b.mul(column, b.i32(elementBytes));
  }

  /// The lane's offset in a buffer of several rows, with its own row `rowOffset` bytes after the base; beyond
  /// every extent if rows do not have the column.
  Value bufferOffset(Value column, Value rowOffset) {
    Value offset = columnOffset(column), limit = copy.getColumnLimit();
    if (isFetch) {
      offset = b.add(offset, rowOffset);
      return limit ? b.select(b.less(column, limit), offset, b.i32(-int64_t(fetchBytes()))) : offset;
    }
    if (limit) offset = b.select(b.less(column, limit), offset, b.i32(-1));
    return plus(offset, rowOffset);
  }

  /// The sum of two parts of a lane's offset. It saturates: a missing column stays beyond every extent.
  Value plus(Value offset, Value more) { return LLVM::UAddSat::create(b, offset, more); }

  /// Where the wave's instruction writes in the tile, in bytes.
  Value ldsOffset(unsigned batchRow, unsigned batchColumn) {
    // Without this, LLVM keeps the sums of all instructions in registers throughout a loop.
    if (!waveInLds)
      waveInLds = b.inOrder(b.add(b.mul(place.waveRow, b.i32(tile.getRowBytes())),
                                  b.mul(place.waveColumn, b.i32(tile.getElementBytes()))));
    return b.add(waveInLds, b.i32(place.step(batchRow) * tile.getRowBytes() +
                                  batchColumn * layout.batchTile().columns * tile.getElementBytes()));
  }

  void load(Value resource, Value voffset, unsigned batchRow, unsigned batchColumn) {
    if constexpr (isFetch)
      keep(ROCDL::RawPtrBufferLoadOp::create(
          b, fetchType(), ValueRange{resource, voffset, /*soffset=*/b.i32(0), /*aux=*/b.i32(0)}));
    else
      LoadToLdsOp::create(b, resource, voffset, copy.getTile(), ldsOffset(batchRow, batchColumn),
                          layout.elementBytes);
  }

  Type fetchType() {
    unsigned dwords = fetchBytes() / 4;
    return dwords == 1 ? Type(b.getI32Type()) : VectorType::get(dwords, b.getI32Type());
  }
  void keep(Value dwords) {
    dwords.getDefiningOp()->setAttr(halfOfCopy, b.getUnitAttr());
    if (dwords.getType().isInteger()) return loaded.push_back(dwords);
    for (unsigned n = 0; n < fetchBytes() / 4; ++n)
      loaded.push_back(vector::ExtractOp::create(b, dwords, n));
  }

  /// All loads of the wave through one descriptor, starting at its first row.
  void loadCloseRows() {
    Value stride = b.truncate(strideBytes);
    Value resource = closeDescriptor(stride);
    Value laneRows = b.mul(place.laneRow, stride);
    if (!isFetch && placesRepeat()) return loadSteps(resource, laneRows, stride);
    for (unsigned batchRow = 0; batchRow < place.rowsOfLane(); ++batchRow) {
      // Without this, LLVM keeps the offsets of all instructions in registers throughout a loop.
      Value step = b.inOrder(b.mul(stride, b.i32(place.step(batchRow))));
      for (unsigned batchColumn = 0; batchColumn < layout.batch.columns; ++batchColumn) {
        Value column = sourceColumn(batchRow, batchColumn);
        Value voffset = isFetch ? bufferOffset(column, b.add(laneRows, step))
                                : plus(bufferOffset(column, laneRows), step);
        load(resource, voffset, batchRow, batchColumn);
      }
    }
  }

  /// Whether a lane has the same columns of the source in all its rows.
  bool placesRepeat() {
    XorSwizzle swizzle = tile.getSwizzle().getPolicy();
    unsigned phases = swizzle.chunk == 0 ? 1 : swizzle.period * swizzle.rowsPerPhase;
    return layout.batchTile().rows % phases == 0;
  }

  /// The offset grows by the same amount from each row of a lane to the next.
  void loadSteps(Value resource, Value laneRows, Value stride) {
    Value step = b.mul(stride, b.i32(layout.batchTile().rows));
    SmallVector<Value> offsets;
    for (unsigned batchColumn = 0; batchColumn < layout.batch.columns; ++batchColumn)
      offsets.push_back(bufferOffset(sourceColumn(0, batchColumn), laneRows));
    for (unsigned batchRow = 0; batchRow < layout.batch.rows; ++batchRow)
      for (auto [batchColumn, offset] : llvm::enumerate(offsets)) {
        // Without this, LLVM computes each from the first.
        if (batchRow != 0) offset = plus(offset, step);
        offset = b.inLanes(offset);
        load(resource, offset, batchRow, batchColumn);
      }
  }

  /// Each instruction's rows, which are one stride apart, through their own descriptor.
  void loadRows() {
    for (unsigned batchRow = 0; batchRow < layout.batch.rows; ++batchRow) {
      Value resource;
      for (unsigned batchColumn = 0; batchColumn < layout.batch.columns; ++batchColumn) {
        if (!resource)
          resource = descriptor(b.add(copy.getFirstRow(), b.add(place.waveRow, b.i32(place.step(batchRow)))),
                                rowsOfWave);
        Value column = sourceColumn(batchRow, batchColumn);
        Value voffset = rowsOfWave > 1 ? bufferOffset(column, b.mul(place.laneRow, b.truncate(strideBytes)))
                                       : columnOffset(column);
        load(resource, voffset, batchRow, batchColumn);
      }
    }
  }

  /// Covers at most `rows` rows starting at number `row`.
  Value descriptor(Value row, unsigned rows) {
    // The number of rows below the limit: correct modulo 2^32 even if the row's number overflowed.
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

  /// Covers the rows of the wave. The part that does not change with the tile's first row is computed
  /// separately, so that it can leave a loop.
  Value closeDescriptor(Value stride) {
    Value beforeLast = b.sub(b.sub(b.sub(copy.getRowLimit(), place.waveRow), b.i32(1)), copy.getFirstRow());
    Value rowsBefore = arith::MinSIOp::create(b, beforeLast, b.i32(place.rowsOfWave() - 1));
    Value extent = b.add(b.mul(rowsBefore, stride), b.truncate(rowExtent()));
    Value isEmpty = b.less(beforeLast, b.i32(0));
    Value waveBase = b.advance(copy.getBase(), b.mul(b.zeroExtend(place.waveRow), strideBytes));
    Value start = b.advance(waveBase, b.mul(b.zeroExtend(copy.getFirstRow()), b.zeroExtend(stride)));
    return b.buffer(start, b.zeroExtend(b.select(isEmpty, b.i32(0), extent)));
  }

  /// The readable bytes of a row. Packs of columns can be anywhere; they check the limit themselves.
  Value rowExtent() {
    if (copy.getPackLog2()) return b.i64(INT32_MAX);
    Value limit = copy.getColumnLimit();
    if (!limit) return b.i64(rowBytes());
    Value columns = arith::MinSIOp::create(b, limit, b.i32(tile.getColumns()));
    return b.mul(b.signExtend(columns), b.i64(elementBytes));
  }

  unsigned rowBytes() const { return tile.getColumns() * elementBytes; }

  void gatherRows() {
    PagedRows rows(b, copy, lanes);
    Value pageBytes = b.mul(copy.getPageStride(), b.i64(elementBytes));
    bool descriptors = rowsOfWave == 1;
    // Packs reach beyond the zeros; where a row's address is null, they are read from the start of the zeros.
    Value missing = descriptors || copy.getPackLog2() ? b.toPointer(b.i64(0)) : zeros();
    auto [low, high] = b.halves(
        b.toInteger(rows.addresses(copy.getBase(), copy.getEntries(), pageBytes, strideBytes, missing)));
    Value inWave = place.waveRow;
    for (unsigned batchRow = 0; batchRow < place.rowsOfLane(); ++batchRow) {
      // Without this, LLVM makes the descriptors of all rows first and runs out of scalar registers.
      if (descriptors) inWave = b.inOrder(inWave);
      Value first = b.add(inWave, b.i32(place.step(batchRow)));
      if (descriptors)
        loadRow(ROCDL::ReadlaneOp::create(b, b.getI32Type(), low, first),
                ROCDL::ReadlaneOp::create(b, b.getI32Type(), high, first), batchRow);
      else
        gather(fromRow(low, first, batchRow), fromRow(high, first, batchRow), batchRow);
    }
  }

  /// The value from the lane that has this lane's row of an instruction. If rows in flight take registers,
  /// the difference between instructions goes into the ds_bpermute's offset, which takes none.
  Value fromRow(Value value, Value firstOfInstruction, unsigned batchRow) {
    if (!isFetch) return b.fromLane(value, b.add(firstOfInstruction, place.laneRow));
    Value first = b.shiftLeft(b.add(place.waveRow, place.laneRow), b.i32(2));
    return b.fromByte(value, b.add(first, b.i32(4 * place.step(batchRow))));
  }

  Value zeros() { return ZerosOp::create(b, copy.getBase().getType(), rowBytes()); }

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
      load(resource, voffset, batchRow, batchColumn);
    }
  }

  /// Loads of several rows; this lane's row has its address in halves.
  void gather(Value low, Value high, unsigned batchRow) {
    for (unsigned batchColumn = 0; batchColumn < layout.batch.columns; ++batchColumn)
      gather(b.joined(low, high), batchRow, batchColumn);
  }

  void gather(Value address, unsigned batchRow, unsigned batchColumn) {
    Value isMissing;
    if (copy.getPackLog2()) isMissing = b.equal(address, b.i64(0));
    Value column = sourceColumn(batchRow, batchColumn);
    Value pointer = b.advance(b.toPointer(address), b.zeroExtend(columnOffset(column)));
    if (Value limit = copy.getColumnLimit()) {
      Value isBehind = b.isFalse(b.less(column, limit));
      isMissing = isMissing ? b.either(isMissing, isBehind) : isBehind;
    }
    if (isMissing) pointer = b.select(isMissing, zeros(), pointer);
    if constexpr (isFetch)
      keep(LLVM::LoadOp::create(b, fetchType(), pointer, /*alignment=*/fetchBytes()));
    else
      GatherToLdsOp::create(b, pointer, copy.getTile(), ldsOffset(batchRow, batchColumn),
                            layout.elementBytes);
  }

  /// Bytes per lane in one instruction.
  unsigned fetchBytes() const { return layout.element.columns * elementBytes; }

  CopyBuilder b;
  Op copy;
  NestedLayout layout;
  LdsTileType tile;
  unsigned elementBytes; // of the source
  unsigned lanes;
  unsigned rowsOfWave; // rows of one instruction
  LanePlace place;
  Value strideBytes, waveInLds;
  SmallVector<Value> loaded;
};

} // namespace

void loadToLds(AsyncDmaOp copy, const NestedLayout &layout, unsigned lanes, Value wave) {
  LdsTileType tile = copy.getTile().getType();
  CopyDistributor(copy, tile, tile.getElementBytes(), layout, lanes, wave).run();
}

void fetchRows(FetchRowsOp fetch, const NestedLayout &layout, unsigned lanes, Value wave) {
  auto tile = cast<LdsTileType>(fetch.getTileType());
  unsigned bytes = fetch.getSourceType().getIntOrFloatBitWidth() / 8;
  SmallVector<Value> dwords = CopyDistributor(fetch, tile, bytes, layout, lanes, wave).run();
  CopyBuilder b(fetch.getLoc(), fetch);
  createWaveFence(b, b.getLoc());
  fetch.replaceAllUsesWith(
      vector::FromElementsOp::create(b, cast<VectorType>(fetch.getRows().getType()), dwords).getResult());
}

} // namespace sluice

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
//                                  Ranges are not checked: missing rows, and columns at or past their limit,
//                                  are read from zeros in the code object's constant data.
//
// Either way a batch is one vector-memory instruction, for any limit, so that marks stay exact and
// reads of zeros are ordered like every other copy.
//
// page_lookup becomes loads of the table, which marks count as well. Their results arrive in the order of all
// vector memory: a look-up one tile ahead of the copies that need it adds no other wait.
//
// A copy through registers can write rows where the swizzle wants them, and can convert the elements it
// loaded:
//
//   before: %rows = fetch_rows %base[%first] limit %limit stride %s for tile from type
//           land_rows %rows into %tile from type
//   after:  for each batch: load 8 columns of the lane's row                   addresses as above
//           for each batch: convert them if needed ; lds_write                 eight lanes fill all banks
//
// An async_dma through registers that no pipeline took over does both, one after the other. Its wait is only
// for the other waves: a barrier. Fetched rows are ordinary loads, which marks do not count: LLVM waits for
// them where they land. A fence, which emits no instruction, keeps LLVM from moving the loads there.
//
// A copy that cannot be distributed is an error that names the tile, the widths tried and the reason.
//
//===----------------------------------------------------------------------------------------------------===//
#include "dialect/Transpose.h"
#include "dialect/Widen.h"
#include "target/RequireChip.h"
#include "transforms/Copies.h"
#include "transforms/NestedLayout.h"
#include "transforms/PagedRows.h"
#include "transforms/Passes.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

namespace sluice {
#define GEN_PASS_DEF_DISTRIBUTEASYNCDMA
#include "transforms/Passes.h.inc"

using namespace mlir;

namespace {

/// The position of a lane of a wave in a copied tile.
struct LanePlace {
  LanePlace(CopyBuilder &b, const NestedLayout &layout, unsigned lanes, Value wave)
      : b(b), layout(layout), byColumns(layout.element.rows != 1) {
    Value lane = b.laneOf(ROCDL::ThreadIdXOp::create(b, b.getI32Type()), lanes);
    if (byColumns) {
      // Lanes that write together: four groups of rows, each of eight neighbours.
      constexpr unsigned neighbours = 8;
      Value group = b.divide(lane, b.i32(neighbours));
      laneRow = b.mul(b.remainder(group, b.i32(layout.thread.rows)), b.i32(rowsApart));
      Value pieces = b.mul(b.divide(group, b.i32(layout.thread.rows)), b.i32(neighbours));
      laneColumn = b.add(b.remainder(lane, b.i32(neighbours)), pieces);
    } else {
      laneRow = b.divide(lane, b.i32(layout.thread.columns));
      laneColumn = b.remainder(lane, b.i32(layout.thread.columns));
    }
    laneColumn = b.mul(laneColumn, b.i32(layout.element.columns));
    Value waveOfRows = wave;
    waveColumn = b.i32(0);
    if (layout.subgroup.columns != 1) {
      waveOfRows = b.divide(wave, b.i32(layout.subgroup.columns));
      waveColumn = b.mul(b.remainder(wave, b.i32(layout.subgroup.columns)), b.i32(layout.waveTile().columns));
    }
    if (byColumns)
      waveRow = b.add(b.mul(b.divide(waveOfRows, b.i32(2)), b.i32(2 * layout.waveTile().rows)),
                      b.mul(b.remainder(waveOfRows, b.i32(2)), b.i32(layout.element.rows)));
    else
      waveRow = b.mul(waveOfRows, b.i32(layout.waveTile().rows));
  }

  /// A lane's rows in a column, and the distance of each from the first.
  unsigned rowsOfLane() const { return layout.batch.rows * layout.element.rows; }
  unsigned step(unsigned batchRow) const {
    return batchRow / layout.element.rows * layout.batchTile().rows + batchRow % layout.element.rows;
  }
  /// The rows from the first row of a wave to its last, inclusive.
  unsigned rowsOfWave() const {
    unsigned ofInstruction = byColumns ? (layout.thread.rows - 1) * rowsApart + 1 : layout.thread.rows;
    return step(rowsOfLane() - 1) + ofInstruction;
  }

  /// The lane's cell of an instruction.
  Value row(unsigned batchRow) const { return b.add(b.add(waveRow, laneRow), b.i32(step(batchRow))); }
  Value column(unsigned batchColumn) const {
    return b.add(b.add(waveColumn, laneColumn), b.i32(batchColumn * layout.batchTile().columns));
  }

  static constexpr unsigned rowsApart = 8; // of neighbours in a unit of a tile by columns

  CopyBuilder &b;
  NestedLayout layout;
  bool byColumns;            // whether the tile is stored by columns: see ColumnLayout.h
  Value laneRow, laneColumn; // in its wave's instruction
  Value waveRow, waveColumn; // of the wave, in a batch
};

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
    if (!ofWaveInLds)
      ofWaveInLds = b.inOrder(b.add(b.mul(place.waveRow, b.i32(tile.getRowBytes())),
                                    b.mul(place.waveColumn, b.i32(tile.getElementBytes()))));
    return b.add(ofWaveInLds, b.i32(place.step(batchRow) * tile.getRowBytes() +
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
    Value ofWave = b.advance(copy.getBase(), b.mul(b.zeroExtend(place.waveRow), strideBytes));
    Value start = b.advance(ofWave, b.mul(b.zeroExtend(copy.getFirstRow()), b.zeroExtend(stride)));
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
  Value strideBytes, ofWaveInLds;
  SmallVector<Value> loaded;
};

void lowerFetch(FetchRowsOp fetch, const NestedLayout &layout, unsigned lanes, Value wave) {
  auto tile = cast<LdsTileType>(fetch.getTileType());
  unsigned bytes = fetch.getSourceType().getIntOrFloatBitWidth() / 8;
  SmallVector<Value> dwords = CopyDistributor(fetch, tile, bytes, layout, lanes, wave).run();
  CopyBuilder b(fetch.getLoc(), fetch);
  createWaveFence(b, b.getLoc());
  fetch.replaceAllUsesWith(
      vector::FromElementsOp::create(b, cast<VectorType>(fetch.getRows().getType()), dwords).getResult());
}

void writeHalf(CopyBuilder &b, Value elements, Value tile, Value row, Value column) {
  LdsWriteOp::create(b, elements, tile, row, column)->setAttr(halfOfCopy, b.getUnitAttr());
}

/// The columns of four rows, each of which is a dword, as vectors of dwords.
SmallVector<Value> columnsOf(CopyBuilder &b, ArrayRef<Value> rows, unsigned elementBytes) {
  if (elementBytes == 2) return transposeHalves(b, rows);
  SmallVector<Value> columns = transposeBytes(b, rows);
  for (Value &column : columns)
    column = vector::FromElementsOp::create(b, VectorType::get(1, b.getI32Type()), column);
  return columns;
}

/// Turns four rows of some columns of a lane into four elements of each column.
void landByColumns(CopyBuilder &b, LandRowsOp land, const NestedLayout &layout, const LanePlace &place) {
  LdsTileType tile = land.getTile().getType();
  unsigned ofWord = 4 / tile.getElementBytes(); // columns in a dword
  unsigned words = layout.element.columns / ofWord, rows = layout.element.rows;
  auto type = VectorType::get(rows, tile.getElementType());
  for (unsigned instruction = 0; instruction < layout.instructions(); ++instruction) {
    unsigned firstRow = instruction / layout.batch.columns * rows;
    unsigned batchColumn = instruction % layout.batch.columns;
    for (unsigned word = 0; word < words; ++word) {
      SmallVector<Value> ofRows;
      for (unsigned row = firstRow; row < firstRow + rows; ++row)
        ofRows.push_back(vector::ExtractOp::create(
            b, land.getRows(), int64_t((row * layout.batch.columns + batchColumn) * words + word)));
      for (auto [index, column] : llvm::enumerate(columnsOf(b, ofRows, tile.getElementBytes())))
        writeHalf(b, vector::BitCastOp::create(b, type, column), land.getTile(), place.row(firstRow),
                  b.add(place.column(batchColumn), b.i32(word * ofWord + index)));
    }
  }
}

void lowerLanding(LandRowsOp land, const NestedLayout &layout, unsigned lanes, Value wave) {
  constexpr unsigned columns = FetchRowsOp::laneColumns; // per lane and instruction
  unsigned dwords = columns * land.getSourceType().getIntOrFloatBitWidth() / 32;
  CopyBuilder b(land.getLoc(), land);
  LanePlace place(b, layout, lanes, wave);
  if (land.getTile().getType().getByColumns()) return landByColumns(b, land, layout, place);
  Type element = land.getTile().getType().getElementType();
  for (unsigned instruction = 0; instruction < layout.instructions(); ++instruction) {
    auto positions = llvm::to_vector(llvm::seq<int64_t>(instruction * dwords, (instruction + 1) * dwords));
    Value ofLane = vector::ShuffleOp::create(b, land.getRows(), land.getRows(), positions);
    auto asElements = [&](Type type) -> Value {
      return vector::BitCastOp::create(b, VectorType::get(columns, type), ofLane);
    };
    bool converts = land.getSourceType() != element;
    Value elements = converts ? widenFp8(b, asElements(b.getI8Type()), element) : asElements(element);
    writeHalf(b, elements, land.getTile(), place.row(instruction / layout.batch.columns),
              place.column(instruction % layout.batch.columns));
  }
}

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
      if (auto copy = dyn_cast<AsyncDmaOp>(op)) {
        LdsTileType tile = copy.getTile().getType();
        CopyDistributor(copy, tile, tile.getElementBytes(), layout, target->waveSize, wave).run();
      } else if (auto fetch = dyn_cast<FetchRowsOp>(op)) {
        lowerFetch(fetch, layout, target->waveSize, wave);
      } else {
        lowerLanding(cast<LandRowsOp>(op), layout, target->waveSize, wave);
      }
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

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
// In a gather, (page, row in page) are the two digits of a row number in base page_rows. Two divisions per
// copy find those of the wave's first row and of the step between batches, each a multiplication if the host
// has prepared it; from then on digits are added with carry, all in scalar registers. The page's number comes
// by scalar memory: the result of a vector load would be waited for with vmcnt, which completes in order and
// so waits for every copy in flight.
//
//   one page per instruction        a descriptor as above, with base + page * page_stride + ...
//   several pages per instruction   gather_to_lds: 64-bit addresses; each lane picks that of its row. There
//   is
//                                   no range check: rows and columns at or past their limit are read from
//                                   zeros in the code object's constant data.
//
// Either way it is one vector-memory instruction per batch, whatever the limit is, so that marks stay exact,
// and what reads zeros is ordered like every other copy. A row at or past the limit has no page: its table
// entry is looked up in the zeros as well.
//
// A copy that cannot be distributed is an error that names the tile, the widths tried and the reason.
//
//===----------------------------------------------------------------------------------------------------===//
#include "target/RequireChip.h"
#include "transforms/NestedLayout.h"
#include "transforms/Passes.h"

namespace sluice {
#define GEN_PASS_DEF_DISTRIBUTEASYNCDMA
#include "transforms/Passes.h.inc"

using namespace mlir;

namespace {

// Word 3 of a raw buffer resource on gfx9: 32-bit data and number format, no swizzle, no thread-id
// addressing.
constexpr int32_t rawBufferFlags = 0x00027000;

// Every load has a descriptor of four SGPRs. Left alone, the scheduler computes all of a tile's descriptors
// first and runs out of SGPRs; a scheduling barrier every few loads bounds how many are alive. It stops only
// scalar and vector-memory instructions: VALU, MFMA, LDS and transcendental ones may cross (mask bits of
// llvm.amdgcn.sched.barrier).
constexpr unsigned loadsBetweenSchedulingBarriers = 4;
constexpr int32_t letAllButScalarAndMemoryCross = 0x2 | 0x8 | 0x80 | 0x100 | 0x200 | 0x400;

// Table entries that are looked up before the loads that need them: they share a wait for scalar memory, and
// occupy scalar registers.
constexpr unsigned lookupsAhead = 2;

/// Short spellings for what copies compute.
class CopyBuilder : public ImplicitLocOpBuilder {
public:
  using ImplicitLocOpBuilder::ImplicitLocOpBuilder;

  Value i32(int64_t value) { return arith::ConstantOp::create(*this, getI32IntegerAttr(value)); }
  Value i64(int64_t value) { return arith::ConstantOp::create(*this, getI64IntegerAttr(value)); }
  Value add(Value a, Value b) { return arith::AddIOp::create(*this, a, b); }
  Value sub(Value a, Value b) { return arith::SubIOp::create(*this, a, b); }
  Value mul(Value a, Value b) { return arith::MulIOp::create(*this, a, b); }
  Value divide(Value a, Value b) { return arith::DivUIOp::create(*this, a, b); }
  Value remainder(Value a, Value b) { return arith::RemUIOp::create(*this, a, b); }
  /// floor(a * b / 2^32)
  Value mulHigh(Value a, Value b) { return arith::MulUIExtendedOp::create(*this, a, b).getHigh(); }
  Value shiftLeft(Value a, Value b) { return arith::ShLIOp::create(*this, a, b); }
  Value shiftRight(Value a, Value b) { return arith::ShRUIOp::create(*this, a, b); }
  Value signExtend(Value a) { return arith::ExtSIOp::create(*this, getI64Type(), a); }
  Value zeroExtend(Value a) { return arith::ExtUIOp::create(*this, getI64Type(), a); }
  Value less(Value a, Value b) { return arith::CmpIOp::create(*this, arith::CmpIPredicate::slt, a, b); }
  Value positive(Value a) { return arith::CmpIOp::create(*this, arith::CmpIPredicate::sgt, a, i32(0)); }
  Value select(Value condition, Value yes, Value no) {
    return arith::SelectOp::create(*this, condition, yes, no);
  }
  /// The same wave-uniform values, all available at once: an empty piece of assembly that takes them in
  /// scalar registers and gives them back. Left alone, the backend waits for each scalar load before it
  /// issues the next one.
  SmallVector<Value> together(ArrayRef<Value> values) {
    if (values.size() == 1) return {values.front()};
    std::string constraints;
    for (size_t n = 0; n < values.size(); ++n)
      constraints += "=s,";
    for (size_t n = 0; n < values.size(); ++n)
      constraints += std::to_string(n) + (n + 1 == values.size() ? "" : ",");
    auto type =
        LLVM::LLVMStructType::getLiteral(getContext(), llvm::to_vector(ValueRange(values).getTypes()));
    auto assembly = LLVM::InlineAsmOp::create(
        *this, type, values, /*asm_string=*/"", constraints, /*has_side_effects=*/false,
        /*is_align_stack=*/false, LLVM::TailCallKind::None, /*asm_dialect=*/LLVM::AsmDialectAttr(),
        /*operand_attrs=*/ArrayAttr());
    SmallVector<Value> results;
    for (size_t n = 0; n < values.size(); ++n)
      results.push_back(LLVM::ExtractValueOp::create(*this, assembly.getResult(0), n));
    return results;
  }
  Value waveUniform(Value a) { return ROCDL::ReadfirstlaneOp::create(*this, a.getType(), a); }
  Value advance(Value pointer, Value bytes) {
    return LLVM::GEPOp::create(*this, pointer.getType(), getI8Type(), pointer, ArrayRef<LLVM::GEPArg>{bytes});
  }
};

/// Where the rows of the source are: wave-uniform row numbers and what follows from them.
class SourceRows {
public:
  /// A row, and how far it is known already: its address, or its digits in base page_rows.
  struct Row {
    Value number;
    Value pointer;
    Value page, rowInPage;
    Value pageIndex; // the table's entry, in 64 bits
  };

  SourceRows(CopyBuilder &b, AsyncDmaOp copy)
      : b(b), copy(copy), elementBytes(copy.getTile().getType().getElementBytes()) {
    strideBytes = b.mul(copy.getRowStride(), b.i64(elementBytes));
    if (copy.isGather()) pageBytes = b.mul(copy.getPageStride(), b.i64(elementBytes));
  }

  Value rowStrideBytes() const { return strideBytes; }

  /// The number of rows from this one on below the limit. Right modulo 2^32 even if the row number
  /// overflowed.
  Value remaining(const Row &row) { return b.sub(copy.getRowLimit(), row.number); }

  Row first(Value number) {
    if (!copy.isGather())
      return {number, b.advance(copy.getBase(), b.mul(b.signExtend(number), strideBytes)), {}, {}, {}};
    Value page = pageOf(number);
    return {number, {}, page, b.sub(number, b.mul(page, copy.getPageRows())), {}};
  }

  /// The row `count` rows further on. For a gather the digits of `count` must be known: see `step`.
  struct Step {
    unsigned count;
    Value bytes;             // contiguous
    Value pages, rowsInPage; // gather
  };
  Step step(unsigned count) {
    if (!copy.isGather()) return {count, b.mul(strideBytes, b.i64(count)), {}, {}};
    // One row is no whole page unless pages have one row, and then the carry makes it one.
    if (count == 1) return {count, {}, b.i32(0), b.i32(1)};
    Value pages = pageOf(b.i32(count));
    return {count, {}, pages, b.sub(b.i32(count), b.mul(pages, copy.getPageRows()))};
  }
  Row after(const Row &row, const Step &step) {
    Value number = b.add(row.number, b.i32(step.count));
    if (!copy.isGather()) return {number, b.advance(row.pointer, step.bytes), {}, {}, {}};
    Value sum = b.add(row.rowInPage, step.rowsInPage);
    Value carry = arith::CmpIOp::create(b, arith::CmpIPredicate::uge, sum, copy.getPageRows());
    Value page = b.add(b.add(row.page, step.pages), arith::ExtUIOp::create(b, b.getI32Type(), carry));
    return {number, {}, page, b.select(carry, b.sub(sum, copy.getPageRows()), sum), {}};
  }

  /// Reads the table's entries of these rows; a zero for a row at or past the limit.
  void lookUp(MutableArrayRef<Row *> rows) {
    unsigned bytes = copy.getPageIndex()->getIntOrFloatBitWidth() / 8;
    Value wide = copy.getWidePages();
    Value bytesLog2 = b.i32(bytes == 4 ? 2 : 3);
    if (wide) bytesLog2 = b.select(wide, b.i32(3), bytesLog2);
    bytesLog2 = b.zeroExtend(bytesLog2);
    SmallVector<Value> entries;
    for (Row *row : rows) {
      Value offset = arith::ShLIOp::create(b, b.zeroExtend(row->page), bytesLog2);
      Value entry = b.advance(copy.getTable(), offset), none = zeros(bytes);
      Value exists = b.positive(remaining(*row));
      entries.push_back(scalarLoad(*copy.getPageIndex(), b.select(exists, entry, none)));
      if (!wide) continue;
      // The upper half of the number.
      Value upper = b.select(arith::AndIOp::create(b, exists, wide), b.advance(entry, b.i64(4)), none);
      entries.push_back(scalarLoad(*copy.getPageIndex(), upper));
    }
    SmallVector<Value> numbers = b.together(entries);
    for (auto [n, row] : llvm::enumerate(rows)) {
      if (bytes == 8) {
        row->pageIndex = numbers[n];
      } else if (!wide) {
        row->pageIndex = b.zeroExtend(numbers[n]);
      } else {
        Value upper = arith::ShLIOp::create(b, b.zeroExtend(numbers[2 * n + 1]), b.i64(32));
        row->pageIndex = arith::OrIOp::create(b, b.zeroExtend(numbers[2 * n]), upper);
      }
    }
  }

  /// The address of a row; of a gather, after `lookUp`.
  Value pointer(const Row &row) {
    if (!copy.isGather()) return row.pointer;
    Value page = b.advance(copy.getBase(), b.mul(row.pageIndex, pageBytes));
    return b.advance(page, b.mul(b.zeroExtend(row.rowInPage), strideBytes));
  }

private:
  Value zeros(unsigned bytes) { return ZerosOp::create(b, copy.getBase().getType(), bytes); }

  Value scalarLoad(Type type, Value place) {
    // The constant address space is what makes it a scalar load.
    auto constant = LLVM::LLVMPointerType::get(b.getContext(), 4);
    Value scalar = LLVM::AddrSpaceCastOp::create(b, constant, place);
    return LLVM::LoadOp::create(b, type, scalar, /*alignment=*/type.getIntOrFloatBitWidth() / 8);
  }

  /// The page of a row, as a digit: number / page_rows.
  Value pageOf(Value number) {
    // The backend divides in vector registers.
    if (!copy.getPageMagic()) return b.waveUniform(b.divide(number, copy.getPageRows()));
    return b.shiftRight(b.mulHigh(b.shiftLeft(number, b.i32(1)), copy.getPageMagic()), copy.getPageShift());
  }

  CopyBuilder &b;
  AsyncDmaOp copy;
  unsigned elementBytes;
  Value strideBytes, pageBytes;
};

class CopyDistributor {
public:
  CopyDistributor(AsyncDmaOp copy, const NestedLayout &layout)
      : b(copy.getLoc(), copy), copy(copy), layout(layout), tile(copy.getTile().getType()),
        rowsOfWave(layout.waveTile().rows), rowsOfBatch(layout.batchTile().rows) {}

  void run() {
    locateLane();
    SourceRows source(b, copy);
    if (copy.getCloseRows()) return loadCloseRows(source);
    bool severalPages = copy.isGather() && copy.getPageDivisor() % rowsOfWave != 0;
    unsigned lookups = !copy.isGather() ? 0 : severalPages ? rowsOfWave : 1; // per batch row
    unsigned group = lookups == 0 ? 1 : std::max(lookupsAhead / lookups, 1u);
    SourceRows::Step nextBatch = source.step(rowsOfBatch);
    SourceRows::Row row = source.first(b.add(copy.getFirstRow(), waveRow));
    for (unsigned first = 0; first < layout.batch.rows; first += group) {
      unsigned end = std::min(first + group, layout.batch.rows);
      SmallVector<SmallVector<SourceRows::Row>> rows; // by batch row; of an instruction, if it needs several
      for (unsigned batchRow = first; batchRow < end; ++batchRow) {
        if (batchRow != 0) row = source.after(row, nextBatch);
        rows.push_back({row});
        for (unsigned n = 1; n < lookups; ++n)
          rows.back().push_back(source.after(rows.back().back(), source.step(1)));
      }
      if (copy.isGather()) {
        SmallVector<SourceRows::Row *> wanted;
        for (SmallVector<SourceRows::Row> &ofInstruction : rows)
          for (SourceRows::Row &one : ofInstruction)
            wanted.push_back(&one);
        source.lookUp(wanted);
      }
      for (unsigned batchRow = first; batchRow < end; ++batchRow) {
        if (severalPages)
          gather(source, rows[batchRow - first], batchRow);
        else
          load(source, rows[batchRow - first].front(), batchRow);
      }
    }
  }

private:
  void locateLane() {
    Value thread = ROCDL::ThreadIdXOp::create(b, b.getI32Type());
    Value lane = arith::AndIOp::create(b, thread, b.i32(63));
    Value wave = b.waveUniform(arith::ShRUIOp::create(b, thread, b.i32(6)));
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
    Value offset = b.add(columnOffset(column), rowOffset);
    if (!copy.getColumnLimit()) return offset;
    return b.select(b.less(column, copy.getColumnLimit()), offset, b.i32(-1));
  }

  /// Where in the tile the wave's instruction writes, in bytes.
  Value ldsOffset(unsigned batchRow, unsigned batchColumn) {
    Value ofWave =
        b.add(b.mul(waveRow, b.i32(tile.getRowBytes())), b.mul(waveColumn, b.i32(tile.getElementBytes())));
    return b.add(ofWave, b.i32(batchRow * rowsOfBatch * tile.getRowBytes() +
                               batchColumn * layout.batchTile().columns * tile.getElementBytes()));
  }

  void separateLoads() {
    if (loads++ % loadsBetweenSchedulingBarriers == 0)
      ROCDL::SchedBarrier::create(b, letAllButScalarAndMemoryCross);
  }

  /// All loads of the wave through one descriptor, from its first row on.
  void loadCloseRows(SourceRows &source) {
    SourceRows::Row first = source.first(b.add(copy.getFirstRow(), waveRow));
    Value stride = arith::TruncIOp::create(b, b.getI32Type(), source.rowStrideBytes());
    Value resource = descriptor(source, first, layout.batch.rows * rowsOfBatch);
    Value laneRows = b.mul(laneRow, stride);
    for (unsigned batchRow = 0; batchRow < layout.batch.rows; ++batchRow) {
      Value rowOffset = b.add(laneRows, b.mul(stride, b.i32(batchRow * rowsOfBatch)));
      for (unsigned batchColumn = 0; batchColumn < layout.batch.columns; ++batchColumn) {
        separateLoads();
        Value voffset = bufferOffset(sourceColumn(batchRow, batchColumn), rowOffset);
        LoadToLdsOp::create(b, resource, voffset, copy.getTile(), ldsOffset(batchRow, batchColumn),
                            layout.elementBytes);
      }
    }
  }

  /// Loads of the rows from `row` on, which are one stride apart, through a descriptor of their own.
  void load(SourceRows &source, const SourceRows::Row &row, unsigned batchRow) {
    Value resource;
    for (unsigned batchColumn = 0; batchColumn < layout.batch.columns; ++batchColumn) {
      separateLoads();
      if (!resource) resource = descriptor(source, row, rowsOfWave);
      Value column = sourceColumn(batchRow, batchColumn), voffset;
      if (rowsOfWave > 1) {
        Value stride = arith::TruncIOp::create(b, b.getI32Type(), source.rowStrideBytes());
        voffset = bufferOffset(column, b.mul(laneRow, stride));
      } else if (copy.getPackLog2()) {
        voffset = bufferOffset(column, b.i32(0));
      } else {
        voffset = columnOffset(column);
      }
      LoadToLdsOp::create(b, resource, voffset, copy.getTile(), ldsOffset(batchRow, batchColumn),
                          layout.elementBytes);
    }
  }

  /// Covers at most `rows` rows from `row` on.
  Value descriptor(SourceRows &source, const SourceRows::Row &row, unsigned rows) {
    // Extent: the columns of the last row below the limit, one stride for each one before it. Packs of
    // columns are anywhere; they keep to the column limit themselves.
    Value remaining = source.remaining(row);
    Value extent = b.i64(copy.getPackLog2() ? INT32_MAX : tile.getRowBytes());
    if (Value limit = copy.getColumnLimit(); limit && !copy.getPackLog2()) {
      Value columns = arith::MinSIOp::create(b, limit, b.i32(tile.getColumns()));
      extent = b.mul(b.signExtend(columns), b.i64(tile.getElementBytes()));
    }
    if (rows > 1) {
      Value valid = arith::MinSIOp::create(b, remaining, b.i32(rows));
      Value rowsBefore = b.signExtend(b.sub(valid, b.i32(1)));
      extent = b.add(b.mul(rowsBefore, source.rowStrideBytes()), extent);
    }
    extent = b.select(b.positive(remaining), extent, b.i64(0));
    Value stride = arith::ConstantOp::create(b, b.getI16IntegerAttr(0));
    auto resourcePointer = LLVM::LLVMPointerType::get(b.getContext(), 8);
    return ROCDL::MakeBufferRsrcOp::create(b, resourcePointer, source.pointer(row), stride, extent,
                                           b.i32(rawBufferFlags));
  }

  /// One load of rows that may all lie in different pages. Such rows are whole: there is one batch column.
  void gather(SourceRows &source, ArrayRef<SourceRows::Row> rows, unsigned batchRow) {
    separateLoads();
    Value zeros = ZerosOp::create(b, copy.getBase().getType(), tile.getRowBytes());
    Value column = sourceColumn(batchRow, 0), offset = b.zeroExtend(columnOffset(column));
    // Packs go beyond the zeros, which therefore are read from their start.
    bool packs = bool(copy.getPackLog2());
    Value address;
    for (auto [n, row] : llvm::enumerate(rows)) {
      Value pointer = source.pointer(row);
      if (packs) pointer = b.advance(pointer, offset);
      pointer = b.select(b.positive(source.remaining(row)), pointer, zeros);
      if (!address) {
        address = pointer;
        continue;
      }
      Value mine = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, laneRow, b.i32(n));
      address = b.select(mine, pointer, address);
    }
    if (Value limit = copy.getColumnLimit()) address = b.select(b.less(column, limit), address, zeros);
    if (!packs) address = b.advance(address, offset);
    GatherToLdsOp::create(b, address, copy.getTile(), ldsOffset(batchRow, 0), layout.elementBytes);
  }

  CopyBuilder b;
  AsyncDmaOp copy;
  NestedLayout layout;
  LdsTileType tile;
  unsigned rowsOfWave, rowsOfBatch; // rows of one instruction; of one instruction of all waves
  unsigned loads = 0;
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
    if (copies.empty()) return;
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
      CopyDistributor(copy, layout).run();
    lowerUnpipelinedWaits(kernel);
    for (AsyncDmaOp copy : copies)
      copy.erase();
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

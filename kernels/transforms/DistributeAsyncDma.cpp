//===- DistributeAsyncDma.cpp - workgroup-level copies to direct-to-LDS loads
//-----------------------------===//
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
// an instruction moves several rows, the lane offset of the last one must fit in 32 bits: the runtime refuses
// larger strides.
//
// A copy that cannot be distributed is an error that names the tile, the widths tried and the reason.
//
//===----------------------------------------------------------------------------------------------------===//
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

void distribute(AsyncDmaOp copy, const NestedLayout &layout) {
  ImplicitLocOpBuilder b(copy.getLoc(), copy);
  LdsTileType tile = copy.getTile().getType();
  auto i32 = [&](int64_t value) -> Value { return arith::ConstantOp::create(b, b.getI32IntegerAttr(value)); };
  auto i64 = [&](int64_t value) -> Value { return arith::ConstantOp::create(b, b.getI64IntegerAttr(value)); };
  auto globalPointer = LLVM::LLVMPointerType::get(b.getContext(), 1);
  auto resourcePointer = LLVM::LLVMPointerType::get(b.getContext(), 8);
  auto advance = [&](Value pointer, Value bytes) -> Value {
    return LLVM::GEPOp::create(b, globalPointer, b.getI8Type(), pointer, ArrayRef<LLVM::GEPArg>{bytes});
  };

  Value thread = ROCDL::ThreadIdXOp::create(b, b.getI32Type());
  Value lane = arith::AndIOp::create(b, thread, i32(63));
  Value wave = ROCDL::ReadfirstlaneOp::create(b, b.getI32Type(), arith::ShRUIOp::create(b, thread, i32(6)));

  // The part of a row's place that depends on the lane.
  Value laneRow = arith::DivUIOp::create(b, lane, i32(layout.threadColumns));
  Value laneColumn = arith::MulIOp::create(b, arith::RemUIOp::create(b, lane, i32(layout.threadColumns)),
                                           i32(layout.elementColumns));

  Value strideBytes = arith::MulIOp::create(b, copy.getRowStride(), i64(tile.getElementBytes()));
  Value waveRow = arith::MulIOp::create(b, wave, i32(layout.threadRows)); // within the rows of one batch
  Value row = arith::AddIOp::create(b, copy.getFirstRow(), waveRow);
  Value pointer = advance(
      copy.getBase(), arith::MulIOp::create(b, arith::ExtSIOp::create(b, b.getI64Type(), row), strideBytes));
  unsigned batchRows = layout.threadRows * layout.subgroups;
  Value batchBytes = arith::MulIOp::create(b, strideBytes, i64(batchRows));

  for (unsigned batch = 0; batch < layout.batches; ++batch) {
    if (batch % loadsBetweenSchedulingBarriers == 0)
      ROCDL::SchedBarrier::create(b, letAllButScalarAndMemoryCross);
    if (batch != 0) {
      row = arith::AddIOp::create(b, row, i32(batchRows));
      pointer = advance(pointer, batchBytes);
    }
    // Extent: rowBytes for the last row below the limit, one stride for each one before it.
    Value remaining = arith::SubIOp::create(b, copy.getRowLimit(), row);
    Value valid = arith::MinSIOp::create(b, remaining, i32(layout.threadRows));
    Value anyValid = arith::CmpIOp::create(b, arith::CmpIPredicate::sgt, remaining, i32(0));
    Value extent = i64(tile.getRowBytes());
    if (layout.threadRows > 1) {
      Value rowsBefore = arith::ExtSIOp::create(b, b.getI64Type(), arith::SubIOp::create(b, valid, i32(1)));
      extent = arith::AddIOp::create(b, arith::MulIOp::create(b, rowsBefore, strideBytes), extent);
    }
    extent = arith::SelectOp::create(b, anyValid, extent, i64(0));
    Value stride = arith::ConstantOp::create(b, b.getI16IntegerAttr(0));
    Value resource =
        ROCDL::MakeBufferRsrcOp::create(b, resourcePointer, pointer, stride, extent, i32(rawBufferFlags));

    Value tileRow =
        arith::AddIOp::create(b, arith::AddIOp::create(b, waveRow, laneRow), i32(batch * batchRows));
    Value column = swizzleColumn(b, b.getLoc(), tile, tileRow, laneColumn);
    Value voffset = arith::MulIOp::create(b, column, i32(tile.getElementBytes()));
    if (layout.threadRows > 1) {
      Value stride32 = arith::TruncIOp::create(b, b.getI32Type(), strideBytes);
      voffset = arith::AddIOp::create(b, voffset, arith::MulIOp::create(b, laneRow, stride32));
    }
    Value ldsOffset = arith::AddIOp::create(b, arith::MulIOp::create(b, wave, i32(layout.instructionBytes())),
                                            i32(batch * batchRows * tile.getRowBytes()));
    LoadToLdsOp::create(b, resource, voffset, copy.getTile(), ldsOffset, layout.elementBytes);
  }
}

struct DistributeAsyncDmaPass : impl::DistributeAsyncDmaBase<DistributeAsyncDmaPass> {
  using DistributeAsyncDmaBase::DistributeAsyncDmaBase;

  void runOnOperation() override {
    gpu::GPUFuncOp kernel = getOperation();
    const Chip *target = findChip(chip);
    if (!target) {
      kernel.emitError() << "distribute-async-dma: chip '" << chip << "' is not in the chip table";
      return signalPassFailure();
    }
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
      FailureOr<NestedLayout> layout = computeNestedLayout(copy.getTile().getType(), waves, *target, reason);
      if (failed(layout)) {
        copy.emitError() << "cannot distribute " << copy.getTile().getType() << " over " << waves
                         << " waves: " << reason;
        return signalPassFailure();
      }
      layouts.push_back(*layout);
    }
    for (auto [copy, layout] : llvm::zip_equal(copies, layouts))
      distribute(copy, layout);
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

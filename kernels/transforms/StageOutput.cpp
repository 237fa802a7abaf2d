//===- StageOutput.cpp - store the output tile in whole rows, through LDS -------------------------------===//
//
// A wave ends up with its rows spread over its lanes, as the matrix core leaves them: neighbouring lanes hold
// neighbouring rows, and a store of 16 bytes per lane touches 32 rows. Written to LDS and read back row by
// row, the same bytes leave as whole rows of consecutive lanes.
//
//   before: store_tile %base[%first] limit %n stride %s row %r columns(...) values(...)
//   after:  %t = lds_alloc
//           lds_write %value, %t[%r, %column]                     for each value
//           %chunk = lds_read %t[row of the lane, its column]     for each 16 bytes of the lane
//           lds_wait
//           scf.if row < %n { store of 16 bytes }
//
// A wave writes and reads rows of its own only: LDS operations of a wave are performed in order, so that no
// barrier stands between. The tile comes to life when the loop's tiles are dead, and reuse-lds, which runs
// again behind this pass, gives it their bytes and the barrier that takes.
//
// Staging is declined, with a remark, where it would leave fewer workgroups resident per compute unit than
// the tiles of the kernel allow (`sluice.lds` says what they need): lanes then store what they hold.
//
// Safe direction: both forms store the same values to the same places.
//
//===----------------------------------------------------------------------------------------------------===//
#include "target/RequireChip.h"
#include "transforms/Passes.h"

#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace sluice {
#define GEN_PASS_DEF_STAGEOUTPUT
#include "transforms/Passes.h.inc"

using namespace mlir;

namespace {

constexpr unsigned storeBytes = 16; // the widest store of a lane

class Lowering {
public:
  explicit Lowering(StoreTileOp op)
      : b(op.getLoc(), op), op(op), type(cast<VectorType>(op.getValues().front().getType())) {}

  void storeDirectly() {
    storeIfBelowLimit(op.getRow(), [&] {
      for (auto [column, value] : llvm::zip_equal(op.getColumns(), op.getValues()))
        LLVM::StoreOp::create(b, value, place(op.getRow(), column), vectorBytes());
    });
  }

  void stage(LdsTileType tileType, unsigned waves, unsigned waveSize) {
    auto alloc = LdsAllocOp::create(b, tileType);
    alloc.setLabel("output");
    Value tile = alloc;
    for (auto [column, value] : llvm::zip_equal(op.getColumns(), op.getValues()))
      LdsWriteOp::create(b, value, tile, op.getRow(), column);
    // No instruction: keeps the compiler from taking other lanes' writes for unrelated.
    createWaveFence(b, b.getLoc());

    unsigned chunkColumns = storeBytes / tileType.getElementBytes();
    unsigned lanesPerRow = tileType.getColumns() / chunkColumns, rowsPerStore = waveSize / lanesPerRow;
    unsigned waveRows = tileType.getRows() / waves;
    auto chunkType = VectorType::get(chunkColumns, tileType.getElementType());
    Value thread = ROCDL::ThreadIdXOp::create(b, b.getI32Type());
    Value lane = arith::AndIOp::create(b, thread, i32(waveSize - 1));
    Value wave = arith::DivUIOp::create(b, thread, i32(waveSize));
    Value laneRow =
        add(arith::MulIOp::create(b, wave, i32(waveRows)), arith::DivUIOp::create(b, lane, i32(lanesPerRow)));
    Value column =
        arith::MulIOp::create(b, arith::RemUIOp::create(b, lane, i32(lanesPerRow)), i32(chunkColumns));
    SmallVector<std::pair<Value, Value>> chunks; // row and what it holds: all reads stand before all stores
    for (unsigned row = 0; row < waveRows; row += rowsPerStore) {
      Value tileRow = add(laneRow, i32(row));
      chunks.push_back({tileRow, LdsReadOp::create(b, chunkType, tile, tileRow, column)});
    }
    // Left alone, the compiler moves reads and their waits behind the conditions of the stores, with a wait
    // for every combination of rows that exist and rows that do not.
    LdsWaitOp::create(b);
    for (auto [row, chunk] : chunks)
      storeIfBelowLimit(row, [&] { LLVM::StoreOp::create(b, chunk, place(row, column), storeBytes); });
  }

private:
  Value i32(int64_t value) { return arith::ConstantOp::create(b, b.getI32IntegerAttr(value)); }
  Value add(Value a, Value c) { return arith::AddIOp::create(b, a, c); }
  unsigned vectorBytes() const { return type.getNumElements() * type.getElementTypeBitWidth() / 8; }

  Value place(Value row, Value column) {
    Value rowNumber = arith::ExtSIOp::create(b, b.getI64Type(), add(op.getFirstRow(), row));
    Value offset = add(arith::MulIOp::create(b, rowNumber, op.getRowStride()),
                       arith::ExtUIOp::create(b, b.getI64Type(), column));
    return LLVM::GEPOp::create(b, op.getBase().getType(), type.getElementType(), op.getBase(),
                               ArrayRef<LLVM::GEPArg>{offset});
  }

  void storeIfBelowLimit(Value row, llvm::function_ref<void()> store) {
    Value below =
        arith::CmpIOp::create(b, arith::CmpIPredicate::slt, add(op.getFirstRow(), row), op.getRowLimit());
    OpBuilder::InsertionGuard guard(b);
    auto branch = scf::IfOp::create(b, below, /*withElseRegion=*/false);
    b.setInsertionPointToStart(branch.thenBlock());
    store();
  }

  ImplicitLocOpBuilder b;
  StoreTileOp op;
  VectorType type;
};

struct StageOutputPass : impl::StageOutputBase<StageOutputPass> {
  using StageOutputBase::StageOutputBase;

  void runOnOperation() override {
    gpu::GPUFuncOp kernel = getOperation();
    const Chip *target = requireChip(*this, kernel, chip);
    if (!target) return signalPassFailure();
    SmallVector<StoreTileOp> stores;
    kernel.walk([&](StoreTileOp store) { stores.push_back(store); });
    for (StoreTileOp store : stores) {
      std::string reason;
      Lowering lowering(store);
      if (FailureOr<LdsTileType> tile = stagingTile(kernel, store, *target, reason); succeeded(tile)) {
        lowering.stage(*tile, wavesOf(kernel, *target), target->waveSize);
      } else {
        emitRemark(store.getLoc()) << "stored from registers: " << reason;
        lowering.storeDirectly();
      }
      store.erase();
    }
  }

  static unsigned wavesOf(gpu::GPUFuncOp kernel, const Chip &chip) {
    std::optional<ArrayRef<int32_t>> block = kernel.getKnownBlockSize();
    return block ? (*block)[0] / chip.waveSize : 0;
  }

  /// LDS that the tiles of the kernel occupy so far.
  static unsigned arenaBytes(gpu::GPUFuncOp kernel) {
    if (auto lds = kernel->getAttrOfType<DictionaryAttr>("sluice.lds"))
      return lds.getAs<IntegerAttr>("arena_bytes").getInt();
    unsigned bytes = 0;
    kernel.walk([&](LdsAllocOp alloc) { bytes += alloc.getTile().getType().getBytes(); });
    return bytes;
  }

  static FailureOr<LdsTileType> stagingTile(gpu::GPUFuncOp kernel, StoreTileOp store, const Chip &chip,
                                            std::string &reason) {
    auto decline = [&](const llvm::Twine &why) {
      reason = why.str();
      return failure();
    };
    auto vector = cast<VectorType>(store.getValues().front().getType());
    unsigned elementBytes = vector.getElementTypeBitWidth() / 8, waves = wavesOf(kernel, chip);
    unsigned chunk = storeBytes / elementBytes, columns = store.getTileColumns(), rows = store.getTileRows();
    if (columns % chunk != 0 || chip.waveSize % (columns / chunk) != 0)
      return decline("a row of " + llvm::Twine(columns) + " elements is no power of two of 16-byte pieces");
    if (chunk % vector.getNumElements() != 0)
      return decline("lanes hold more than 16 neighbouring bytes at a time");
    if (waves == 0 || rows % waves != 0 || (rows / waves) % (chip.waveSize / (columns / chunk)) != 0)
      return decline(llvm::Twine(rows) + " rows do not divide into stores of " + llvm::Twine(waves) +
                     " waves");
    // Rows begin on the same bank: without a swizzle all writes of a column would collide.
    auto swizzle =
        XorSwizzleAttr::get(store.getContext(), XorSwizzle::forColumnReads(columns, elementBytes, storeBytes,
                                                                           chip.ldsBanks(storeBytes)));
    auto tile = LdsTileType::get(store.getContext(), rows, columns, vector.getElementType(), swizzle);
    unsigned before = arenaBytes(kernel), after = std::max(before, tile.getBytes());
    if (after > chip.ldsBytes || (before != 0 && chip.ldsBytes / after < chip.ldsBytes / before))
      return decline("staging takes " + llvm::Twine(tile.getBytes()) + " bytes of LDS where the kernel has " +
                     llvm::Twine(before));
    return tile;
  }
};

} // namespace
} // namespace sluice

//===- StageOutput.cpp - store the output tile in whole rows, through LDS -------------------------------===//
//
// A wave ends up with its rows spread over its lanes, as the matrix core leaves them: neighbouring lanes hold
// neighbouring rows, and a store of 16 bytes per lane touches 32 rows. Written to LDS and read back row by
// row, the same bytes leave as whole rows of consecutive lanes.
//
//   before: store_tile %address row %r limit %n columns(...) limit %c values(...)
//   after:  barrier
//           %t = lds_alloc
//           for each panel of columns:
//             lds_write %value, %t[%r, %column]                     for each value
//             %chunk = lds_read %t[row of the lane, its column]     for each 16 bytes of the lane
//             lds_wait
//             scf.if row < %n and column < %c { store of 16 bytes }
//
// The lane that stores a piece of a row gets the row's address from the lane that has the row (ds_bpermute).
// Panels are narrower than rows, so that the tile fits where the tiles of the loop were.
//
// A wave writes and reads only its own rows, and LDS operations of a wave are performed in order, so no
// barrier is needed between them. The tile becomes live when the loop's tiles are dead: reuse-lds, which runs
// again after this pass, gives it their bytes; the barrier at the start protects those.
//
// Staging is declined, with a remark, if it would leave fewer workgroups resident per compute unit than the
// tiles of the kernel allow (`sluice.lds` says what they need): lanes then store what they hold. Workgroups
// beyond those whose registers fit (`sluice.waves_per_simd`) do not count.
//
// Safe direction: both forms store the same values to the same places.
//
//===----------------------------------------------------------------------------------------------------===//
#include "target/RequireChip.h"
#include "transforms/CopyBuilder.h"
#include "transforms/Passes.h"

namespace sluice {
#define GEN_PASS_DEF_STAGEOUTPUT
#include "transforms/Passes.h.inc"

using namespace mlir;

namespace {

constexpr unsigned storeBytes = 16; // the widest store of a lane

class Lowering {
public:
  explicit Lowering(StoreTileOp op)
      : b(op.getLoc(), op), op(op),
        elementBytes(getElementTypeOrSelf(op.getValues().front().getType()).getIntOrFloatBitWidth() / 8) {}

  void storeDirectly() {
    when(b.less(op.getRow(), op.getRowLimit()), [&] {
      for (auto [column, value] : llvm::zip_equal(op.getColumns(), op.getValues()))
        when(b.less(column, op.getColumnLimit()), [&, column = column, value = value] {
          unsigned bytes = cast<VectorType>(value.getType()).getNumElements() * elementBytes;
          LLVM::StoreOp::create(b, value, place(op.getAddress(), column), bytes);
        });
    });
  }

  void stage(LdsTileType tileType, unsigned waves, unsigned waveSize) {
    // The bytes may have belonged to a tile that another wave still reads.
    BarrierOp::create(b);
    auto alloc = LdsAllocOp::create(b, tileType);
    alloc.setLabel("output");
    Value tile = alloc;
    unsigned chunkColumns = storeBytes / tileType.getElementBytes();
    unsigned lanesPerRow = tileType.getColumns() / chunkColumns, rowsPerStore = waveSize / lanesPerRow;
    unsigned waveRows = tileType.getRows() / waves;
    auto chunkType = VectorType::get(chunkColumns, tileType.getElementType());
    Value thread = ROCDL::ThreadIdXOp::create(b, b.getI32Type());
    Value lane = b.laneOf(thread, waveSize);
    Value firstRow = b.mul(b.waveOf(thread, waveSize), b.i32(waveRows));
    Value laneRow = b.divide(lane, b.i32(lanesPerRow));
    Value column = b.mul(b.remainder(lane, b.i32(lanesPerRow)), b.i32(chunkColumns));
    // The rows of this lane's stores: their numbers in the tile, and their addresses.
    SmallVector<std::pair<Value, Value>> rows;
    auto [low, high] = b.halves(b.toInteger(op.getAddress()));
    for (unsigned row = 0; row < waveRows; row += rowsPerStore) {
      Value inWave = b.add(laneRow, b.i32(row));
      Value lowOfRow = b.fromLane(low, inWave), highOfRow = b.fromLane(high, inWave);
      rows.push_back({b.add(firstRow, inWave), b.toPointer(b.joined(lowOfRow, highOfRow))});
    }
    unsigned first = 0; // value of the panel
    for (auto [panel, count] : llvm::enumerate(op.getPanelValues())) {
      unsigned firstColumn = panel * tileType.getColumns();
      for (unsigned n = first; n < first + count; ++n) {
        Value inPanel = b.sub(op.getColumns()[n], b.i32(firstColumn));
        LdsWriteOp::create(b, op.getValues()[n], tile, op.getRow(), inPanel);
      }
      first += count;
      // Emits no instruction; keeps the compiler from treating other lanes' writes as unrelated.
      createWaveFence(b, b.getLoc());
      SmallVector<Value> chunks; // all reads come before all stores
      for (auto [row, address] : rows)
        chunks.push_back(LdsReadOp::create(b, chunkType, tile, row, column));
      // Without this, the compiler moves reads and their waits below the conditions of the stores, with a
      // wait for every combination of rows that exist and rows that do not.
      LdsWaitOp::create(b);
      Value inRow = b.add(column, b.i32(firstColumn)), inLimit = b.less(inRow, op.getColumnLimit());
      for (auto [row, chunk] : llvm::zip_equal(rows, chunks))
        when(b.both(b.less(row.first, op.getRowLimit()), inLimit), [&, address = row.second, chunk = chunk] {
          LLVM::StoreOp::create(b, chunk, place(address, inRow), storeBytes);
        });
    }
  }

private:
  Value place(Value row, Value column) {
    return b.advance(row, b.zeroExtend(b.mul(column, b.i32(elementBytes))));
  }

  void when(Value condition, llvm::function_ref<void()> then) {
    OpBuilder::InsertionGuard guard(b);
    auto branch = scf::IfOp::create(b, condition, /*withElseRegion=*/false);
    b.setInsertionPointToStart(branch.thenBlock());
    then();
  }

  CopyBuilder b;
  StoreTileOp op;
  unsigned elementBytes;
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

  /// How many workgroups a compute unit holds at once if each takes `ldsBytes`.
  static unsigned residentWorkgroups(gpu::GPUFuncOp kernel, const Chip &chip, unsigned ldsBytes) {
    unsigned fit = chip.ldsBytes / ldsBytes;
    auto wavesPerSimd = kernel->getAttrOfType<IntegerAttr>("sluice.waves_per_simd");
    return wavesPerSimd
               ? std::min(fit, unsigned(wavesPerSimd.getInt()) * simdsPerComputeUnit / wavesOf(kernel, chip))
               : fit;
  }

  static FailureOr<LdsTileType> stagingTile(gpu::GPUFuncOp kernel, StoreTileOp store, const Chip &chip,
                                            std::string &reason) {
    auto decline = [&](const llvm::Twine &why) {
      reason = why.str();
      return failure();
    };
    Type element = getElementTypeOrSelf(store.getValues().front().getType());
    unsigned elementBytes = element.getIntOrFloatBitWidth() / 8, waves = wavesOf(kernel, chip);
    unsigned chunk = storeBytes / elementBytes, columns = store.getPanelColumns(), rows = store.getTileRows();
    if (columns % chunk != 0 || chip.waveSize % (columns / chunk) != 0)
      return decline("a row of " + llvm::Twine(columns) +
                     " elements is not a power of two of 16-byte pieces");
    auto isWide = [&](Type type) { return chunk % cast<VectorType>(type).getNumElements() != 0; };
    if (llvm::any_of(store.getValues().getTypes(), isWide))
      return decline("lanes hold more than 16 neighbouring bytes at a time");
    if (waves == 0 || rows % waves != 0 || (rows / waves) % (chip.waveSize / (columns / chunk)) != 0)
      return decline(llvm::Twine(rows) + " rows do not divide into stores of " + llvm::Twine(waves) +
                     " waves");
    // Rows begin on the same bank: without a swizzle all writes of a column would collide.
    auto swizzle =
        XorSwizzleAttr::get(store.getContext(), XorSwizzle::forColumnReads(columns, elementBytes, storeBytes,
                                                                           chip.ldsBanks(storeBytes)));
    auto tile = LdsTileType::get(store.getContext(), rows, columns, element, swizzle);
    unsigned before = arenaBytes(kernel), after = std::max(before, tile.getBytes());
    if (after > chip.ldsBytes ||
        (before != 0 && residentWorkgroups(kernel, chip, after) < residentWorkgroups(kernel, chip, before)))
      return decline("staging takes " + llvm::Twine(tile.getBytes()) + " bytes of LDS where the kernel has " +
                     llvm::Twine(before));
    return tile;
  }
};

} // namespace
} // namespace sluice

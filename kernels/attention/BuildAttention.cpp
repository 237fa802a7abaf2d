//===- BuildAttention.cpp - forward attention, assembled from its parts ---------------------------------===//
//
// Expands sluice.attention: online softmax over tiles of keys, in the form that suits the CDNA3 matrix core.
//
//   RowMap        which rows and keys a workgroup, a wave and a lane have
//   Addresses     where their rows of Q, K, V, O and LSE are in memory
//   HeadColumns   how the columns of a head are divided among tiles and lanes
//   PrefixRows    which of a prefix's rows belong to a sequence
//   Query         Q^T in registers
//   KeyPages      the page table's entries for the keys of a tile, and where their rows are
//   KeyTiles      K and V in LDS
//   OwnTiles      K and V in registers: KeyRegisters, or BlockRegisters if they are in blocks
//   ScoreRules    changes to raw scores: ScoreChanges, then Visibility
//   TileProducts  S^T = K * Q^T and O^T += V^T * P^T, with rows of K and V from functions
//   RowState      the running softmax of a row
//   KeyLoops      the loops over tiles in LDS
//   RegisterLoop  the loop over tiles in registers, and the joining of its waves
//   NextQuery     prefetching the next workgroup's rows of Q
//   Epilogue      O and LSE to memory
//
// A part takes the parts that it needs as arguments, all of them from above it in this list. The order of the
// calls here and inside the parts is the order of the kernel's instructions, except for those that later
// passes move: in another order a kernel still computes the same, with other registers and other times.
//
// Kernels of 32 rows a wave are for many rows: MFMAs of 32x32, with the scores one tile ahead. Kernels of 16
// rows a wave are for few rows: MFMAs of 16x16 and the plain loop. In decode kernels the waves of a workgroup
// have the same 16 rows and divide the keys, which they load into registers.
//
//===----------------------------------------------------------------------------------------------------===//
#include "attention/BlockRegisters.h"
#include "attention/Epilogue.h"
#include "attention/Kernel.h"
#include "attention/KeyLoops.h"
#include "attention/KeyRegisters.h"
#include "attention/NextQuery.h"
#include "attention/PrefixRows.h"
#include "target/RequireChip.h"

#include <memory>
#include <optional>
#include <vector>

namespace sluice {
#define GEN_PASS_DEF_BUILDATTENTION
#include "attention/Passes.h.inc"

using namespace mlir;

namespace {

constexpr unsigned manyRows = 32; // of a wave

/// A wave's registers for O.
unsigned registersOfOutput(AttentionOp op) {
  unsigned columnsOfV = llvm::alignTo(op.getHeadDimV() / op.columnGroups(), op.getWaveRows());
  return op.rowBlocks() * op.getWaveRows() * columnsOfV / MfmaLayout::lanes;
}

/// A wave's registers for Q and O.
unsigned registersOfRows(AttentionOp op) {
  unsigned elementBytes = op.getElementType().getIntOrFloatBitWidth() / 8;
  unsigned ofQuery = op.getHeadDimQk() * elementBytes / 4;
  return op.rowBlocks() * op.getWaveRows() * ofQuery / MfmaLayout::lanes + registersOfOutput(op);
}

/// Whether Q and O leave, of 256 registers, enough for more than a tile: scores of two, or rows in flight.
bool leavesRegisters(AttentionOp op) {
  return registersOfRows(op) <= 136;
}

/// Integers have no NaN or infinity, except by their scales, which are finite, or in blocks kept to the rows
/// that see them (BlockRegisters).
bool isOfIntegers(AttentionOp op) {
  std::optional<Type> type = op.getKvType();
  return op.getKvBlocks() || (type && type->isInteger(8));
}

/// The numbers that bytes of K and V are; null if they are of Q's type. Blocks count bytes.
Type numbersOfKeys(AttentionOp op) {
  if (op.getKvBlocks()) return IntegerType::get(op.getContext(), 8);
  return op.getKvType().value_or(Type());
}

bool isOfBytes(AttentionOp op) {
  return op.getElementType().getIntOrFloatBitWidth() == 8;
}

/// How K and V may have a scale for each key: numbers of 16 bits do not need one, and those of 4 bits have
/// one for each group.
KeyScaling scalingOfKeys(AttentionOp op) {
  if (!(isOfBytes(op) || numbersOfKeys(op)) || op.getKvBlocks() == "u4") return KeyScaling::None;
  return op.wavesDivideKeys() ? KeyScaling::Loaded : KeyScaling::LookUp;
}

/// Whether eight waves of many rows have registers for rows in flight: not with the addresses of pages.
bool eightFetch(AttentionOp op) {
  return op.getWaves() == 8 && leavesRegisters(op) && !op.getPaged();
}

/// Whether V is in LDS in the order in which its product reads it: for many rows. It is transposed once for
/// the workgroup, on its way there, and not by every wave. With wider elements and four waves, whose tiles
/// are smaller, it would arrive too late: one load for each row of a lane makes twice as many.
bool hasValuesByColumns(AttentionOp op) {
  if (op.getWaveRows() != manyRows || !leavesRegisters(op)) return false;
  return isOfBytes(op) || (eightFetch(op) && !op.getKvType());
}

/// How many waves of a SIMD share the registers, if not as many as LDS allows.
std::optional<unsigned> wavesPerSimd(AttentionOp op) {
  if (op.getWaveRows() == manyRows) {
    if (op.getWaves() != 4) return std::nullopt;
    // Of 256 registers, shared with the scores and the operands of the products, which are half as large in
    // FP8.
    if (isOfBytes(op) ? registersOfRows(op) > 160 : !leavesRegisters(op)) return 1;
    // Of 168 registers; pages take some.
    if (!isOfBytes(op) && !op.getPaged() && registersOfRows(op) <= 72) return 3;
    return std::nullopt;
  }
  // Q and O of rows take half of the registers that two waves would share; so do K and V of a tile that is in
  // registers with them.
  if (op.getHeadDimV() / op.columnGroups() >= (op.wavesDivideKeys() ? 192u : 512u)) return 1;
  if (!op.wavesDivideKeys()) return std::nullopt;
  unsigned columns = op.getHeadDimQk() + op.getHeadDimV();
  // Blocks keep as many numbers of K and V as bytes, or half, but make no elements of K.
  return columns * op.getTileKv() <= (op.getKvBlocks() ? 8192u : 4096u) ? 3 : 2;
}

/// Whether a wave has the registers for scores of two tiles.
bool looksAhead(AttentionOp op) {
  std::optional<unsigned> waves = wavesPerSimd(op);
  if (waves == 3) return registersOfRows(op) <= 68;
  return leavesRegisters(op) || (op.getWaveRows() == manyRows && waves == 1);
}

/// Whether Q, O and a tile leave so few registers that nothing may start early.
bool hasFewRegisters(AttentionOp op) {
  return op.getWaveRows() != manyRows || registersOfRows(op) > (wavesPerSimd(op) == 3 ? 64 : 400);
}

/// Whether a wave has registers to keep the addresses of its part of each copy throughout the loop.
bool keepsAddresses(AttentionOp op) {
  // Conversions take registers, and so do pages.
  bool isConverted = op.getKvType() && op.getPaged() && op.getWaves() == 8;
  return !hasFewRegisters(op) && registersOfRows(op) <= 160 && !isConverted;
}

/// Whether O of a wave of many rows takes all its AccVGPRs. The other half holds Q and the data of a tile,
/// but has no room for rows on their way to LDS: copies are direct unless elements are converted, and tiles
/// of K and V, which fill LDS, take turns.
bool holdsOutput(AttentionOp op) {
  constexpr unsigned accVgprs = 256;
  return op.getWaveRows() == manyRows && wavesPerSimd(op) == 1 && registersOfOutput(op) == accVgprs;
}

/// Whether a wave lacks registers for the addresses of all its reads of a tile: it has two blocks of rows, O
/// takes all AccVGPRs, or Q and O of many rows take most registers of two waves of a SIMD.
bool isFull(AttentionOp op) {
  return op.rowBlocks() != 1 || holdsOutput(op) ||
         (op.getWaveRows() == manyRows && !leavesRegisters(op) && wavesPerSimd(op) != 1);
}

/// Whether copies go through registers even if no elements are converted. That takes a quarter of the
/// instructions of direct copies, each of which has a whole line to ask for, and half the LDS.
bool copiesThroughRegisters(AttentionOp op) {
  bool isAlone = wavesPerSimd(op) == 1;
  bool haveRegisters = op.getWaves() == 4 || eightFetch(op);
  return op.getWaveRows() == manyRows && haveRegisters && (isAlone || !isOfBytes(op)) && !holdsOutput(op);
}

class AttentionBuilder {
public:
  AttentionBuilder(gpu::GPUFuncOp kernel, AttentionOp op, const Chip &chip)
      : op(op), chip(chip), b(op.getLoc(), op), arguments(kernel, b), element(op.getElementType()),
        result(op.getOType().value_or(element)), queries(inMemory(element)), tileKv(op.getTileKv()),
        storage(KeyStorage::of(numbersOfKeys(op), queries,
                               /*copiesConvert=*/!op.wavesDivideKeys(), copiesThroughRegisters(op),
                               hasValuesByColumns(op), tileKv)),
        layout{op.getWaveRows(), element.getIntOrFloatBitWidth() / 8},
        math(b, element, layout, chip, holdsOutput(op)) {}

  void build() {
    RowMap map(b, arguments, op.wavesOfRows(), op.rowBlocks(), op.getTileQ(), layout);
    arguments.fetchLines();
    WorkgroupRows workgroup = map.locateWorkgroup();
    b.when(workgroup.any, [&] {
      Value thread = ROCDL::ThreadIdXOp::create(b, b.getI32Type());
      SmallVector<LaneRows> blocks = map.locateLane(workgroup, thread);
      // Values of the wave or workgroup are the same in every block.
      const LaneRows &rows = blocks.front();
      Visibility visibility(b, arguments, rows.sequence, tileKv);
      WaveKeys waveKeys = map.chooseTiles(blocks, visibility);
      KeyRange keys = map.chooseSplit(rows, visibility, tileKv);

      unsigned columnGroups = op.columnGroups();
      HeadColumns columns(op.getHeadDimQk(), op.getHeadDimV(), op.getVInK(), op.getVByColumns(), columnGroups,
                          storage.narrowestPanel(op.getWaves()), layout);
      Value firstColumn;
      if (columnGroups != 1) firstColumn = b.mul(rows.waveOfRows, b.i32(op.getHeadDimV() / columnGroups));
      std::vector<ScoreChanges> changes;
      changes.reserve(blocks.size()); // rules hold references
      SmallVector<ScoreRules> rules;
      SmallVector<Softmax> softmax;
      SmallVector<Addresses> addresses;
      for (auto [index, ofBlock] : llvm::enumerate(blocks)) {
        changes.emplace_back(b, arguments, ofBlock, keys, scalingOfKeys(op), [&, index](Value changing) {
          return map.locateLane(workgroup, b.opaque(thread, changing))[index];
        });
        rules.emplace_back(b, changes.back(), visibility, waveKeys.rows[index], layout, ofBlock.laneGroup);
        softmax.emplace_back(b, math, changes.back().factor(), ofBlock.lane);
        addresses.emplace_back(b, arguments, ofBlock);
      }
      TileProducts products(b, math, element, columns, tileKv, rows.lane, rows.laneRow, rows.laneGroup,
                            firstColumn, /*isFull=*/isFull(op), /*isFinite=*/isOfIntegers(op));
      // The tile after the last one of a split belongs to another split: no wave may see its scores.
      Value waveEnd = waveKeys.end ? b.minS(waveKeys.end, keys.keyLimit) : Value();
      LoopParts parts{b, math, visibility, keys, waveEnd, rules, softmax, products};
      // Locates the rows of a block again: LLVM has no registers to keep them all through the loop.
      auto storeBlock = [&](unsigned index, auto store) {
        LaneRows ofBlock = map.locateLane(workgroup, b.opaque(thread))[index];
        Addresses outputs(b, arguments, ofBlock);
        store(Epilogue(b, arguments, outputs, math, ofBlock, columns.valueReads, changes[index].factor(),
                       result, firstColumn));
      };
      if (op.wavesDivideKeys()) {
        JoinedState state = iterateOverOwnKeys(rows, addresses.front(), columns, parts);
        storeBlock(0, [&](const Epilogue &epilogue) { epilogue.storeRows(state, keys); });
      } else if (hasManyRows()) {
        auto locate = [&](Value changing) {
          return map.locateLane(workgroup, b.opaque(thread, changing)).front();
        };
        RowState state = looksAhead(op) ? iterateAhead(rows, addresses.front(), columns, parts, locate)
                                        : iterate(blocks, addresses, columns, parts).front();
        storeBlock(0, [&](const Epilogue &epilogue) { epilogue.storeTile(state, keys, op.getTileQ()); });
      } else {
        SmallVector<RowState> states = iterate(blocks, addresses, columns, parts);
        for (auto [index, state] : llvm::enumerate(states))
          storeBlock(index,
                     [&, &state = state](const Epilogue &epilogue) { epilogue.storeRows(state, keys); });
      }
    });
  }

private:
  using Side = KeyTiles::Side;

  bool hasManyRows() const { return layout.rows == manyRows; }

  /// FP8 is bytes to everything except the products.
  static Type inMemory(Type type) {
    return type.getIntOrFloatBitWidth() == 8 ? IntegerType::get(type.getContext(), 8) : type;
  }

  std::optional<KeyPages> pagesOf(const LaneRows &rows, const LoopParts &parts) {
    if (!op.getPaged()) return std::nullopt;
    return KeyPages(b, arguments, rows, parts.keys);
  }

  KeyTiles allocate(const KeyCopies &copies, const KeyTiles::Source &source, ArrayRef<Panel> panels,
                    StringRef label) {
    return KeyTiles(b, math, arguments, copies, chip, storage, source, panels, label);
  }

  Value ofKeys(const Addresses &addresses, StringRef side) {
    return addresses.ofKeys(side, storage.type, op.getPaged());
  }

  KeyTiles::Source sourceOfK(const Addresses &addresses) {
    return {Side::k, ofKeys(addresses, "k"), arguments["head_dim_qk"], op.getPaged()};
  }
  KeyTiles::Source sourceOfV(const Addresses &addresses) {
    return {Side::v, ofKeys(addresses, "v"), arguments["head_dim_v"], op.getPaged()};
  }

  Value rowOfQ(const LaneRows &rows, const Addresses &addresses) {
    Value row = addresses.offsetOfRow("q", rows.sequence.firstRow);
    Value q = b.advance(arguments.late("q"), queries, row);
    Value number = b.add(rows.sequence.firstRow, rows.token);
    return readableRow(b, arguments, number, q, op.getHeadDimQk() * queries.getIntOrFloatBitWidth() / 8);
  }

  Query queryOf(const LaneRows &rows, Value q, const HeadColumns &columns) {
    Value unused;
    // Rows in blocks are whole blocks.
    if (!op.getKvBlocks() &&
        package::kernel_cuts_rows(op.getWaveRows(), op.getHeadDimQk(), !op.getVInK() && !op.getVByColumns()))
      unused = b.bitAnd(b.shiftRight(arguments.late("score_flags"), b.i32(package::score_unused_shift)),
                        b.i32(package::score_unused_mask));
    return Query(b, math, columns.keyReads, q, queries, element, rows.laneGroup,
                 arguments.late("head_dim_qk"), unused);
  }

  std::unique_ptr<OwnTiles> elementTiles(const LaneRows &rows, const Addresses &addresses,
                                         const HeadColumns &columns, const KeyPages &pages) {
    KeyRegisters::Source source{ofKeys(addresses, "k"), ofKeys(addresses, "v"), arguments["head_dim_qk"],
                                arguments["head_dim_v"]};
    return std::make_unique<KeyRegisters>(b, math, arguments, pages, rows, columns, source, storage.type,
                                          storage.widened, tileKv, op.getVByColumns());
  }

  std::unique_ptr<OwnTiles> blockTiles(const LaneRows &rows, const Addresses &addresses,
                                       const HeadColumns &columns, const KeyPages &pages,
                                       const KeyBlocks &blocks) {
    BlockRegisters::Source source{ofKeys(addresses, "k"),
                                  ofKeys(addresses, "v"),
                                  arguments["head_dim_qk"],
                                  arguments["head_dim_v"],
                                  {},
                                  {}};
    if (blocks.hasArrays()) {
      source.kScales = addresses.ofKeys("k_groups", "k_scales", b.getI16Type(), op.getPaged());
      source.vScales = addresses.ofKeys("v_groups", "v_scales", b.getI16Type(), op.getPaged());
    }
    return std::make_unique<BlockRegisters>(b, math, arguments, pages, rows, columns, source, blocks, tileKv);
  }

  JoinedState iterateOverOwnKeys(const LaneRows &rows, const Addresses &addresses, const HeadColumns &columns,
                                 const LoopParts &parts) {
    Query query = queryOf(rows, rowOfQ(rows, addresses), columns);
    unsigned keysTogether = op.getVByColumns() ? layout.elements() : 1;
    KeyPages pages(b, arguments, rows, parts.keys, keysTogether);
    std::optional<KeyBlocks> blocks;
    std::unique_ptr<OwnTiles> tiles;
    if (std::optional<StringRef> name = op.getKvBlocks()) {
      blocks.emplace(b, *KeyBlocks::kindOf(*name), element, chip);
      tiles = blockTiles(rows, addresses, columns, pages, *blocks);
    } else {
      tiles = elementTiles(rows, addresses, columns, pages);
    }
    auto loadScales = [&](Value firstKey, Value entries) {
      return loadTileScales(b, arguments, pages, rows, {firstKey, tileKv, op.getPaged()}, entries);
    };
    bool mayScale = scalingOfKeys(op) == KeyScaling::Loaded;
    RowState state = registerKeyLoop(parts, query, pages, *tiles, mayScale ? LoadScales(loadScales) : nullptr,
                                     rows.wave, op.getWaves());
    return joinWaves(b, math, parts.softmax.front(), rows, state, op.getWaves());
  }

  /// The reads of Q of each block of rows that do not fit in the registers of a wave.
  unsigned parkedReads() {
    // Those of a wave's 512 registers for Q and O. The others are for scores, K and V; with fewer of
    // them, LLVM would spill.
    unsigned ofRows = tileKv == 16 ? 376 : 308;
    unsigned ofRead = widestKeyRead * layout.elementBytes / 4;
    unsigned q = op.getHeadDimQk() * layout.elementBytes / 4 / layout.groups();
    unsigned needed = op.rowBlocks() * (q + op.getHeadDimV() / layout.groups());
    return needed <= ofRows ? 0 : llvm::divideCeil(needed - ofRows, op.rowBlocks() * ofRead);
  }

  SmallVector<RowState> iterate(ArrayRef<LaneRows> blocks, ArrayRef<Addresses> addresses,
                                const HeadColumns &columns, const LoopParts &parts) {
    SmallVector<Query> queries;
    for (auto [rows, ofBlock] : llvm::zip_equal(blocks, addresses)) {
      queries.push_back(queryOf(rows, rowOfQ(rows, ofBlock), columns));
      queries.back().cutRest();
    }
    if (unsigned reads = parkedReads()) {
      Value thread = ROCDL::ThreadIdXOp::create(b, b.getI32Type());
      for (Query &query : queries)
        query.park(reads, thread, op.getWaves() * MfmaLayout::lanes);
    }
    std::optional<KeyPages> pages = pagesOf(blocks.front(), parts);
    KeyCopies copies(b, arguments, parts.keys, pages ? &*pages : nullptr);
    KeyTiles k = allocate(copies, sourceOfK(addresses.front()), columns.keyPanels, "k");
    if (op.getVInK()) return plainKeyLoop(parts, queries, copies, k, k);
    KeyTiles v = allocate(copies, sourceOfV(addresses.front()), columns.valuePanels, "v");
    return plainKeyLoop(parts, queries, copies, k, v);
  }

  RowState iterateAhead(const LaneRows &rows, const Addresses &addresses, const HeadColumns &columns,
                        const LoopParts &parts, function_ref<LaneRows(Value changing)> locate) {
    Value q = rowOfQ(rows, addresses); // LLVM would spill a register for its branch after the page table
    std::optional<KeyPages> pages = pagesOf(rows, parts);
    KeyCopies copies(b, arguments, parts.keys, pages ? &*pages : nullptr);
    KeyTiles::Source k = sourceOfK(addresses), v = sourceOfV(addresses);
    Query query = queryOf(rows, q, columns);
    KeyTiles firstK = allocate(copies, k, columns.keyPanels, "first k");
    KeyTiles otherK = allocate(copies, k, columns.keyPanels, "k");
    KeyTiles everyV = allocate(copies, v, columns.valuePanels, "v");
    NextQuery next(b, arguments, layout.rows, op.getTileQ(), op.getHeadDimQk(), queries);
    return aheadKeyLoop(parts, query, copies, firstK, otherK, everyV, [&](Value changing) {
      if (package::kernel_has_rounds(op.getTileQ(), layout.rows)) next.prefetch(locate(changing), changing);
    });
  }

  AttentionOp op;
  const Chip &chip;
  Emitter b;
  Arguments arguments;
  Type element, result, queries; // of Q and the arithmetic; of O; of Q in memory
  unsigned tileKv;
  const KeyStorage storage;
  const MfmaLayout layout;
  TileMath math;
};

struct BuildAttentionPass : impl::BuildAttentionBase<BuildAttentionPass> {
  using BuildAttentionBase::BuildAttentionBase;

  void runOnOperation() override {
    const Chip *target = requireChip(*this, getOperation(), chip);
    if (!target) return signalPassFailure();
    SmallVector<AttentionOp> ops(getOperation().getOps<AttentionOp>());
    for (AttentionOp op : ops) {
      if (llvm::to_vector(getOperation().getArgumentTypes()) != attentionParameterTypes(getContext())) {
        op.emitError() << "the function's parameters are not the attention kernarg table";
        return signalPassFailure();
      }
      unsigned bytes = op.getElementType().getIntOrFloatBitWidth() / 8;
      MfmaShape shape = MfmaLayout{op.getWaveRows(), bytes}.shape();
      if (!target->hasMfma(shape, bytes) || (bytes == 1 && target->fp8 != Fp8Flavour::Fnuz)) {
        op.emitError() << target->name << " has no MFMA of " << shape.rows << "x" << shape.columns << "x"
                       << shape.depth << " for " << op.getElementType();
        return signalPassFailure();
      }
      if (std::optional<unsigned> waves = wavesPerSimd(op))
        getOperation()->setAttr("sluice.waves_per_simd", OpBuilder(op).getI32IntegerAttr(*waves));
      if (hasFewRegisters(op)) getOperation()->setAttr(fewRegisters, OpBuilder(op).getUnitAttr());
      if (!keepsAddresses(op)) getOperation()->setAttr(noAddresses, OpBuilder(op).getUnitAttr());
      if (holdsOutput(op)) getOperation()->setAttr("sluice.tiles_take_turns", OpBuilder(op).getUnitAttr());
      AttentionBuilder(getOperation(), op, *target).build();
      op.erase();
    }
  }
};

} // namespace
} // namespace sluice

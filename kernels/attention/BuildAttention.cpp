//===- BuildAttention.cpp - forward attention, assembled from its parts ---------------------------------===//
//
// Expands sluice.attention: online softmax over tiles of keys, in the form that suits the CDNA3 matrix core.
//
//   Schedule      how registers are used, decided before
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
#include "attention/ChooseSchedule.h"
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

/// How K and V may have a scale for each key: numbers of 16 bits do not need one, and those of 4 bits have
/// one for each group.
KeyScaling scalingOfKeys(AttentionOp op) {
  if (!(isOfBytes(op) || numbersOfKeys(op)) || op.getKvBlocks() == "u4") return KeyScaling::None;
  return op.wavesDivideKeys() ? KeyScaling::Loaded : KeyScaling::LookUp;
}

class AttentionBuilder {
public:
  AttentionBuilder(gpu::GPUFuncOp kernel, AttentionOp op, const Schedule &schedule, const Chip &chip)
      : op(op), schedule(schedule), chip(chip), b(op.getLoc(), op), arguments(kernel, b),
        element(op.getElementType()), result(op.getOType().value_or(element)), queries(inMemory(element)),
        tileKv(op.getTileKv()),
        storage(KeyStorage::of(numbersOfKeys(op), queries,
                               /*copiesConvert=*/!op.wavesDivideKeys(), schedule.copiesThroughRegisters,
                               schedule.valuesByColumns, tileKv)),
        layout{op.getWaveRows(), element.getIntOrFloatBitWidth() / 8},
        math(b, element, layout, chip, schedule.holdsOutput) {}

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
      for (auto [index, blockRows] : llvm::enumerate(blocks)) {
        changes.emplace_back(b, arguments, blockRows, keys, scalingOfKeys(op), [&, index](Value changing) {
          return map.locateLane(workgroup, b.opaque(thread, changing))[index];
        });
        rules.emplace_back(b, changes.back(), visibility, waveKeys.rows[index], layout, blockRows.laneGroup);
        softmax.emplace_back(b, math, changes.back().factor(), blockRows.lane);
        addresses.emplace_back(b, arguments, blockRows);
      }
      TileProducts products(b, math, element, columns, tileKv, rows.lane, rows.laneRow, rows.laneGroup,
                            firstColumn, schedule.isFull, /*isFinite=*/isOfIntegers(op));
      // The tile after the last one of a split belongs to another split: no wave may see its scores.
      Value waveEnd = waveKeys.end ? b.minS(waveKeys.end, keys.keyLimit) : Value();
      LoopParts parts{b, math, visibility, keys, waveEnd, rules, softmax, products};
      // Locates the rows of a block again: LLVM has no registers to keep them all through the loop.
      auto storeBlock = [&](unsigned index, auto store) {
        LaneRows blockRows = map.locateLane(workgroup, b.opaque(thread))[index];
        Addresses outputs(b, arguments, blockRows);
        store(Epilogue(b, arguments, outputs, math, blockRows, columns.valueReads, changes[index].factor(),
                       result, firstColumn));
      };
      if (schedule.loop == KeyLoop::OwnTiles) {
        JoinedState state = iterateOverOwnKeys(rows, addresses.front(), columns, parts);
        storeBlock(0, [&](const Epilogue &epilogue) { epilogue.storeRows(state, keys); });
      } else if (hasManyRows(op)) {
        auto locate = [&](Value changing) {
          return map.locateLane(workgroup, b.opaque(thread, changing)).front();
        };
        RowState state = schedule.loop == KeyLoop::Ahead
                             ? iterateAhead(rows, addresses.front(), columns, parts, locate)
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

  Value sideBase(const Addresses &addresses, StringRef side) {
    return addresses.sideBase(side, storage.type, op.getPaged());
  }

  KeyTiles::Source sourceOfK(const Addresses &addresses) {
    return {Side::k, sideBase(addresses, "k"), arguments["head_dim_qk"], op.getPaged()};
  }
  KeyTiles::Source sourceOfV(const Addresses &addresses) {
    return {Side::v, sideBase(addresses, "v"), arguments["head_dim_v"], op.getPaged()};
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
    KeyRegisters::Source source{sideBase(addresses, "k"), sideBase(addresses, "v"), arguments["head_dim_qk"],
                                arguments["head_dim_v"]};
    return std::make_unique<KeyRegisters>(b, math, arguments, pages, rows, columns, source, storage.type,
                                          storage.widened, tileKv, op.getVByColumns());
  }

  std::unique_ptr<OwnTiles> blockTiles(const LaneRows &rows, const Addresses &addresses,
                                       const HeadColumns &columns, const KeyPages &pages,
                                       const KeyBlocks &blocks) {
    BlockRegisters::Source source{sideBase(addresses, "k"),
                                  sideBase(addresses, "v"),
                                  arguments["head_dim_qk"],
                                  arguments["head_dim_v"],
                                  {},
                                  {}};
    if (blocks.hasArrays()) {
      source.kScales = addresses.sideBase("k_groups", "k_scales", b.getI16Type(), op.getPaged());
      source.vScales = addresses.sideBase("v_groups", "v_scales", b.getI16Type(), op.getPaged());
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

  SmallVector<RowState> iterate(ArrayRef<LaneRows> blocks, ArrayRef<Addresses> addresses,
                                const HeadColumns &columns, const LoopParts &parts) {
    SmallVector<Query> queries;
    for (auto [rows, blockAddresses] : llvm::zip_equal(blocks, addresses)) {
      queries.push_back(queryOf(rows, rowOfQ(rows, blockAddresses), columns));
      queries.back().cutRest();
    }
    if (unsigned reads = schedule.parkedReads) {
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
  const Schedule schedule;
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

  /// The parts that later passes read.
  void tellPasses(const Schedule &schedule) {
    gpu::GPUFuncOp kernel = getOperation();
    Builder b(kernel.getContext());
    if (schedule.wavesPerSimd)
      kernel->setAttr("sluice.waves_per_simd", b.getI32IntegerAttr(int32_t(*schedule.wavesPerSimd)));
    if (schedule.hasFewRegisters) kernel->setAttr(fewRegisters, b.getUnitAttr());
    if (!schedule.keepsAddresses) kernel->setAttr(noAddresses, b.getUnitAttr());
    if (schedule.holdsOutput) kernel->setAttr("sluice.tiles_take_turns", b.getUnitAttr());
  }

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
      FailureOr<Schedule> schedule = scheduleOf(op);
      if (failed(schedule)) return signalPassFailure();
      tellPasses(*schedule);
      AttentionBuilder(getOperation(), op, *schedule, *target).build();
      op.erase();
    }
  }
};

} // namespace
} // namespace sluice

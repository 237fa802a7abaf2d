//===- BuildPackedAttention.cpp - attention for few rows: decode, odd heads, converted caches -----------===//
//
// Expands sluice.attention of 16 rows a wave. The rows of a tile are the tokens of a sequence and the query
// heads that share a KV head together, heads first: a token of a model with 8 heads to a KV head fills half a
// tile, and the keys are read once for all of them (grouped-query attention, Ainslie et al. 2023, arXiv
// 2305.13245). As in BuildAttention.cpp the scores are S^T, with v_mfma_f32_16x16x16, or where Q, K and V are
// FP8 v_mfma_f32_16x16x32.
//
// The keys of a row can be divided among the workgroups of `parts` (split-KV: Dao et al. 2023,
// "Flash-Decoding"): each part computes O and LSE over its keys, in F32 to memory that the caller gives, and
// another kernel merges them. Parts take whole tiles in order; which ones follows from the sequence alone
// where part_tiles is set.
//
// Few rows mean few operations per byte of K and V: memory is what takes the time, and the loop is plain.
// Head dims are divided into panels of a power of two columns, each a tile in LDS with a copy of its own;
// columns past the tensor's head dim are zeros. K and V may be bytes, which are converted when they are read
// from LDS. Where V is the front of the rows of K, one tile serves both.
//
//===----------------------------------------------------------------------------------------------------===//
#include "attention/Builders.h"
#include "attention/NonFinite.h"
#include "attention/ScoreChanges.h"
#include "attention/TileMath.h"
#include "attention/Visibility.h"

#include "llvm/Support/MathExtras.h"

#include <limits>
#include <optional>

using namespace mlir;

namespace sluice {
namespace {

constexpr unsigned laneColumns = 8;                        // of a row of K that a lane reads at a time ...
constexpr unsigned stepColumns = laneColumns * 64 / 16;    // ... and all lane groups together
constexpr unsigned widestPanel = 512, widestValueRead = 8; // columns
constexpr double negativeInfinity = -std::numeric_limits<double>::infinity();

/// Columns of a head that lie in one tile.
struct Panel {
  unsigned first, columns; // of the tile, which may be wider than what is left of the head
};

/// The columns of a head, widest panels first. No panel is narrower than `narrowest`.
SmallVector<Panel> panelsOf(unsigned headDim, unsigned narrowest) {
  SmallVector<Panel> panels;
  for (unsigned first = 0; first < headDim;) {
    unsigned columns = std::min<unsigned>(llvm::bit_floor(headDim - first), widestPanel);
    if (columns < narrowest) columns = narrowest;
    panels.push_back({first, columns});
    first += columns;
  }
  return panels;
}

class PackedBuilder {
public:
  PackedBuilder(gpu::GPUFuncOp kernel, AttentionOp op, const Chip &chip)
      : op(op), chip(chip), b(op.getLoc(), op), argument(kernel, b), element(op.getElementType()),
        result(op.getOType().value_or(element)), queries(inMemory(element)),
        stored(op.getKvType() ? *op.getKvType() : queries), dimQk(op.getHeadDimQk()), dimV(op.getHeadDimV()),
        tileKv(op.getTileKv()), layout{16, element.getIntOrFloatBitWidth() / 8},
        math(b, element, layout, chip), nonFinite(b, math, element) {}

  void build() {
    locateGroup();
    b.when(hasRows, [&] {
      locateRow();
      choosePart();
      store(iterateOverKeys());
    });
  }

private:
  bool converts() const { return stored != queries; }
  /// FP8 is bytes to everything but the products.
  Type inMemory(Type type) const {
    return type.getIntOrFloatBitWidth() == 8 ? IntegerType::get(type.getContext(), 8) : type;
  }
  unsigned storedBytes() const { return stored.getIntOrFloatBitWidth() / 8; }

  void locateGroup() {
    Value x = ROCDL::BlockIdXOp::create(b, b.getI32Type());
    Emitter::Division place =
        b.divide(x, argument["parts"], argument.late("parts_magic"), argument.late("parts_shift"));
    kvHead = place.quotient;
    part = place.rest;
    sequence = readSequence(b, argument, ROCDL::BlockIdZOp::create(b, b.getI32Type()));
    packedRows = b.mul(sequence.rows, argument["group"]);
    groupRow = b.mul(ROCDL::BlockIdYOp::create(b, b.getI32Type()), b.i32(op.getTileQ()));
    hasRows = b.both(b.less(groupRow, packedRows),
                     b.isFalse(b.either(b.less(sequence.rows, argument.late("min_rows")),
                                        b.less(argument.late("max_rows"), sequence.rows))));
  }

  Value tokenOf(Value row) {
    return b.divide(row, argument["group"], argument["group_magic"], argument["group_shift"]).quotient;
  }

  void locateRow() {
    Value thread = ROCDL::ThreadIdXOp::create(b, b.getI32Type());
    lane = b.bitAnd(thread, b.i32(63));
    laneRow = b.bitAnd(lane, b.i32(15));
    laneGroup = b.shiftRight(lane, b.i32(4));
    Value wave = b.waveUniform(b.shiftRight(thread, b.i32(6)));
    Value waveRow = b.add(groupRow, b.mul(wave, b.i32(layout.rows)));
    Value lastRow = b.sub(packedRows, b.i32(1));
    row = b.add(waveRow, laneRow);
    // Rows past the end repeat the last one: they are in bounds, and their results unused.
    Value safeRow = b.minS(row, lastRow);
    token = tokenOf(safeRow);
    qHead = b.add(b.mul(kvHead, argument["group"]), b.sub(safeRow, b.mul(token, argument["group"])));

    auto lastOf = [&](Value first, unsigned count) {
      return b.minS(b.add(first, b.i32(count - 1)), lastRow);
    };
    keys.emplace(b, argument, sequence, tileKv);
    keys->chooseTiles(tokenOf(groupRow), tokenOf(lastOf(groupRow, op.getTileQ())));
    Value firstWaveToken = tokenOf(b.minS(waveRow, lastRow));
    Value lastWaveToken = tokenOf(lastOf(waveRow, layout.rows));
    rows = keys->rowsOf(firstWaveToken, lastWaveToken, token);
    waveKeys = b.select(b.less(waveRow, packedRows), b.add(keys->lastKey(lastWaveToken), b.i32(1)), b.i32(0));
    changes.emplace(b, argument, sequence, /*canChange=*/true);
    changes->setRow(token, qHead, kvHead);
  }

  /// The tiles of this part, [firstTile, endTile).
  void choosePart() {
    Value tiles = keys->tileCount(), parts = argument["parts"];
    Value rounded = b.add(tiles, b.sub(parts, b.i32(1)));
    Value even =
        b.divide(rounded, parts, argument.late("parts_magic"), argument.late("parts_shift")).quotient;
    Value fixed = argument.late("part_tiles");
    Value each = b.select(b.equal(fixed, b.i32(0)), b.maxS(even, argument.late("min_part_tiles")), fixed);
    firstTile = b.minS(b.mul(part, each), tiles);
    endTile = b.minS(b.add(firstTile, each), tiles);
    // Rows of keys behind the last tile are another part's, or would be copied for nobody.
    Value endOfTiles = b.add(keys->keyOfTile(b.sub(endTile, b.i32(1))), b.i32(tileKv));
    keyLimit = b.select(b.less(firstTile, endTile), b.minS(sequence.keys, endOfTiles), b.i32(0));
  }

  Value strideProduct(Value count, StringRef stride) {
    return b.mul(b.zeroExtend(count), argument.late(stride));
  }

  /// Row 0 of the KV head: of the sequence, or with pages of page 0.
  Value keyBase(StringRef side) {
    Value pages = argument.late("page_table");
    Value ofSequence = b.branch(
        b.isNull(pages),
        [&] {
          return SmallVector<Value>{b.add(strideProduct(sequence.batch, (side + "_batch_stride").str()),
                                          strideProduct(sequence.firstKey, (side + "_token_stride").str()))};
        },
        [&] { return SmallVector<Value>{b.i64(0)}; })[0];
    Value offset = b.add(ofSequence, strideProduct(kvHead, (side + "_head_stride").str()));
    return b.advance(argument.late(side), stored, offset);
  }

  /// This lane's row of a tensor of rows.
  Value rowOffset(StringRef tensor, Value firstRow) {
    Value offset = b.add(strideProduct(sequence.batch, (tensor + "_batch_stride").str()),
                         strideProduct(b.add(firstRow, token), (tensor + "_token_stride").str()));
    return b.add(offset, strideProduct(qHead, (tensor + "_head_stride").str()));
  }

  /// Q^T as B fragments, in the order of the columns of K.
  void loadQuery() {
    Value base = b.advance(argument.late("q"), queries, rowOffset("q", sequence.firstRow));
    Value limit = argument.late("head_dim_qk");
    for (unsigned first = 0; first < dimQk; first += stepColumns) {
      unsigned columns = dimQk - first < stepColumns ? laneColumns / 2 : laneColumns;
      auto type = columns == layout.elements() ? math.fragment : VectorType::get(columns, element);
      Value column = b.add(b.i32(first), b.mul(laneGroup, b.i32(columns)));
      Value loaded = b.branch(
          b.less(column, limit),
          [&] {
            return SmallVector<Value>{LLVM::LoadOp::create(b, type, b.advance(base, queries, column),
                                                           /*alignment=*/layout.elementBytes * columns)};
          },
          [&] { return SmallVector<Value>{arith::ConstantOp::create(b, b.getZeroAttr(type))}; })[0];
      llvm::append_range(query, fragmentsOf(loaded, columns));
    }
  }

  /// Of a row of Q or K, as memory has it.
  SmallVector<Value> fragmentsOf(Value read, unsigned columns) {
    if (columns == layout.elements()) return {b.bitcast(math.fragment, read)};
    SmallVector<Value> fragments;
    for (unsigned part = 0; part < columns; part += layout.elements())
      fragments.push_back(b.slice(read, part, layout.elements()));
    return fragments;
  }

  /// A tile for each panel of K or V.
  struct Side {
    StringRef name;
    Value base;
    SmallVector<Panel> panels;
    SmallVector<Value> tiles;
  };

  Side allocate(StringRef name, unsigned headDim) {
    // Each wave copies at least one instruction of a tile: a dword per lane. Of shorter rows, one instruction
    // would copy so many that finding their pages costs more than copying zeros.
    constexpr unsigned shortestRowBytes = 64;
    unsigned narrowest = std::max(shortestRowBytes, op.getWaves() * 64 * 4 / tileKv) / storedBytes();
    Side side{name, keyBase(name), panelsOf(headDim, narrowest), {}};
    unsigned readBytes = laneColumns * storedBytes();
    for (auto [index, panel] : llvm::enumerate(side.panels)) {
      XorSwizzle swizzle;
      if (name == "k")
        swizzle =
            XorSwizzle::forColumnReads(panel.columns, storedBytes(), readBytes, chip.ldsBanks(readBytes));
      auto type = LdsTileType::get(b.getContext(), tileKv, panel.columns, stored,
                                   XorSwizzleAttr::get(b.getContext(), swizzle));
      auto alloc = LdsAllocOp::create(b, type);
      alloc.setLabel((name + (index == 0 ? "" : std::to_string(index))).str());
      side.tiles.push_back(alloc.getTile());
    }
    return side;
  }

  /// Where a column of a row of K begins, which is the first of a pack if there are packs.
  Value packedColumn(unsigned column) {
    Value log2 = argument["k_pack_log2"], pack = b.shiftRight(b.i32(column), log2);
    Value inPack = b.sub(b.i32(column), b.shiftLeft(pack, log2));
    return b.add(b.mul(b.zeroExtend(pack), argument["k_pack_stride"]), b.zeroExtend(inPack));
  }

  SmallVector<Value> copy(KeyCopies &copies, const Side &side, Value headDim, Value firstKey) {
    SmallVector<Value> tokens;
    for (auto [panel, tile] : llvm::zip_equal(side.panels, side.tiles)) {
      Value base =
          b.advance(side.base, stored, side.name == "k" ? packedColumn(panel.first) : b.i64(panel.first));
      Value columns = b.maxS(b.sub(headDim, b.i32(panel.first)), b.i32(0));
      tokens.push_back(copies.copy(side.name, base, firstKey, tile, columns));
    }
    return tokens;
  }

  /// Returns the row maximum, the row sum of this lane group, and the tiles of O^T.
  SmallVector<Value> iterateOverKeys() {
    loadQuery();
    KeyCopies copies(b, argument, sequence, op, keyLimit);
    bool oneTile = op.getVInK();
    Side k = allocate("k", dimQk), v = oneTile ? k : allocate("v", dimV);
    valuePanels = v.panels;
    Value limitQk = argument["head_dim_qk"], limitV = argument["head_dim_v"];

    SmallVector<Value> initial{b.f32(negativeInfinity), b.f32(0)};
    initial.append(dimV / layout.rows, math.zeros());
    auto loop = scf::ForOp::create(b, firstTile, endTile, b.i32(1), initial);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    Value tileKey = keys->keyOfTile(loop.getInductionVar());
    SmallVector<Value> kCopies = copy(copies, k, limitQk, tileKey), vCopies;
    if (!oneTile) vCopies = copy(copies, v, limitV, tileKey);
    Value active = b.less(tileKey, waveKeys);
    Value maximum = loop.getRegionIterArgs()[0], sum = loop.getRegionIterArgs()[1];
    SmallVector<Value> output(loop.getRegionIterArgs().drop_front(2));

    for (Value token : kCopies)
      AsyncWaitOp::create(b, token);
    // The new maximum and sum, the factor of what is relative to the old maximum, the fragments of P^T.
    SmallVector<Value> first = b.branch(
        active,
        [&] {
          SmallVector<Value> blocks = changes->apply(scores(k), tileKey, layout, laneGroup);
          return softmax(keys->hide(blocks, tileKey, rows, layout, laneGroup), maximum, sum);
        },
        [&] {
          SmallVector<Value> unchanged{maximum, sum, b.f32(1)};
          unchanged.append(tileKv / layout.depth(), b.undef(math.fragment));
          return unchanged;
        });
    for (Value token : vCopies)
      AsyncWaitOp::create(b, token);
    SmallVector<Value> carried = b.branch(
        active,
        [&] {
          return accumulateTile(v, math.rescale(output, first[2]), ArrayRef<Value>(first).drop_front(3),
                                tileKey);
        },
        [&] { return output; });
    BarrierOp::create(b);
    SmallVector<Value> next{first[0], first[1]};
    llvm::append_range(next, carried);
    scf::YieldOp::create(b, next);
    return SmallVector<Value>(loop.getResults());
  }

  Value read(Value tile, unsigned columns, Value key, Value column) {
    Value value = LdsReadOp::create(b, VectorType::get(columns, stored), tile, key, column);
    return converts() ? math.widen(value) : value;
  }

  /// Element r of block n belongs to key 16 * n + 4 * laneGroup + r of the tile.
  SmallVector<Value> scores(const Side &k) {
    SmallVector<Value> blocks(tileKv / layout.rows, math.zeros());
    unsigned fragment = 0;
    for (auto [panel, tile] : llvm::zip_equal(k.panels, k.tiles)) {
      for (unsigned first = 0; first < panel.columns && panel.first + first < dimQk; first += stepColumns) {
        unsigned columns = dimQk - panel.first - first < stepColumns ? laneColumns / 2 : laneColumns;
        Value column = b.add(b.i32(first), b.mul(laneGroup, b.i32(columns)));
        SmallVector<SmallVector<Value>> keysRead;
        for (unsigned block = 0; block < blocks.size(); ++block)
          keysRead.push_back(
              fragmentsOf(read(tile, columns, b.add(b.i32(layout.rows * block), laneRow), column), columns));
        for (unsigned part = 0; part < columns / layout.elements(); ++part, ++fragment)
          for (auto [sum, fragments] : llvm::zip_equal(blocks, keysRead))
            sum = math.mfma(fragments[part], query[fragment], sum);
      }
    }
    return math.settle(blocks);
  }

  SmallVector<Value> softmax(SmallVector<Value> blocks, Value maximum, Value sum) {
    Value larger = b.maxF(maximum, math.maximum(blocks, lane));
    Value reference = b.select(b.equalF(larger, b.f32(negativeInfinity)), b.f32(0), larger);
    Value factor = b.exp2(b.mulF(b.subF(maximum, reference), changes->factor()));
    Value offset = b.negF(b.mulF(reference, changes->factor()));
    offset = math.centre(blocks, offset, [&] { return reference; });
    Value total = b.mulF(sum, factor);
    SmallVector<Value> fragments = math.exponentiate(blocks, changes->factor(), offset, total);
    SmallVector<Value> results{larger, total, factor};
    llvm::append_range(results, fragments);
    return results;
  }

  /// Columns of V that a lane reads together, and what they become.
  struct ValueRead {
    unsigned panel, first, columns; // the first column of lane 0 in the panel; columns of each lane
    unsigned headColumn;            // the first column of lane 0 in the head
  };
  /// One for `columns` tiles of O^T: lane i's column number m is column i of tile m, with its place in the
  /// head at headColumn + columns * i + m.
  SmallVector<ValueRead> valueReads() const {
    SmallVector<ValueRead> reads;
    for (auto [index, panel] : llvm::enumerate(valuePanels))
      for (unsigned first = 0; first < panel.columns && panel.first + first < dimV;) {
        unsigned left = std::min(panel.columns - first, dimV - panel.first - first) / layout.rows;
        unsigned columns = std::min<unsigned>(llvm::bit_floor(left), widestValueRead);
        reads.push_back({unsigned(index), first, columns, panel.first + first});
        first += columns * layout.rows;
      }
    return reads;
  }

  SmallVector<Value> accumulate(const Side &v, ArrayRef<Value> output, ArrayRef<Value> probabilities) {
    SmallVector<Value> sums(output);
    for (auto [block, p] : llvm::enumerate(probabilities)) {
      unsigned tileOfOutput = 0;
      for (const ValueRead &part : valueReads()) {
        Value column = b.add(b.i32(part.first), b.mul(laneRow, b.i32(part.columns)));
        SmallVector<Value> rowsRead; // of V, in the order of the keys of p
        for (unsigned k = 0; k < layout.elements(); ++k) {
          Value key = b.add(b.i32(layout.rowOf(block * layout.elements() + k)), b.mul(laneGroup, b.i32(4)));
          rowsRead.push_back(read(v.tiles[part.panel], part.columns, key, column));
        }
        for (Value a : math.transpose(rowsRead)) {
          sums[tileOfOutput] = math.mfma(a, p, sums[tileOfOutput]);
          ++tileOfOutput;
        }
      }
    }
    return sums;
  }

  SmallVector<Value> accumulateTile(const Side &v, ArrayRef<Value> output, ArrayRef<Value> probabilities,
                                    Value tileKey) {
    return nonFinite.choose(
        b.either(keys->mayHide(tileKey, rows), changes->mayHide()), [&] { return hasNonFinite(v); }, output,
        [&] { return accumulateNonFinite(v, output, probabilities, tileKey); },
        [&](ArrayRef<Value> sums) { return accumulate(v, sums, probabilities); });
  }

  Value hasNonFinite(const Side &v) {
    Value any = b.boolean(false);
    for (auto [panel, tile] : llvm::zip_equal(v.panels, v.tiles)) {
      if (panel.first >= dimV) continue;
      Value isIn =
          nonFinite.isIn({tileKv, panel.columns}, lane, [&](unsigned columns, Value key, Value column) {
            return read(tile, columns, key, column);
          });
      any = b.either(any, isIn);
    }
    return any;
  }

  SmallVector<Value> accumulateNonFinite(const Side &v, ArrayRef<Value> output, ArrayRef<Value> probabilities,
                                         Value tileKey) {
    SmallVector<Value> level(tileKv / layout.rows, math.zeros());
    SmallVector<Value> changed = changes->apply(level, tileKey, layout, laneGroup);
    SmallVector<Value> visible = nonFinite.visible(keys->hide(changed, tileKey, rows, layout, laneGroup));
    SmallVector<Value> sums;
    for (const ValueRead &part : valueReads()) {
      Value column = b.add(b.i32(part.first), b.mul(laneRow, b.i32(part.columns)));
      sums.append(nonFinite.accumulate(output.slice(sums.size(), part.columns), probabilities, visible,
                                       column, b.mul(laneGroup, b.i32(4)),
                                       [&](unsigned columns, Value key, Value place) {
                                         return read(v.tiles[part.panel], columns, key, place);
                                       }));
    }
    return sums;
  }

  void store(ArrayRef<Value> sums) {
    Value sum = math.overGroups(sums[1], lane, [&](Value x, Value y) { return b.addF(x, y); });
    Value partial = argument.flag(package::score_partial);
    Value sinks = argument.late("sink_logits");
    Value sinkOfHead = b.advance(sinks, b.getF32Type(), b.zeroExtend(qHead));
    // Parts leave the sink to whoever merges them.
    Value hasSink = b.isFalse(b.either(b.isNull(sinks), partial));
    TileMath::Result finished =
        math.finish(sums[0], changes->factor(), sum, hasSink, sinkOfHead, argument.late("lse_per_log2"));
    Value weight = argument.scaled(finished.weight, "v_scale", package::score_v_scale_heads, kvHead);
    Value firstRow = b.select(partial, b.i32(0), sequence.firstRow);
    Value rowExists = b.less(row, packedRows);
    // A part without keys has no weight in the merge, whatever its row of O is.
    Value matters = b.both(rowExists, b.isFalse(b.both(partial, b.isFalse(b.less(firstTile, endTile)))));
    b.when(matters, [&] {
      Value offset = rowOffset("o", firstRow);
      offset = b.add(offset, strideProduct(part, "o_part_stride"));
      Value limit = argument.late("head_dim_v");
      auto storeAs = [&](Type type) {
        return [&, type] {
          storeRow(sums.drop_front(2), weight, b.advance(argument.late("o"), type, offset), type, limit);
          return SmallVector<Value>();
        };
      };
      b.branch(partial, storeAs(b.getF32Type()), storeAs(result));
    });
    Value lse = argument.late("lse");
    Value stores = b.both(b.both(rowExists, b.equal(laneGroup, b.i32(0))), b.isFalse(b.isNull(lse)));
    b.when(stores, [&] {
      Value offset = b.add(rowOffset("lse", firstRow), strideProduct(part, "lse_part_stride"));
      LLVM::StoreOp::create(b, finished.lse, b.advance(lse, b.getF32Type(), offset), /*alignment=*/4);
    });
  }

  /// A lane holds, of each read of V, 4 * columns neighbouring columns from 4 * columns * laneGroup on:
  /// register r of tile m is column columns * r + m of them.
  void storeRow(ArrayRef<Value> output, Value weight, Value base, Type type, Value limit) {
    unsigned tile = 0;
    for (const ValueRead &part : valueReads()) {
      SmallVector<Value> elements;
      for (unsigned r = 0; r < 4; ++r)
        for (unsigned m = 0; m < part.columns; ++m)
          elements.push_back(b.mulF(b.extract(output[tile + m], r), weight));
      tile += part.columns;
      unsigned atATime = std::min<unsigned>(16 * 8 / type.getIntOrFloatBitWidth(), elements.size());
      for (unsigned first = 0; first < elements.size(); first += atATime) {
        Value chunk =
            b.pack(VectorType::get(atATime, b.getF32Type()), ArrayRef<Value>(elements).slice(first, atATime));
        if (!type.isF32()) chunk = arith::TruncFOp::create(b, VectorType::get(atATime, type), chunk);
        Value column = b.add(b.i32(part.headColumn + first), b.mul(laneGroup, b.i32(4 * part.columns)));
        b.when(b.less(column, limit), [&] {
          LLVM::StoreOp::create(b, chunk, b.advance(base, type, column),
                                /*alignment=*/atATime * type.getIntOrFloatBitWidth() / 8);
        });
      }
    }
  }

  AttentionOp op;
  const Chip &chip;
  Emitter b;
  Arguments argument;
  Type element, result; // of Q and the arithmetic; of O
  Type queries, stored; // of Q, and of K and V, in memory
  unsigned dimQk, dimV, tileKv;
  const MfmaLayout layout;
  TileMath math;
  NonFinite nonFinite;

  Sequence sequence;
  Value kvHead, part, packedRows, groupRow, hasRows;
  Value lane, laneRow, laneGroup; // lane % 16 is the row within the wave and the key in a block of K
  Value row, token, qHead;        // this lane's, the latter two of an existing row
  std::optional<Visibility> keys;
  std::optional<ScoreChanges> changes;
  Visibility::Rows rows;
  Value waveKeys, firstTile, endTile, keyLimit;
  SmallVector<Value> query;
  SmallVector<Panel> valuePanels;
};

} // namespace

void buildPackedAttention(gpu::GPUFuncOp kernel, AttentionOp op, const Chip &chip) {
  // Q and O of a row take half of the registers that two waves of a SIMD would share.
  constexpr unsigned mostColumns = 512;
  if (op.getHeadDimV() >= mostColumns)
    kernel->setAttr("sluice.waves_per_simd", OpBuilder(op).getI32IntegerAttr(1));
  PackedBuilder(kernel, op, chip).build();
}

} // namespace sluice

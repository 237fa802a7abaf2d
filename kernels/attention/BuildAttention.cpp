//===- BuildAttention.cpp - forward attention as tiles, softmax and MFMA fragments ----------------------===//
//
// Expands sluice.attention. The algorithm is online softmax over tiles of keys (Milakov and Gimelshein 2018,
// arXiv 1805.02867; Dao et al. 2022, arXiv 2205.14135), in the form that suits the CDNA3 matrix core:
//
//   S^T = K * Q^T     K from LDS is operand A, Q^T stays in registers as operand B
//   P^T = exp2(scale * log2e * S^T - m)
//   O^T += V^T * P^T  V^T from LDS is operand A, P^T is operand B
//
// v_mfma_f32_32x32x8: lane l holds A[i = l%32][k = 4*(l/32) + 0..3], B[k = 4*(l/32) + 0..3][j = l%32] and
// D[i = 8*(r/4) + 4*(l/32) + r%4][j = l%32] in register r = 0..15. So with S transposed, a lane holds the
// scores of one query row, and four consecutive D registers are, packed, exactly the B fragment of eight
// keys: P never leaves its registers. The two halves of a wave hold the same 32 rows and different keys.
//
// The order of the head dimension inside K * Q^T is free if Q and K agree: a lane reads 8 consecutive
// elements (ds_read_b128) and uses them for two MFMAs. K tiles are XOR-swizzled in chunks of 8 elements, as
// the banks of the chip want it (period 8 rows with 32 banks): these reads are conflict-free. V tiles are
// read along their rows and need no swizzle.
//
// V^T needs four keys of one column per lane. A lane reads headDim/32 neighbouring columns of four rows and
// transposes them with v_perm_b32. MFMA m then computes the columns (headDim/32) * i + m, so that a lane ends
// up with neighbouring columns of O and stores 16 bytes at a time.
//
// Kernels of 16 rows a wave are built by BuildPackedAttention.cpp.
//
// A row whose keys are all masked so far has m = -inf; exponents are taken relative to 0 then, so that no
// (-inf) - (-inf) arises. Masks are applied on the tiles that need them, one uniform branch per tile and
// wave.
//
//===----------------------------------------------------------------------------------------------------===//
#include "attention/Arguments.h"
#include "attention/Builders.h"
#include "attention/NonFinite.h"
#include "attention/ScoreChanges.h"
#include "attention/TileMath.h"
#include "attention/Visibility.h"
#include "target/RequireChip.h"

#include <limits>
#include <optional>

namespace sluice {
#define GEN_PASS_DEF_BUILDATTENTION
#include "attention/Passes.h.inc"

using namespace mlir;

namespace {

constexpr unsigned waveRows = 32; // query rows of a wave = columns of S^T
constexpr MfmaLayout layout{waveRows};
constexpr double negativeInfinity = -std::numeric_limits<double>::infinity();

class AttentionBuilder {
public:
  AttentionBuilder(gpu::GPUFuncOp kernel, AttentionOp op, const Chip &chip)
      : op(op), chip(chip), b(op.getLoc(), op), argument(kernel, b), element(op.getElementType()),
        headDim(op.getHeadDimQk()), tileKv(op.getTileKv()), columnsPerLane(headDim / waveRows),
        math(b, element, layout, chip), nonFinite(b, math, element), chunk(VectorType::get(8, element)) {}

  void build() {
    locateGroup();
    b.when(hasRows, [&] {
      locateWave();
      SmallVector<Value> result = iterateOverKeys();
      store(result);
    });
  }

private:
  using ArgumentSource = Value (Arguments::*)(StringRef) const;

  /// The head's rows of this sequence, for a tensor of the kernarg table.
  Value headBase(StringRef tensor, Value head, Value firstRow, Type type,
                 ArgumentSource source = &Arguments::operator[]) {
    auto get = [&](StringRef suffix) { return (argument.*source)((tensor + suffix).str()); };
    Value offset = b.add(b.mul(b.zeroExtend(head), get("_head_stride")),
                         b.mul(b.zeroExtend(firstRow), get("_token_stride")));
    // The batch stride of pages is none.
    if (!(op.getPaged() && (tensor == "k" || tensor == "v")))
      offset = b.add(offset, b.mul(b.zeroExtend(sequence.batch), get("_batch_stride")));
    return b.advance(get(""), type, offset);
  }

  void locateGroup() {
    qHead = ROCDL::BlockIdXOp::create(b, b.getI32Type());
    groupRow = b.mul(ROCDL::BlockIdYOp::create(b, b.getI32Type()), b.i32(op.getTileQ()));
    sequence = readSequence(b, argument, ROCDL::BlockIdZOp::create(b, b.getI32Type()));
    hasRows = b.both(b.less(groupRow, sequence.rows),
                     b.isFalse(b.either(b.less(sequence.rows, argument.late("min_rows")),
                                        b.less(argument.late("max_rows"), sequence.rows))));
  }

  void locateWave() {
    Value thread = ROCDL::ThreadIdXOp::create(b, b.getI32Type());
    lane = b.bitAnd(thread, b.i32(63));
    Value wave = b.waveUniform(b.shiftRight(thread, b.i32(6)));
    Value laneColumn = b.bitAnd(lane, b.i32(31));
    half = b.shiftRight(lane, b.i32(5));
    Value waveRow = b.add(groupRow, b.mul(wave, b.i32(waveRows)));
    row = b.add(waveRow, laneColumn);
    keyRow = laneColumn;

    // The rows of a workgroup say which tiles it needs, the last row of a wave up to which of them it works.
    keys.emplace(b, argument, sequence, tileKv);
    Value lastRow = b.sub(sequence.rows, b.i32(1));
    keys->chooseTiles(groupRow, b.minS(b.add(groupRow, b.i32(op.getTileQ() - 1)), lastRow));
    tiles = keys->tileCount();
    Value lastWaveRow = b.minS(b.add(waveRow, b.i32(waveRows - 1)), lastRow);
    rows = keys->rowsOf(waveRow, lastWaveRow, row);
    Value keysIfAny = b.add(keys->lastKey(lastWaveRow), b.i32(1));
    waveKeys = b.select(b.less(waveRow, sequence.rows), keysIfAny, b.i32(0));
    // Rows of keys behind the last tile would be copied for nobody.
    Value endOfTiles = b.add(keys->keyOfTile(b.sub(tiles, b.i32(1))), b.i32(tileKv));
    keyLimit = b.minS(sequence.keys, endOfTiles);

    kvHead =
        b.divide(qHead, argument.late("group"), argument.late("group_magic"), argument.late("group_shift"))
            .quotient;
    changes.emplace(b, argument, sequence, op.getEveryChange());
    changes->setRow(row, qHead, kvHead);
  }

  /// Q^T as B fragments. Rows past the end repeat the last one: they are in bounds, and their results unused.
  void loadQuery() {
    Value safeRow = b.minS(row, b.sub(sequence.rows, b.i32(1)));
    Value base = b.advance(headBase("q", qHead, sequence.firstRow, element), element,
                           b.mul(b.signExtend(safeRow), argument["q_token_stride"]));
    for (unsigned step = 0; step < headDim / 16; ++step) {
      Value column = b.add(b.i32(step * 16), b.mul(half, b.i32(8)));
      Value eight = LLVM::LoadOp::create(b, chunk, b.advance(base, element, column), /*alignment=*/16);
      query.push_back(b.slice(eight, 0, 4));
      query.push_back(b.slice(eight, 4, 4));
    }
  }

  /// What a wave knows of its rows when it begins a tile of keys. The scores of that tile are computed,
  /// changed and masked, and the maximum includes them: they were the by-product of the tile before.
  struct RowState {
    Value maximum; // of the scores so far, this tile included
    Value offset;  // -maximum * factor of the scores, or 0 while no key is visible
    Value factor;  // takes sums relative to the maximum before this tile to `maximum`
    Value sum;     // of this half of the wave, without this tile, relative to the maximum before it
    SmallVector<Value> scores; // S^T, one accumulator for every 32 keys
    SmallVector<Value> output; // O^T without this tile, relative to the maximum before it

    SmallVector<Value> flatten() const {
      SmallVector<Value> values{maximum, offset, factor, sum};
      llvm::append_range(values, scores);
      llvm::append_range(values, output);
      return values;
    }
  };
  RowState unflatten(ValueRange values) const {
    unsigned blocks = tileKv / 32;
    return {values[0],
            values[1],
            values[2],
            values[3],
            SmallVector<Value>(values.slice(4, blocks)),
            SmallVector<Value>(values.drop_front(4 + blocks))};
  }

  /// Returns the row maximum, the row sum of this half of the wave, and the tiles of O^T.
  SmallVector<Value> iterateOverKeys() {
    MLIRContext *context = b.getContext();
    unsigned keyBytes = 16, elementBytes = element.getIntOrFloatBitWidth() / 8; // a lane's read of a row of K
    auto swizzle = XorSwizzle::forColumnReads(headDim, elementBytes, keyBytes, chip.ldsBanks(keyBytes));
    auto kTileType =
        LdsTileType::get(context, tileKv, headDim, element, XorSwizzleAttr::get(context, swizzle));
    auto vTileType = LdsTileType::get(context, tileKv, headDim, element, XorSwizzleAttr::get(context, 0, 0));
    KeyCopies copies(b, argument, sequence, op, keyLimit);
    Value kBase = headBase("k", kvHead, sequence.firstKey, element);
    Value vBase = headBase("v", kvHead, sequence.firstKey, element);
    auto copyKeys = [&](Value firstKey, Value tile) { return copies.copy("k", kBase, firstKey, tile); };

    // The scores of the first tile stand before the loop: inside it the matrix core computes those of the
    // next tile while the vector unit exponentiates those of this one.
    loadQuery();
    auto allocate = [&](LdsTileType type, StringRef label) {
      auto alloc = LdsAllocOp::create(b, type);
      alloc.setLabel(label);
      return alloc.getTile();
    };
    Value firstTile = allocate(kTileType, "first k");
    kTile = allocate(kTileType, "k");
    vTile = allocate(vTileType, "v");
    Value keyOfFirst = keys->keyOfTile(b.i32(0));
    Value firstCopy = copyKeys(keyOfFirst, firstTile);
    AsyncWaitOp::create(b, firstCopy);
    RowState initial;
    initial.sum = b.f32(0);
    initial.output.append(columnsPerLane, math.zeros());
    initial.scores = finishScores(scores(firstTile), keyOfFirst);
    includeScores(initial, b.f32(negativeInfinity), b.less(keyOfFirst, waveKeys));

    auto loop = scf::ForOp::create(b, b.i32(0), tiles, b.i32(1), initial.flatten());
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    Value firstKey = keys->keyOfTile(loop.getInductionVar());
    Value nextKey = keys->keyOfTile(b.add(loop.getInductionVar(), b.i32(1)));
    Value kCopy = copyKeys(nextKey, kTile);
    Value vCopy = copies.copy("v", vBase, firstKey, vTile);
    Value active = b.less(firstKey, waveKeys), nextActive = b.less(nextKey, waveKeys);
    RowState state = unflatten(loop.getRegionIterArgs());

    AsyncWaitOp::create(b, kCopy);
    // The new sum, the next scores, the fragments of P^T.
    unsigned blocks = state.scores.size();
    SmallVector<Value> first = b.branch(
        active,
        [&] {
          RowState centred = centre(state);
          return b.branch(
              nextActive,
              [&] {
                SmallVector<Value> nextScores = scores(kTile);
                return exponentiate(centred, nextScores);
              },
              [&] {
                // The last tile of the wave. An offset that looks different keeps the code generator from
                // sharing the exponents of both sides in front of the branch, where no MFMA hides them.
                RowState last = centred;
                last.offset = b.opaque(centred.offset);
                return exponentiate(last, SmallVector<Value>(blocks, b.undef(math.accumulator)));
              });
        },
        [&] {
          SmallVector<Value> unchanged{state.sum};
          unchanged.append(blocks, b.undef(math.accumulator));
          unchanged.append(tileKv / layout.depth(), b.undef(math.fragment));
          return unchanged;
        });
    RowState next;
    next.sum = first[0];
    ArrayRef<Value> nextScores = ArrayRef<Value>(first).slice(1, blocks);
    ArrayRef<Value> probabilities = ArrayRef<Value>(first).drop_front(1 + blocks);

    AsyncWaitOp::create(b, vCopy);
    SmallVector<Value> carried = b.branch(
        active,
        [&] {
          next.scores = finishScores(nextScores, nextKey);
          next.output = math.rescale(state.output, state.factor);
          return accumulateTile(next, probabilities, state.maximum, firstKey, nextActive).flatten();
        },
        [&] {
          // The wave is done: its scores would only take registers.
          RowState unchanged = state;
          unchanged.sum = next.sum;
          unchanged.offset = unchanged.factor = b.undef(b.getF32Type());
          unchanged.scores.assign(blocks, b.undef(math.accumulator));
          return unchanged.flatten();
        });
    BarrierOp::create(b);
    scf::YieldOp::create(b, carried);
    RowState last = unflatten(loop.getResults());
    SmallVector<Value> results{last.maximum, last.sum};
    llvm::append_range(results, last.output);
    return results;
  }

  /// The raw scores of this lane's row against the keys of a tile: element r of block n belongs to key
  /// 32 * n + layout.rowOf(r) + 4 * half of the tile.
  SmallVector<Value> scores(Value tile) {
    SmallVector<Value> blocks(tileKv / 32, math.zeros());
    for (unsigned step = 0; step < headDim / 16; ++step) {
      Value column = b.add(b.i32(step * 16), b.mul(half, b.i32(8)));
      SmallVector<Value> read;
      for (unsigned block = 0; block < blocks.size(); ++block)
        read.push_back(LdsReadOp::create(b, chunk, tile, b.add(b.i32(32 * block), keyRow), column));
      // The blocks of 32 keys take turns: consecutive MFMAs then do not wait for one another's result.
      for (unsigned part = 0; part < 2; ++part)
        for (auto [sum, eight] : llvm::zip_equal(blocks, read))
          sum = math.mfma(b.slice(eight, 4 * part, 4), query[2 * step + part], sum);
    }
    return blocks;
  }

  SmallVector<Value> finishScores(ArrayRef<Value> blocks, Value firstKey) {
    return keys->hide(changes->apply(blocks, firstKey, layout, half), firstKey, rows, layout, half);
  }

  /// Completes `state`, whose scores are new, with the maximum and what follows from it. If there are no
  /// scores because the wave is done, the maximum stays.
  void includeScores(RowState &state, Value maximumBefore, Value any) {
    Value tileMaximum = math.maximum(state.scores, lane);
    state.maximum = b.select(any, b.maxF(maximumBefore, tileMaximum), maximumBefore);
    Value reference = finiteMaximum(state.maximum);
    state.offset = b.negF(b.mulF(reference, changes->factor()));
    // From the difference: exactly 1 where the maximum stays, however the offset was rounded.
    state.factor = b.exp2(b.mulF(b.subF(maximumBefore, reference), changes->factor()));
  }

  /// `state` with scores relative to the maximum where the rounding error of an offset would show.
  RowState centre(const RowState &state) {
    RowState result = state;
    result.offset = math.centre(result.scores, state.offset, [&] { return finiteMaximum(state.maximum); });
    return result;
  }

  /// What scores are taken relative to: 0 while no key is visible.
  Value finiteMaximum(Value maximum) {
    return b.select(b.equalF(maximum, b.f32(negativeInfinity)), b.f32(0), maximum);
  }

  /// The sum with this tile, `nextScores` as they are, and the fragments of P^T.
  SmallVector<Value> exponentiate(const RowState &state, ArrayRef<Value> nextScores) {
    Value sum = b.mulF(state.sum, state.factor);
    SmallVector<Value> fragments = math.exponentiate(state.scores, changes->factor(), state.offset, sum);
    SmallVector<Value> results{sum};
    llvm::append_range(results, nextScores);
    llvm::append_range(results, fragments);
    return results;
  }

  SmallVector<Value> accumulate(ArrayRef<Value> output, ArrayRef<Value> probabilities) {
    SmallVector<Value> sums(output);
    Value column = b.mul(keyRow, b.i32(columnsPerLane));
    auto rowType = VectorType::get(columnsPerLane, element);
    for (auto [index, p] : llvm::enumerate(probabilities)) {
      SmallVector<Value> read;
      for (unsigned k = 0; k < 4; ++k) {
        Value key = b.add(b.i32(index * layout.depth() + k), b.mul(half, b.i32(4)));
        read.push_back(LdsReadOp::create(b, rowType, vTile, key, column));
      }
      for (auto [sum, a] : llvm::zip_equal(sums, math.transpose(read)))
        sum = math.mfma(a, p, sum);
    }
    return sums;
  }

  /// O^T of `state` with the tile of V, and what follows from the next scores.
  RowState accumulateTile(const RowState &state, ArrayRef<Value> probabilities, Value maximumBefore,
                          Value tileKey, Value any) {
    SmallVector<Value> unknown(state.output);
    unknown.append(3, b.undef(b.getF32Type()));
    auto withScores = [&](SmallVector<Value> output) {
      RowState finished = state;
      includeScores(finished, maximumBefore, any);
      output.append({finished.maximum, finished.offset, finished.factor});
      return output;
    };
    SmallVector<Value> values = nonFinite.choose(
        b.either(keys->mayHide(tileKey, rows), changes->mayHide()), [&] { return hasNonFinite(); }, unknown,
        [&] { return withScores(accumulateNonFinite(state.output, probabilities, tileKey)); },
        [&](ArrayRef<Value> before) {
          return withScores(accumulate(before.take_front(state.output.size()), probabilities));
        });
    RowState result = state;
    result.factor = values.pop_back_val();
    result.offset = values.pop_back_val();
    result.maximum = values.pop_back_val();
    result.output = values;
    return result;
  }

  Value readValues(unsigned columns, Value key, Value column) {
    return LdsReadOp::create(b, VectorType::get(columns, element), vTile, key, column);
  }

  Value hasNonFinite() {
    return nonFinite.isIn({tileKv, headDim}, lane, [&](unsigned columns, Value key, Value column) {
      return readValues(columns, key, column);
    });
  }

  SmallVector<Value> accumulateNonFinite(ArrayRef<Value> output, ArrayRef<Value> probabilities,
                                         Value tileKey) {
    SmallVector<Value> level(tileKv / layout.rows, math.zeros());
    SmallVector<Value> visible = nonFinite.visible(finishScores(level, tileKey));
    Value column = b.mul(keyRow, b.i32(columnsPerLane));
    return nonFinite.accumulate(
        output, probabilities, visible, column, b.mul(half, b.i32(4)),
        [&](unsigned columns, Value key, Value place) { return readValues(columns, key, place); });
  }

  void store(ArrayRef<Value> result) {
    Value sum = math.overGroups(result[1], lane, [&](Value x, Value y) { return b.addF(x, y); });
    Value sinks = argument.late("sink_logits");
    Value sinkOfHead = b.advance(sinks, b.getF32Type(), b.zeroExtend(qHead));
    TileMath::Result finished = math.finish(result[0], changes->factor(), sum, b.isFalse(b.isNull(sinks)),
                                            sinkOfHead, argument.late("lse_per_log2"));
    storeOutput(result.drop_front(2),
                argument.scaled(finished.weight, "v_scale", package::score_v_scale_heads, kvHead));
    Value lseBase = argument.late("lse");
    Value rowExists = b.both(b.less(row, sequence.rows), b.equal(half, b.i32(0)));
    b.when(b.both(b.isFalse(b.isNull(lseBase)), rowExists), [&] {
      Value offset = b.mul(b.signExtend(row), argument.late("lse_token_stride"));
      Value base = headBase("lse", qHead, sequence.firstRow, b.getF32Type(), &Arguments::late);
      LLVM::StoreOp::create(b, finished.lse, b.advance(base, b.getF32Type(), offset), /*alignment=*/4);
    });
  }

  /// A lane holds, for each group g of four registers, 4 * columnsPerLane neighbouring columns from
  /// (8 g + 4 half) * columnsPerLane on.
  void storeOutput(ArrayRef<Value> output, Value weight) {
    SmallVector<Value> columns, values;
    for (unsigned group = 0; group < layout.results() / 4; ++group) {
      SmallVector<Value> elements;
      for (unsigned r = 0; r < 4; ++r)
        for (Value tile : output)
          elements.push_back(b.mulF(b.extract(tile, group * 4 + r), weight));
      for (unsigned first = 0; first < elements.size(); first += 8) {
        Value eight = b.pack(VectorType::get(8, b.getF32Type()), ArrayRef<Value>(elements).slice(first, 8));
        values.push_back(arith::TruncFOp::create(b, chunk, eight));
        columns.push_back(
            b.add(b.i32(8 * group * columnsPerLane + first), b.mul(half, b.i32(4 * columnsPerLane))));
      }
    }
    Value base = headBase("o", qHead, sequence.firstRow, element, &Arguments::late);
    StoreTileOp::create(b, base, groupRow, sequence.rows, argument.late("o_token_stride"),
                        b.sub(row, groupRow), columns, values, op.getTileQ(), headDim);
  }

  AttentionOp op;
  const Chip &chip;
  Emitter b;
  Arguments argument;
  Type element;
  unsigned headDim, tileKv, columnsPerLane;
  TileMath math;
  NonFinite nonFinite;
  VectorType chunk;

  Sequence sequence;
  Value qHead, kvHead, groupRow, hasRows;
  Value lane, half, keyRow; // lane % 32 is the query row within the wave and the key in a block of K
  Value row;                // this lane's
  std::optional<Visibility> keys;
  std::optional<ScoreChanges> changes;
  Visibility::Rows rows;
  Value tiles, keyLimit;    // tiles the workgroup needs; the end of their keys
  Value waveKeys;           // keys up to the last that this wave needs
  SmallVector<Value> query; // headDim / 8 fragments
  Value kTile, vTile;
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
      if (op.getWaveRows() == waveRows)
        AttentionBuilder(getOperation(), op, *target).build();
      else
        buildPackedAttention(getOperation(), op, *target);
      op.erase();
    }
  }
};

} // namespace
} // namespace sluice

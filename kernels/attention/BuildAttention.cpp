//===- BuildAttention.cpp - forward attention as tiles, softmax and MFMA fragments
//-------------------------===//
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
// A row whose keys are all masked so far has m = -inf; exponents are taken relative to 0 then, so that no
// (-inf) - (-inf) arises. Masks are applied on the tiles that need them, one uniform branch per tile and
// wave.
//
//===----------------------------------------------------------------------------------------------------===//
#include "attention/Emitter.h"
#include "attention/Kernel.h"
#include "target/RequireChip.h"

#include <limits>

namespace sluice {
#define GEN_PASS_DEF_BUILDATTENTION
#include "attention/Passes.h.inc"

using namespace mlir;

namespace {

constexpr unsigned waveRows = 32;    // query rows of a wave = columns of S^T
constexpr unsigned mfmaDepth = 8;    // contraction length of one MFMA
constexpr unsigned mfmaResults = 16; // f32 registers of one 32x32 result
constexpr double ln2 = 0.6931471805599453;
constexpr double negativeInfinity = -std::numeric_limits<double>::infinity();

class AttentionBuilder {
public:
  AttentionBuilder(gpu::GPUFuncOp kernel, AttentionOp op, const Chip &chip)
      : kernel(kernel), op(op), chip(chip), b(op.getLoc(), op), element(op.getElementType()),
        headDim(op.getHeadDim()), tileKv(op.getTileKv()), columnsPerLane(headDim / waveRows),
        fragment(VectorType::get(4, element)), chunk(VectorType::get(8, element)),
        pair(VectorType::get(2, element)), accumulator(VectorType::get(mfmaResults, b.getF32Type())) {}

  void build() {
    locateWave();
    SmallVector<Value> result = iterateOverKeys();
    store(result);
  }

private:
  Value argument(StringRef name) { return attentionParameter(kernel, name); }

  /// The same value, loaded where it is used. LLVM loads parameters on entry; those that only the code behind
  /// the loop needs would fill the scalar registers all through it.
  Value argumentLoadedHere(StringRef name) {
    return b.loadKernarg(attentionParameterOffset(name), argument(name).getType());
  }

  using ArgumentSource = Value (AttentionBuilder::*)(StringRef);

  /// base + batch * batch stride + head * head stride, for a tensor of the kernarg table.
  Value headBase(StringRef tensor, Value head, Type type,
                 ArgumentSource source = &AttentionBuilder::argument) {
    Value offset = b.add(b.mul(b.zeroExtend(batch), (this->*source)((tensor + "_batch_stride").str())),
                         b.mul(b.zeroExtend(head), (this->*source)((tensor + "_head_stride").str())));
    return b.advance((this->*source)(tensor), type, offset);
  }

  void locateWave() {
    Value thread = ROCDL::ThreadIdXOp::create(b, b.getI32Type());
    lane = b.bitAnd(thread, b.i32(63));
    Value wave = b.waveUniform(b.shiftRight(thread, b.i32(6)));
    laneColumn = b.bitAnd(lane, b.i32(31));
    half = b.shiftRight(lane, b.i32(5));
    qHead = ROCDL::BlockIdXOp::create(b, b.getI32Type());
    Value qTile = ROCDL::BlockIdYOp::create(b, b.getI32Type());
    batch = ROCDL::BlockIdZOp::create(b, b.getI32Type());

    qLen = argument("q_len");
    kvLen = argument("kv_len");
    Value shift = argument("causal_shift");
    groupRow = b.mul(qTile, b.i32(op.getTileQ()));
    Value waveRow = b.add(groupRow, b.mul(wave, b.i32(waveRows)));
    row = b.add(waveRow, laneColumn);

    // Row i sees keys j <= min(i + shift, kv_len - 1), a bound that grows with i: the last row of a workgroup
    // says how many tiles it needs, the last row of a wave which of them it works on, and the first row of a
    // wave which of them are visible as a whole.
    Value lastKey = b.sub(kvLen, b.i32(1));
    auto lastVisible = [&](Value queryRow) { return b.minS(b.add(queryRow, shift), lastKey); };
    Value lastRow = b.sub(qLen, b.i32(1));
    auto keysNeeded = [&](Value firstRow, unsigned rows) {
      Value last = lastVisible(b.minS(b.add(firstRow, b.i32(rows - 1)), lastRow));
      return b.maxS(b.add(last, b.i32(1)), b.i32(0));
    };
    visibleLimit = lastVisible(row);
    waveVisibleToAll = lastVisible(waveRow);
    Value waveKeysIfAny = keysNeeded(waveRow, waveRows);
    waveKeys = b.select(b.less(waveRow, qLen), waveKeysIfAny, b.i32(0));
    Value groupKeys = keysNeeded(groupRow, op.getTileQ());
    tiles = b.shiftRight(b.add(groupKeys, b.i32(tileKv - 1)), b.i32(llvm::Log2_32(tileKv)));

    Value magic = b.zeroExtend(argument("kv_head_magic"));
    kvHead = arith::TruncIOp::create(b, b.getI32Type(),
                                     b.shiftRight(b.mul(b.zeroExtend(qHead), magic), b.i64(31)));
    scaleLog2e = argument("scale_log2e");
  }

  /// Q^T as B fragments. Rows past the end repeat the last one: they are in bounds, and their results unused.
  void loadQuery() {
    Value safeRow = b.minS(row, b.sub(qLen, b.i32(1)));
    Value base = b.advance(headBase("q", qHead, element), element,
                           b.mul(b.signExtend(safeRow), argument("q_token_stride")));
    for (unsigned step = 0; step < headDim / 16; ++step) {
      Value column = b.add(b.i32(step * 16), b.mul(half, b.i32(8)));
      Value eight = LLVM::LoadOp::create(b, chunk, b.advance(base, element, column), /*alignment=*/16);
      query.push_back(b.slice(eight, 0, 4));
      query.push_back(b.slice(eight, 4, 4));
    }
  }

  Value mfma(Value a, Value bFragment, Value c) {
    return amdgpu::MFMAOp::create(b, accumulator, 32, 32, mfmaDepth, /*blocks=*/1, a, bFragment, c);
  }

  /// What a wave knows of its rows when it begins a tile of keys. The scores of that tile are computed and
  /// masked, and the maximum includes them: they were the by-product of the tile before.
  struct RowState {
    Value maximum; // of the raw scores so far, this tile included
    Value offset;  // -maximum * scale * log2(e), or 0 while no key is visible
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

  /// Returns the row maximum (raw scores), the row sum of this half of the wave, and the tiles of O^T.
  SmallVector<Value> iterateOverKeys() {
    MLIRContext *context = b.getContext();
    unsigned keyBytes = 16, elementBytes = element.getIntOrFloatBitWidth() / 8; // a lane's read of a row of K
    auto swizzle = XorSwizzle::forColumnReads(headDim, elementBytes, keyBytes, chip.ldsBanks(keyBytes));
    auto kTileType =
        LdsTileType::get(context, tileKv, headDim, element, XorSwizzleAttr::get(context, swizzle));
    auto vTileType = LdsTileType::get(context, tileKv, headDim, element, XorSwizzleAttr::get(context, 0, 0));
    auto token = TokenType::get(context);
    Value kBase = headBase("k", kvHead, element), vBase = headBase("v", kvHead, element);
    auto copy = [&](Value base, StringRef stride, Value firstKey, Value tile) -> Value {
      auto op = AsyncDmaOp::create(b, token, base, firstKey, kvLen, argument(stride), tile);
      op.setCloseRows(true); // the runtime refuses other strides
      return op;
    };
    auto copyKeys = [&](Value firstKey, Value tile) { return copy(kBase, "k_token_stride", firstKey, tile); };

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
    Value firstCopy = copyKeys(b.i32(0), firstTile);
    AsyncWaitOp::create(b, firstCopy);
    Value zeroTile = arith::ConstantOp::create(b, DenseElementsAttr::get(accumulator, 0.0f));
    RowState initial;
    initial.sum = b.f32(0);
    initial.output.append(columnsPerLane, zeroTile);
    initial.scores = mask(scores(firstTile), b.i32(0));
    includeScores(initial, b.f32(negativeInfinity), b.less(b.i32(0), waveKeys));

    auto loop = scf::ForOp::create(b, b.i32(0), tiles, b.i32(1), initial.flatten());
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    Value firstKey = b.mul(loop.getInductionVar(), b.i32(tileKv));
    Value nextKey = b.add(firstKey, b.i32(tileKv));
    Value kCopy = copyKeys(nextKey, kTile);
    Value vCopy = copy(vBase, "v_token_stride", firstKey, vTile);
    Value active = b.less(firstKey, waveKeys), nextActive = b.less(nextKey, waveKeys);
    RowState state = unflatten(loop.getRegionIterArgs());

    AsyncWaitOp::create(b, kCopy);
    // The new sum, the next scores, the fragments of P^T.
    unsigned blocks = state.scores.size();
    SmallVector<Value> first = b.branch(
        active,
        [&] {
          return b.branch(
              nextActive,
              [&] {
                SmallVector<Value> nextScores = scores(kTile);
                return exponentiate(state, nextScores);
              },
              [&] {
                // The last tile of the wave. An offset that looks different keeps the code generator from
                // sharing the exponents of both sides in front of the branch, where no MFMA hides them.
                RowState last = state;
                last.offset = b.opaque(state.offset);
                return exponentiate(last, SmallVector<Value>(blocks, b.undef(accumulator)));
              });
        },
        [&] {
          SmallVector<Value> unchanged{state.sum};
          unchanged.append(blocks, b.undef(accumulator));
          unchanged.append(tileKv / mfmaDepth, b.undef(fragment));
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
          next.scores = mask(nextScores, nextKey);
          next.output = accumulate(rescale(state.output, state.factor), probabilities);
          includeScores(next, state.maximum, nextActive);
          return next.flatten();
        },
        [&] {
          RowState unchanged = state;
          unchanged.sum = next.sum;
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
  /// 32 * n + 8 * (r / 4) + 4 * half + r % 4 of the tile.
  SmallVector<Value> scores(Value tile) {
    Value zero = arith::ConstantOp::create(b, DenseElementsAttr::get(accumulator, 0.0f));
    SmallVector<Value> blocks(tileKv / 32, zero);
    for (unsigned step = 0; step < headDim / 16; ++step) {
      Value column = b.add(b.i32(step * 16), b.mul(half, b.i32(8)));
      SmallVector<Value> keys;
      for (unsigned block = 0; block < blocks.size(); ++block)
        keys.push_back(LdsReadOp::create(b, chunk, tile, b.add(b.i32(32 * block), laneColumn), column));
      // The blocks of 32 keys take turns: consecutive MFMAs then do not wait for one another's result.
      for (unsigned part = 0; part < 2; ++part)
        for (auto [sum, eight] : llvm::zip_equal(blocks, keys))
          sum = mfma(b.slice(eight, 4 * part, 4), query[2 * step + part], sum);
    }
    return blocks;
  }

  /// Hides keys, behind a branch taken only where a key of the tile is hidden from a row of the wave.
  SmallVector<Value> mask(ArrayRef<Value> blocks, Value firstKey) {
    Value lastKeyOfTile = b.add(firstKey, b.i32(tileKv - 1));
    return b.branch(
        b.less(waveVisibleToAll, lastKeyOfTile),
        [&] {
          Value limit = b.sub(b.sub(visibleLimit, firstKey), b.mul(half, b.i32(4)));
          SmallVector<Value> masked;
          for (auto [index, block] : llvm::enumerate(blocks)) {
            SmallVector<Value> elements;
            for (unsigned r = 0; r < mfmaResults; ++r) {
              Value hidden = b.less(limit, b.i32(32 * index + 8 * (r / 4) + r % 4));
              elements.push_back(b.select(hidden, b.f32(negativeInfinity), b.extract(block, r)));
            }
            masked.push_back(b.pack(accumulator, elements));
          }
          return masked;
        },
        [&] { return SmallVector<Value>(blocks); });
  }

  /// Completes `state`, whose scores are new, with the maximum and what follows from it. If there are no
  /// scores because the wave is done, the maximum stays.
  void includeScores(RowState &state, Value maximumBefore, Value any) {
    Value tileMaximum = b.extract(state.scores[0], 0);
    for (Value block : state.scores)
      for (unsigned r = block == state.scores[0]; r < mfmaResults; ++r)
        tileMaximum = b.maxF(tileMaximum, b.extract(block, r));
    tileMaximum = b.maxF(tileMaximum, b.fromOtherHalf(tileMaximum, lane));
    state.maximum = b.select(any, b.maxF(maximumBefore, tileMaximum), maximumBefore);
    Value reference = b.select(b.equalF(state.maximum, b.f32(negativeInfinity)), b.f32(0), state.maximum);
    state.offset = b.negF(b.mulF(reference, scaleLog2e));
    // From the difference: exactly 1 where the maximum stays, however the offset was rounded.
    state.factor = b.exp2(b.mulF(b.subF(maximumBefore, reference), scaleLog2e));
  }

  /// The sum with this tile, `nextScores` as they are, and the fragments of P^T.
  SmallVector<Value> exponentiate(const RowState &state, ArrayRef<Value> nextScores) {
    // Two chains of additions: one alone would be as long as the exponentials it waits for.
    Value sums[2] = {b.mulF(state.sum, state.factor), b.f32(0)};
    SmallVector<Value> exponentials, fragments;
    for (Value block : state.scores) {
      for (unsigned r = 0; r < mfmaResults; ++r) {
        Value p = b.exp2(b.fma(b.extract(block, r), scaleLog2e, state.offset));
        sums[r % 2] = b.addF(sums[r % 2], p);
        exponentials.push_back(p);
        if (r % 4 == 3) fragments.push_back(toFragment(ArrayRef<Value>(exponentials).take_back(4)));
      }
    }
    SmallVector<Value> results{b.addF(sums[0], sums[1])};
    llvm::append_range(results, nextScores);
    llvm::append_range(results, fragments);
    return results;
  }

  /// Four probabilities as a B fragment.
  Value toFragment(ArrayRef<Value> values) {
    Value low = toPair(values[0], values[1]), high = toPair(values[2], values[3]);
    return b.bitcast(fragment, b.pack(VectorType::get(2, b.getI32Type()), {low, high}));
  }

  /// Two probabilities as 16-bit numbers in a dword: f16 toward zero, bf16 to nearest even.
  Value toPair(Value first, Value second) {
    if (element.isF16()) return b.bitcast(b.getI32Type(), ROCDL::CvtPkRtz::create(b, pair, first, second));
    if (chip.packedBf16Conversion) {
      Value both = b.pack(VectorType::get(2, b.getF32Type()), {first, second});
      return b.bitcast(b.getI32Type(), arith::TruncFOp::create(b, pair, both));
    }
    auto rounded = [&](Value value) {
      Value bits = b.bitcast(b.getI32Type(), value);
      Value odd = b.bitAnd(b.shiftRight(bits, b.i32(16)), b.i32(1));
      return b.add(b.add(bits, odd), b.i32(0x7fff));
    };
    return b.permuteBytes(rounded(second), rounded(first), 0x07060302);
  }

  SmallVector<Value> rescale(ArrayRef<Value> output, Value factor) {
    Value unchanged = b.equalF(factor, b.f32(1));
    Value anyChanged =
        b.anyLane(arith::XOrIOp::create(b, unchanged, arith::ConstantOp::create(b, b.getBoolAttr(true))));
    return b.branch(
        anyChanged,
        [&] {
          SmallVector<Value> scaled;
          for (Value tile : output) {
            SmallVector<Value> elements;
            for (unsigned r = 0; r < mfmaResults; ++r)
              elements.push_back(b.mulF(b.extract(tile, r), factor));
            scaled.push_back(b.pack(accumulator, elements));
          }
          return scaled;
        },
        [&] { return SmallVector<Value>(output); });
  }

  SmallVector<Value> accumulate(ArrayRef<Value> output, ArrayRef<Value> probabilities) {
    SmallVector<Value> tiles(output);
    Value column = b.mul(laneColumn, b.i32(columnsPerLane));
    auto rowType = VectorType::get(columnsPerLane, element);
    for (auto [index, p] : llvm::enumerate(probabilities)) {
      SmallVector<Value> rows;
      for (unsigned k = 0; k < 4; ++k) {
        Value keyRow = b.add(b.i32(index * mfmaDepth + k), b.mul(half, b.i32(4)));
        rows.push_back(LdsReadOp::create(b, rowType, vTile, keyRow, column));
      }
      for (auto [tile, a] : llvm::zip_equal(tiles, transpose(rows)))
        tile = mfma(a, p, tile);
    }
    return tiles;
  }

  /// Four rows of columnsPerLane elements to columnsPerLane fragments of four keys.
  SmallVector<Value> transpose(ArrayRef<Value> rows) {
    auto words = VectorType::get(columnsPerLane / 2, b.getI32Type());
    SmallVector<Value> rowWords;
    for (Value rowValue : rows)
      rowWords.push_back(b.bitcast(words, rowValue));
    SmallVector<Value> fragments;
    for (unsigned column = 0; column < columnsPerLane; ++column) {
      uint32_t selector = column % 2 == 0 ? 0x05040100 : 0x07060302; // low or high halves
      auto word = [&](unsigned k) { return b.extract(rowWords[k], column / 2); };
      Value low = b.permuteBytes(word(1), word(0), selector);
      Value high = b.permuteBytes(word(3), word(2), selector);
      fragments.push_back(b.bitcast(fragment, b.pack(VectorType::get(2, b.getI32Type()), {low, high})));
    }
    return fragments;
  }

  void store(ArrayRef<Value> result) {
    Value maximum = result[0];
    Value sum = b.addF(result[1], b.fromOtherHalf(result[1], lane));
    // No visible key: the sum is exactly 0. A NaN sum stays NaN.
    Value empty = b.equalF(sum, b.f32(0));
    Value inverse = b.select(empty, b.f32(0), b.reciprocal(sum));
    storeOutput(result.drop_front(2), inverse);
    Value lseBase = argumentLoadedHere("lse");
    Value lseWanted = arith::CmpIOp::create(b, arith::CmpIPredicate::ne,
                                            LLVM::PtrToIntOp::create(b, b.getI64Type(), lseBase), b.i64(0));
    Value firstHalf = b.equal(half, b.i32(0));
    Value rowExists = arith::AndIOp::create(b, b.less(row, qLen), firstHalf);
    b.when(arith::AndIOp::create(b, lseWanted, rowExists), [&] {
      Value naturalSum = b.mulF(b.log2(sum), b.f32(ln2));
      Value lse =
          b.select(empty, b.f32(negativeInfinity), b.fma(maximum, argumentLoadedHere("scale"), naturalSum));
      Value offset = b.mul(b.signExtend(row), argumentLoadedHere("lse_token_stride"));
      Value base = headBase("lse", qHead, b.getF32Type(), &AttentionBuilder::argumentLoadedHere);
      LLVM::StoreOp::create(b, lse, b.advance(base, b.getF32Type(), offset), /*alignment=*/4);
    });
  }

  /// A lane holds, for each group g of four registers, 4 * columnsPerLane neighbouring columns from
  /// (8 g + 4 half) * columnsPerLane on.
  void storeOutput(ArrayRef<Value> output, Value inverse) {
    SmallVector<Value> columns, values;
    for (unsigned group = 0; group < mfmaResults / 4; ++group) {
      SmallVector<Value> elements;
      for (unsigned r = 0; r < 4; ++r)
        for (Value tile : output)
          elements.push_back(b.mulF(b.extract(tile, group * 4 + r), inverse));
      for (unsigned first = 0; first < elements.size(); first += 8) {
        Value eight = b.pack(VectorType::get(8, b.getF32Type()), ArrayRef<Value>(elements).slice(first, 8));
        values.push_back(arith::TruncFOp::create(b, chunk, eight));
        columns.push_back(
            b.add(b.i32(8 * group * columnsPerLane + first), b.mul(half, b.i32(4 * columnsPerLane))));
      }
    }
    Value base = headBase("o", qHead, element, &AttentionBuilder::argumentLoadedHere);
    StoreTileOp::create(b, base, groupRow, qLen, argumentLoadedHere("o_token_stride"), b.sub(row, groupRow),
                        columns, values, op.getTileQ(), headDim);
  }

  gpu::GPUFuncOp kernel;
  AttentionOp op;
  const Chip &chip;
  Emitter b;
  Type element;
  unsigned headDim, tileKv, columnsPerLane;
  VectorType fragment, chunk, pair, accumulator;

  Value lane, laneColumn, half; // lane % 32 is the query row within the wave, lane / 32 the half
  Value batch, qHead, kvHead;
  Value groupRow, row; // first query row of the workgroup, and this lane's
  Value qLen, kvLen, scaleLog2e;
  Value visibleLimit;       // last visible key of this lane's row
  Value waveVisibleToAll;   // last key that every row of the wave sees
  Value waveKeys, tiles;    // keys this wave needs; tiles the workgroup needs
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
      if (!target->hasMfma({waveRows, waveRows, mfmaDepth})) {
        op.emitError() << target->name << " has no MFMA of " << waveRows << "x" << waveRows << "x"
                       << mfmaDepth;
        return signalPassFailure();
      }
      AttentionBuilder(getOperation(), op, *target).build();
      op.erase();
    }
  }
};

} // namespace
} // namespace sluice

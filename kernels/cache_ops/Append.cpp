//===- Append.cpp - appending new rows of K and V to a paged cache --------------------------------------===//
//
// A group of 2^lanes_log2 lanes handles one token; each lane handles chunks of 8 elements of its row of K
// (grid z = 0) or V (z = 1): 16 bytes read, 16 or 8 written. Every lane of a token finds the token's slot
// separately: they all read the same words, at the cost of a single lane's reads. Offsets of rows and pages
// have 64 bits, for any distance; divisions are multiplications (support/divisor.h).
//
// A rotation needs a pair of elements. In the pairs style both are in the chunk; in the halves style the
// other one is rotary_dim / 2 away, and if chunks and halves align (rotary_dim % 16 == 0), the other elements
// also form a chunk. Otherwise the elements of a chunk are rotated one by one.
//
//===----------------------------------------------------------------------------------------------------===//
#include "cache_ops/AppendPlaces.h"
#include "cache_ops/Fp8Chunks.h"

namespace sluice {

using namespace mlir;

namespace {

class AppendBuilder {
public:
  AppendBuilder(gpu::GPUFuncOp kernel, const CacheOpVariant &variant)
      : b(kernel), all(locateArguments<package::AppendKernargsOf>(b)), source(b.elementType(variant.from)),
        toFp8(variant.to != variant.from) {
    b.setInsertionPointToStart(&kernel.getBody().front());
  }

  void build() {
    Value thread = ROCDL::ThreadIdXOp::create(b, b.getI32Type());
    Value lanesLog2 = all.lanes_log2();
    Value laneMask = b.sub(b.shiftLeft(b.i32(1), lanesLog2), b.i32(1));
    Value groupsLog2 = b.sub(b.i32(llvm::Log2_32(package::cache_op_threads)), lanesLog2);
    side = ROCDL::BlockIdZOp::create(b, b.getI32Type());
    own = locateArguments<package::AppendSideOf>(b, side);
    Value firstToken = b.add(b.shiftLeft(ROCDL::BlockIdXOp::create(b, b.getI32Type()), groupsLog2),
                             b.shiftRight(thread, lanesLog2));
    Value firstChunk = b.add(b.shiftLeft(ROCDL::BlockIdYOp::create(b, b.getI32Type()), lanesLog2),
                             b.bitAnd(thread, laneMask));
    b.loop(b.zeroExtend(firstToken), b.zeroExtend(all.tokens()), b.zeroExtend(all.token_step()),
           [&](Value token) { appendToken(token, firstChunk); });
  }

private:
  void appendToken(Value token, Value firstChunk) {
    AppendPlace slot = AppendPlaces(b, all.slots, all.places).find(token);
    b.when(slot.valid, [&] {
      b.loop(firstChunk, own.chunks(), all.chunk_step(),
             [&](Value chunk) { appendChunk(token, slot, chunk); });
    });
  }

  void appendChunk(Value token, const AppendPlace &slot, Value chunk) {
    CacheOpEmitter::Division head = b.divide(chunk, own.head_chunks(), own.head_magic(), own.head_shift());
    Value head64 = b.zeroExtend(head.quotient);
    Value from = b.add(b.mul(token, own.token_stride()), b.mul(head64, own.head_stride()));
    Value row = b.advance(own.rows(), source, from);
    Value element = b.mul(head.rest, b.i32(chunkElements));
    auto chunkType = b.chunkOf(source);
    Value values = b.load(chunkType, row, b.zeroExtend(element), 16);

    Value rotaryDim = all.rotary_dim();
    Value isRotated = b.both(b.equal(side, b.i32(0)), b.lessUnsigned(element, rotaryDim));
    Value rotated = b.branch(
        isRotated, [&] { return rotate(values, row, element, token, slot); },
        [&] { return toFp8 ? b.extend(b.chunkOf(b.getF32Type()), values) : values; });
    Value stored = rotated;
    if (toFp8)
      stored =
          encodeFp8(b, rotated, own.scale(), b.mul(head64, b.zeroExtend(own.scale_stride())), Fp8::e4m3fnuz);

    CacheOpEmitter::Division pack =
        b.divide(head.rest, own.pack_chunks(), own.pack_magic(), own.pack_shift());
    Value to =
        b.add(b.add(b.mul(slot.page, own.cache_page_stride()), b.mul(slot.row, own.cache_row_stride())),
              b.add(b.mul(head64, own.cache_head_stride()),
                    b.mul(b.zeroExtend(pack.quotient), own.cache_pack_stride())));
    to = b.add(to, b.zeroExtend(b.mul(pack.rest, b.i32(chunkElements))));
    Type cache = toFp8 ? Type(b.getI8Type()) : source;
    LLVM::StoreOp::create(b, stored, b.advance(own.cache(), cache, to),
                          /*alignment=*/toFp8 ? 8 : 16);
  }

  /// Rotates a pair, given as halves: own * cos + other * (own is first ? -sin : sin).
  Value turn(Value own, Value other, Value cosine, Value signedSine) {
    return b.fma(other, signedSine, b.mulF(own, cosine));
  }

  /// The rotated chunk: F32 for FP8, otherwise in the source's type.
  Value rotate(Value values, Value row, Value element, Value token, const AppendPlace &slot) {
    Value positions = all.positions();
    Value position = b.branch(
        b.isNull(positions), [&] { return slot.key; },
        [&] { return b.signExtend(b.load(b.getI32Type(), positions, token, 4)); });
    Value rotaryDim = all.rotary_dim();
    half = b.shiftRight(rotaryDim, b.i32(1));
    cosines = b.advance(all.rotary(), b.getF32Type(), b.mul(position, all.rotary_stride()));
    sines = b.advance(cosines, b.getF32Type(), b.zeroExtend(half));
    Value pairs = b.equal(all.rotary_pairs(), b.i32(1));
    Value wholeChunks = b.equal(b.bitAnd(rotaryDim, b.i32(2 * chunkElements - 1)), b.i32(0));
    return b.branch(
        wholeChunks,
        [&] {
          Value wide = b.extend(b.chunkOf(b.getF32Type()), values);
          Value turned = b.branch(
              pairs, [&] { return rotatePairs(wide, element); },
              [&] { return rotateHalves(wide, row, element); });
          return toFp8 ? turned : b.round(b.chunkOf(source), turned);
        },
        [&] { return rotateOneByOne(values, row, element, rotaryDim, pairs); });
  }

  Value rotatePairs(Value wide, Value element) {
    auto fourType = VectorType::get(chunkElements / 2, b.getF32Type());
    Value pair = b.zeroExtend(b.shiftRight(element, b.i32(1)));
    Value cosine = b.load(fourType, cosines, pair, 4), sine = b.load(fourType, sines, pair, 4);
    SmallVector<Value> turned;
    for (unsigned i = 0; i < chunkElements; ++i) {
      Value s = b.extract(sine, i / 2);
      turned.push_back(turn(b.extract(wide, i), b.extract(wide, i ^ 1), b.extract(cosine, i / 2),
                            i % 2 == 0 ? b.negF(s) : s));
    }
    return b.pack(b.chunkOf(b.getF32Type()), turned);
  }

  Value rotateHalves(Value wide, Value row, Value element) {
    auto eightType = b.chunkOf(b.getF32Type());
    Value first = b.lessUnsigned(element, half);
    Value otherElement = b.select(first, b.add(element, half), b.sub(element, half));
    Value other = b.extend(eightType, b.load(b.chunkOf(source), row, b.zeroExtend(otherElement), 16));
    Value pair = b.zeroExtend(b.select(first, element, otherElement));
    Value cosine = b.load(eightType, cosines, pair, 4), sine = b.load(eightType, sines, pair, 4);
    SmallVector<Value> turned;
    for (unsigned i = 0; i < chunkElements; ++i) {
      Value s = b.extract(sine, i);
      turned.push_back(
          turn(b.extract(wide, i), b.extract(other, i), b.extract(cosine, i), b.select(first, b.negF(s), s)));
    }
    return b.pack(eightType, turned);
  }

  Value rotateOneByOne(Value values, Value row, Value firstElement, Value rotaryDim, Value pairs) {
    Type result = toFp8 ? Type(b.getF32Type()) : source;
    SmallVector<Value> turned;
    for (unsigned i = 0; i < chunkElements; ++i) {
      Value element = b.add(firstElement, b.i32(i));
      Value own = b.extract(values, i);
      turned.push_back(b.branch(
          b.lessUnsigned(element, rotaryDim),
          [&] {
            Value first = b.select(pairs, b.boolean(i % 2 == 0), b.lessUnsigned(element, half));
            Value distance = b.select(pairs, b.i32(1), half);
            Value other = b.select(first, b.add(element, distance), b.sub(element, distance));
            Value lower = b.select(first, element, other);
            Value pair = b.zeroExtend(b.select(pairs, b.shiftRight(lower, b.i32(1)), lower));
            Value cosine = b.load(b.getF32Type(), cosines, pair, 4);
            Value sine = b.load(b.getF32Type(), sines, pair, 4);
            Value otherValue = b.extend(b.getF32Type(), b.load(source, row, b.zeroExtend(other), 2));
            Value value =
                turn(b.extend(b.getF32Type(), own), otherValue, cosine, b.select(first, b.negF(sine), sine));
            return toFp8 ? value : b.round(source, value);
          },
          [&] { return toFp8 ? b.extend(b.getF32Type(), own) : own; }));
    }
    return b.pack(b.chunkOf(result), turned);
  }

  CacheOpEmitter b;
  package::AppendKernargsOf<Argument> all;
  package::AppendSideOf<Argument> own; // of the workgroup's side
  Type source;
  bool toFp8;
  Value side;
  Value half, cosines, sines; // of the rotation
};

} // namespace

void buildAppend(gpu::GPUFuncOp kernel, const CacheOpVariant &variant) {
  AppendBuilder(kernel, variant).build();
}

} // namespace sluice

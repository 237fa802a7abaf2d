//===- Copy.cpp - copying rows between pages, and gathering them from pages -----------------------------===//
//
// A group of 2^lanes_log2 lanes handles one row; each lane handles chunks of 8 elements of K (grid z = 0) or
// V (z = 1), as in an append. The two operations differ in how a row's places are found: a copy of pages has
// all rows of all pairs of pages, a gather the rows of its output. Every lane of a row finds them separately.
//
// Equal types are copied as the bits that they are, 16 or 8 bytes at a time; a chunk of F32 is two of F16.
// Other types are converted (Fp8Chunks.h).
//
//===----------------------------------------------------------------------------------------------------===//
#include "cache_ops/CacheOpEmitter.h"
#include "cache_ops/Fp8Chunks.h"
#include "cache_ops/PageTable.h"

namespace sluice {

using namespace mlir;

namespace {

constexpr unsigned chunkElements = package::cache_op_chunk_elements;

class CopyBuilder {
public:
  using Emitter = CacheOpEmitterOf<package::copy_kernarg_fields>;

  CopyBuilder(gpu::GPUFuncOp kernel, const CacheOpVariant &variant) : b(kernel), table(b), variant(variant) {
    b.setInsertionPointToStart(&kernel.getBody().front());
  }

  void build() {
    Value thread = ROCDL::ThreadIdXOp::create(b, b.getI32Type());
    Value lanesLog2 = b.argument("lanes_log2");
    Value laneMask = b.sub(b.shiftLeft(b.i32(1), lanesLog2), b.i32(1));
    Value groupsLog2 = b.sub(b.i32(llvm::Log2_32(package::cache_op_threads)), lanesLog2);
    side = ROCDL::BlockIdZOp::create(b, b.getI32Type());
    Value firstRow = b.add(b.shiftLeft(ROCDL::BlockIdXOp::create(b, b.getI32Type()), groupsLog2),
                           b.shiftRight(thread, lanesLog2));
    Value firstChunk = b.add(b.shiftLeft(ROCDL::BlockIdYOp::create(b, b.getI32Type()), lanesLog2),
                             b.bitAnd(thread, laneMask));
    b.loop(b.zeroExtend(firstRow), b.argument("rows"), b.argument("row_step"), {},
           [&](Value row, ValueRange) {
             copyRow(row, firstChunk);
             return SmallVector<Value>();
           });
  }

private:
  /// A row of a page.
  struct Place {
    Value page, row;
  };

  void copyRow(Value row, Value firstChunk) {
    Value isGather = b.less(b.argument("page_source"), b.i32(int32_t(package::PageSource::pairs)));
    // Whether the row is written, whether its source exists, and both places.
    SmallVector<Value> found =
        b.branch(isGather, [&] { return fromTable(row); }, [&] { return fromPages(row); });
    b.when(found[0], [&] {
      b.loop(firstChunk, sideOf("chunks"), b.argument("chunk_step"), {}, [&](Value chunk, ValueRange) {
        copyChunk(found[1], {found[2], found[3]}, {found[4], found[5]}, chunk);
        return SmallVector<Value>();
      });
    });
  }

  SmallVector<Value> fromPages(Value row) {
    CacheOpEmitter::Division place = table.intoPages(row);
    SmallVector<Value> pages = b.branch(
        b.equal(b.argument("page_source"), b.i32(int32_t(package::PageSource::pairs))),
        [&] { return pairAt(b.shiftLeft(place.quotient, b.i64(1))); },
        [&] { return SmallVector<Value>{place.quotient, place.quotient}; });
    Value areInCache = b.both(table.isInCache(pages[0]), table.isInCache(pages[1]));
    return {areInCache, b.boolean(true), pages[0], place.rest, pages[1], place.rest};
  }

  SmallVector<Value> pairAt(Value index) {
    Value pairs = b.argument("pairs");
    return b.branch(
        b.equal(b.argument("page_index_64"), b.i32(0)),
        [&] {
          Value pair = b.load(VectorType::get(2, b.getI32Type()), pairs, index, 4);
          return SmallVector<Value>{b.signExtend(b.extract(pair, 0)), b.signExtend(b.extract(pair, 1))};
        },
        [&] {
          Value pair = b.load(VectorType::get(2, b.getI64Type()), pairs, index, 8);
          return SmallVector<Value>{b.extract(pair, 0), b.extract(pair, 1)};
        });
  }

  SmallVector<Value> fromTable(Value row) {
    auto [isFound, sequence] = table.sequenceOf(row);
    return b.branch(
        isFound,
        [&] {
          Value starts = b.argument("starts"), firstKeys = b.argument("first_keys");
          Value start = table.number(starts, sequence);
          Value end = table.number(starts, b.add(sequence, b.i64(1)));
          Value keys = table.number(b.argument("kv_lengths"), sequence);
          Value first = b.branch(
              b.isNull(firstKeys), [&] { return SmallVector<Value>{b.i64(0)}; },
              [&] { return SmallVector<Value>{b.maxS(table.number(firstKeys, sequence), b.i64(0))}; })[0];
          Value key = b.add(first, b.sub(row, start));
          Value isWritten = b.both(b.less(row, end), b.less(key, keys));
          CacheOpEmitter::Division place = table.intoPages(key);
          auto [isThere, index] = table.entryOf(sequence, place.quotient);
          Value page = b.branch(
              b.both(isWritten, isThere), [&] { return SmallVector<Value>{table.pageAt(index)}; },
              [&] { return SmallVector<Value>{b.i64(-1)}; })[0];
          return SmallVector<Value>{isWritten, table.isInCache(page), page, place.rest, b.i64(0), row};
        },
        [&] {
          SmallVector<Value> none(2, b.boolean(false));
          none.append(4, b.i64(0));
          return none;
        });
  }

  Value sideOf(Emitter::Sides name) { return b.sideArgument(name, side); }

  void copyChunk(Value exists, const Place &from, const Place &to, Value chunk) {
    CacheOpEmitter::Division head =
        b.divide(chunk, sideOf("head_chunks"), sideOf("head_magic"), sideOf("head_shift"));
    Value head64 = b.zeroExtend(head.quotient);
    CacheOpEmitter::Division pack = b.divide(head.rest, sideOf("source_pack_chunks"),
                                             sideOf("source_pack_magic"), sideOf("source_pack_shift"));
    Value offset = offsetOf(from, head64, pack, sideOf("source_page_stride"), sideOf("source_row_stride"),
                            sideOf("source_head_stride"), sideOf("source_pack_stride"));
    Value source = b.advance(sideOf("source"), elementOf(variant.from), offset);
    Value stored = b.branch(
        exists,
        [&] {
          Value values = b.load(chunkOf(variant.from), source, b.i64(0), bytesOf(variant.from));
          return SmallVector<Value>{convert(values, head64)};
        },
        [&] { return SmallVector<Value>{zeros()}; })[0];
    pack = b.divide(head.rest, sideOf("target_pack_chunks"), sideOf("target_pack_magic"),
                    sideOf("target_pack_shift"));
    offset = offsetOf(to, head64, pack, sideOf("target_page_stride"), sideOf("target_row_stride"),
                      sideOf("target_head_stride"), sideOf("target_pack_stride"));
    Value target = b.advance(sideOf("target"), elementOf(variant.to), offset);
    b.store(stored, target, b.i64(0), bytesOf(variant.to));
  }

  Value offsetOf(const Place &place, Value head, const CacheOpEmitter::Division &pack, Value pageStride,
                 Value rowStride, Value headStride, Value packStride) {
    Value ofRow = b.add(b.mul(place.page, pageStride), b.mul(place.row, rowStride));
    Value ofPack = b.add(b.mul(head, headStride), b.mul(b.zeroExtend(pack.quotient), packStride));
    return b.add(b.add(ofRow, ofPack), b.zeroExtend(b.mul(pack.rest, b.i32(chunkElements))));
  }

  /// FP8 as bytes; and a chunk of it as two words.
  static bool isFp8(StringRef type) { return type == "e4m3fnuz"; }
  Type elementOf(StringRef type) { return isFp8(type) ? Type(b.getI8Type()) : b.elementType(type); }
  unsigned bytesOf(StringRef type) { return isFp8(type) ? chunkElements : 2 * chunkElements; }
  VectorType chunkOf(StringRef type) {
    return isFp8(type) ? VectorType::get(2, b.getI32Type()) : b.chunkOf(b.elementType(type));
  }

  Value zeros() { return arith::ConstantOp::create(b, b.getZeroAttr(chunkOf(variant.to))); }

  Value convert(Value values, Value head) {
    if (variant.from == variant.to) return values;
    Value index = b.mul(head, b.zeroExtend(sideOf("scale_stride")));
    return isFp8(variant.to)
               ? encodeFp8(b, b.extend(b.chunkOf(b.getF32Type()), values), sideOf("scale"), index)
               : decodeFp8(b, values, b.elementType(variant.to), sideOf("scale"), index);
  }

  Emitter b;
  PageTable<Emitter> table;
  CacheOpVariant variant;
  Value side;
};

} // namespace

void buildCopy(gpu::GPUFuncOp kernel, const CacheOpVariant &variant) {
  CopyBuilder(kernel, variant).build();
}

} // namespace sluice

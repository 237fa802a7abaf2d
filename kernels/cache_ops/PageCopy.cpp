//===- PageCopy.cpp - copying rows between pages, and gathering them from pages -------------------------===//
//
// A group of 2^lanes_log2 lanes handles one row; each lane handles chunks of 8 elements of K (grid z = 0) or
// V (z = 1), as in an append. The two operations differ in how a row's places are found: a copy of pages has
// all rows of all pairs of pages, a gather the rows of its output. Every lane of a row finds them separately.
//
// Equal types are copied as the bits that they are, 16 or 8 bytes at a time; a chunk of F32 is two of F16.
// Rows of blocks, and of scales, have any even number of bytes and any even address: they are copied in
// pieces of 16, 8, 4 or 2 bytes. Other types are converted (Fp8Chunks.h, IntegerChunks.h).
//
//===----------------------------------------------------------------------------------------------------===//
#include "cache_ops/CacheOpEmitter.h"
#include "cache_ops/Fp8Chunks.h"
#include "cache_ops/IntegerChunks.h"
#include "cache_ops/PageTable.h"
#include "package/dtypes.h"

namespace sluice {

using namespace mlir;

namespace {

class PageCopyBuilder {
public:
  PageCopyBuilder(gpu::GPUFuncOp kernel, const CacheOpVariant &variant)
      : b(kernel), all(locateArguments<package::PageCopyKernargsOf>(b)), table(b, all.places),
        variant(variant) {
    b.setInsertionPointToStart(&kernel.getBody().front());
  }

  void build() {
    Value thread = ROCDL::ThreadIdXOp::create(b, b.getI32Type());
    Value lanesLog2 = all.lanes_log2();
    Value laneMask = b.sub(b.shiftLeft(b.i32(1), lanesLog2), b.i32(1));
    Value groupsLog2 = b.sub(b.i32(llvm::Log2_32(package::cache_op_threads)), lanesLog2);
    Value side = ROCDL::BlockIdZOp::create(b, b.getI32Type());
    own = locateArguments<package::PageCopySideOf>(b, side);
    Value firstRow = b.add(b.shiftLeft(ROCDL::BlockIdXOp::create(b, b.getI32Type()), groupsLog2),
                           b.shiftRight(thread, lanesLog2));
    Value firstChunk = b.add(b.shiftLeft(ROCDL::BlockIdYOp::create(b, b.getI32Type()), lanesLog2),
                             b.bitAnd(thread, laneMask));
    b.loop(b.zeroExtend(firstRow), all.rows(), all.row_step(), [&](Value row) { copyRow(row, firstChunk); });
  }

private:
  /// A row of a page.
  struct Place {
    Value page, row;
    static auto members(auto &of) { return std::tie(of.page, of.row); }
  };

  /// What happens to a row.
  struct RowCopy {
    Value isWritten, exists; // zeros are written if the source does not exist
    Place from, to;
    static auto members(auto &of) { return std::tie(of.isWritten, of.exists, of.from, of.to); }
  };

  void copyRow(Value row, Value firstChunk) {
    Value isGather = b.less(all.places.page_source(), b.i32(int32_t(package::first_page_copy_source)));
    RowCopy copy = b.branch(isGather, [&] { return fromTable(row); }, [&] { return fromPages(row); });
    b.when(copy.isWritten, [&] {
      b.loop(firstChunk, own.chunks(), all.chunk_step(),
             [&](Value chunk) { copyChunk(copy.exists, copy.from, copy.to, chunk); });
    });
  }

  RowCopy fromPages(Value row) {
    CacheOpEmitter::Division place = table.intoPages(row);
    auto [from, to] = b.branch(
        b.equal(all.places.page_source(), b.i32(int32_t(package::PageSource::pairs))),
        [&] { return pairAt(b.shiftLeft(place.quotient, b.i64(1))); },
        [&] { return PagePair(place.quotient, place.quotient); });
    Value areInCache = b.both(table.isInCache(from), table.isInCache(to));
    return {areInCache, b.boolean(true), {from, place.rest}, {to, place.rest}};
  }

  using PagePair = std::tuple<Value, Value>;
  PagePair pairAt(Value index) {
    Value pairs = all.pairs();
    return b.branch(
        b.equal(all.places.page_index_64(), b.i32(0)),
        [&] {
          Value pair = b.load(VectorType::get(2, b.getI32Type()), pairs, index, 4);
          return PagePair{b.signExtend(b.extract(pair, 0)), b.signExtend(b.extract(pair, 1))};
        },
        [&] {
          Value pair = b.load(VectorType::get(2, b.getI64Type()), pairs, index, 8);
          return PagePair{b.extract(pair, 0), b.extract(pair, 1)};
        });
  }

  RowCopy fromTable(Value row) {
    auto [isFound, sequence] = table.sequenceOf(row);
    return b.branch(
        isFound,
        [&] {
          Value starts = all.places.starts(), firstKeys = all.first_keys();
          Value start = table.number(starts, sequence);
          Value end = table.number(starts, b.add(sequence, b.i64(1)));
          Value keys = table.number(all.places.kv_lengths(), sequence);
          Value first = b.branch(
              b.isNull(firstKeys), [&] { return b.i64(0); },
              [&] { return b.maxS(table.number(firstKeys, sequence), b.i64(0)); });
          Value key = b.add(first, b.sub(row, start));
          Value isWritten = b.both(b.less(row, end), b.less(key, keys));
          CacheOpEmitter::Division place = table.intoPages(key);
          auto [isThere, index] = table.entryOf(sequence, place.quotient);
          Value page = b.branch(
              b.both(isWritten, isThere), [&] { return table.pageAt(index); }, [&] { return b.i64(-1); });
          return RowCopy{isWritten, table.isInCache(page), {page, place.rest}, {b.i64(0), row}};
        },
        [&] {
          Value no = b.boolean(false), zero = b.i64(0);
          return RowCopy{no, no, {zero, zero}, {zero, zero}};
        });
  }

  void copyChunk(Value exists, const Place &from, const Place &to, Value chunk) {
    CacheOpEmitter::Division head = b.divide(chunk, own.head_chunks(), own.head_magic(), own.head_shift());
    Value head64 = b.zeroExtend(head.quotient);
    if (isPieces()) return copyPiece(exists, from, to, head64, head.rest);
    Value stored = b.branch(
        exists, [&] { return convert(from, head64, head.rest); },
        [&] { return zerosOf(chunkOf(variant.to)); });
    CacheOpEmitter::Division pack =
        b.divide(head.rest, own.target_pack_chunks(), own.target_pack_magic(), own.target_pack_shift());
    Value offset = b.add(targetOffset(to, head64), packOffset(pack, own.target_pack_stride()));
    Value target = b.advance(own.target(), elementOf(variant.to), offset);
    b.store(stored, target, b.i64(0), bytesOf(variant.to));
  }

  /// Where a head's row begins.
  using Stride = Argument<int64_t>;
  Value headOffset(const Place &place, Value head, const Stride &page, const Stride &row,
                   const Stride &heads) {
    Value rowOffset = b.add(b.mul(place.page, page()), b.mul(place.row, row()));
    return b.add(rowOffset, b.mul(head, heads()));
  }
  Value sourceOffset(const Place &place, Value head) {
    return headOffset(place, head, own.source_page_stride, own.source_row_stride, own.source_head_stride);
  }
  Value targetOffset(const Place &place, Value head) {
    return headOffset(place, head, own.target_page_stride, own.target_row_stride, own.target_head_stride);
  }

  Value packOffset(const CacheOpEmitter::Division &pack, Value packStride) {
    return b.add(b.mul(b.zeroExtend(pack.quotient), packStride),
                 b.zeroExtend(b.mul(pack.rest, b.i32(chunkElements))));
  }

  /// Pieces are counted in bytes, like the strides.
  void copyPiece(Value exists, const Place &from, const Place &to, Value head, Value piece) {
    Value bytes = own.piece_bytes();
    Value inRow = b.zeroExtend(b.mul(piece, bytes));
    Value source = b.advance(own.source(), b.getI8Type(), b.add(sourceOffset(from, head), inRow));
    Value target = b.advance(own.target(), b.getI8Type(), b.add(targetOffset(to, head), inRow));
    auto copyAs = [&](Type type) {
      constexpr unsigned alignment = 2;
      Value stored = b.branch(
          exists, [&] { return b.load(type, source, b.i64(0), alignment); }, [&] { return zerosOf(type); });
      b.store(stored, target, b.i64(0), alignment);
    };
    const std::pair<int32_t, Type> sizes[] = {{16, VectorType::get(4, b.getI32Type())},
                                              {8, VectorType::get(2, b.getI32Type())},
                                              {4, b.getI32Type()},
                                              {2, b.getI16Type()}};
    for (const auto &[size, type] : sizes)
      b.when(b.equal(bytes, b.i32(size)), [&, type = type] { copyAs(type); });
  }

  bool isPieces() const { return variant.from == variant.to && isInBlocks(); }
  static bool isFp8(StringRef type) { return fp8Of(type).has_value(); }
  static bool isByte(StringRef type) { return isFp8(type) || type == "i8"; }
  /// Whether the source is in blocks or groups.
  bool isInBlocks() const { return package::is_in_blocks(variant.from); }

  /// Types of a byte as bytes; and a chunk of one as two words.
  Type elementOf(StringRef type) { return isByte(type) ? Type(b.getI8Type()) : b.elementType(type); }
  unsigned bytesOf(StringRef type) { return isByte(type) ? chunkElements : 2 * chunkElements; }
  VectorType chunkOf(StringRef type) {
    return isByte(type) ? VectorType::get(2, b.getI32Type()) : b.chunkOf(b.elementType(type));
  }

  Value zerosOf(Type type) { return arith::ConstantOp::create(b, b.getZeroAttr(type)); }

  /// A chunk of a head's row of the source, as the target has it.
  Value convert(const Place &from, Value head, Value chunk) {
    Value begin = sourceOffset(from, head);
    if (isInBlocks()) return b.round(chunkOf(variant.to), blockValues(from, head, begin, chunk));
    CacheOpEmitter::Division pack =
        b.divide(chunk, own.source_pack_chunks(), own.source_pack_magic(), own.source_pack_shift());
    Value offset = b.add(begin, packOffset(pack, own.source_pack_stride()));
    Value source = b.advance(own.source(), elementOf(variant.from), offset);
    Value values = b.load(chunkOf(variant.from), source, b.i64(0), bytesOf(variant.from));
    if (variant.from == variant.to) return values;
    Value scales = own.scale(), index = indexOfScale(from, head);
    if (std::optional<Fp8> to = fp8Of(variant.to))
      return encodeFp8(b, b.extend(b.chunkOf(b.getF32Type()), values), scales, index, *to);
    SmallVector<Value> numbers =
        variant.from == "i8" ? numbersOfI8(b, values) : numbersOfFp8(b, values, *fp8Of(variant.from));
    return b.round(chunkOf(variant.to), productsToRound(b, numbers, scales, index));
  }

  Value indexOfScale(const Place &from, Value head) {
    return headOffset(from, head, own.scale_page_stride, own.scale_row_stride, own.scale_head_stride);
  }

  /// A chunk of blocks, whose places count bytes.
  Value blockValues(const Place &from, Value head, Value begin, Value chunk) {
    auto at = [&](Value offset) {
      return b.advance(own.source(), b.getI8Type(), b.add(begin, b.zeroExtend(offset)));
    };
    auto inF32 = [&](Value x) { return b.extend(b.getF32Type(), x); };
    if (variant.from == "u4") {
      constexpr int32_t chunkBytes = chunkElements / 2;
      Value word = b.load(b.getI32Type(), at(b.mul(chunk, b.i32(chunkBytes))), b.i64(0), chunkBytes);
      Value group = b.shiftRight(chunk, own.group_chunks_log2());
      Value index = b.add(indexOfScale(from, head), b.zeroExtend(group)), zeros = own.zeros();
      Value scale = b.load(b.getF16Type(), own.scale(), index, 2);
      Value zero = b.branch(
          b.isNull(zeros), [&] { return b.f32(8); },
          [&] { return inF32(b.load(b.getF16Type(), zeros, index, 2)); });
      return differencesOfU4(b, word, inF32(scale), zero);
    }
    // A block of ggml: an F16 scale, then the integers of four chunks. Those of Q4_0 are in halves of bytes.
    const bool isQ8 = variant.from == "q8_0";
    constexpr int32_t scaleBytes = 2, chunkBytes = chunkElements;
    const int32_t withBytes = isQ8 ? 4 : 2; // chunks
    Value block = b.mul(b.shiftRight(chunk, b.i32(2)), b.i32(scaleBytes + withBytes * chunkBytes));
    Value scale = inF32(b.load(b.getF16Type(), at(block), b.i64(0), 2));
    Value place = b.mul(b.bitAnd(chunk, b.i32(withBytes - 1)), b.i32(chunkBytes));
    Value words = b.load(chunkOf("i8"), at(b.add(block, b.add(place, b.i32(scaleBytes)))), b.i64(0), 2);
    Value isUpper = b.isFalse(b.equal(b.bitAnd(chunk, b.i32(2)), b.i32(0)));
    // Products of an F16 scale and an integer are exact in F32.
    SmallVector<Value> products;
    for (Value number : isQ8 ? numbersOfI8(b, words) : numbersOfQ4(b, words, isUpper))
      products.push_back(b.mulF(number, scale));
    return b.pack(b.chunkOf(b.getF32Type()), products);
  }

  CacheOpEmitter b;
  package::PageCopyKernargsOf<Argument> all;
  package::PageCopySideOf<Argument> own; // of the workgroup's side
  PageTable table;
  CacheOpVariant variant;
};

} // namespace

void buildPageCopy(gpu::GPUFuncOp kernel, const CacheOpVariant &variant) {
  PageCopyBuilder(kernel, variant).build();
}

} // namespace sluice

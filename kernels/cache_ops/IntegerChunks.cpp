//===- IntegerChunks.cpp - chunks of integers of 8 and 4 bits -------------------------------------------===//
#include "cache_ops/IntegerChunks.h"

using namespace mlir;

namespace sluice {

namespace {

constexpr unsigned chunkElements = package::cache_op_chunk_elements;

Value nearestEven(CacheOpEmitter &b, Value x) {
  return LLVM::RoundEvenOp::create(b, b.getF32Type(), x);
}

/// The lowest bytes of eight integers, in two words.
Value packBytes(CacheOpEmitter &b, ArrayRef<Value> integers) {
  SmallVector<Value> words;
  for (unsigned i = 0; i < chunkElements; i += 4) {
    // Selector 0x0c is a byte of zeros.
    Value low = b.permuteBytes(integers[i + 1], integers[i], 0x0c0c0400);
    Value high = b.permuteBytes(integers[i + 3], integers[i + 2], 0x04000c0c);
    words.push_back(b.bitOr(low, high));
  }
  return b.pack(VectorType::get(2, b.getI32Type()), words);
}

} // namespace

Value roundToI8(CacheOpEmitter &b, Value chunk) {
  constexpr int32_t largest = 127;
  SmallVector<Value> integers;
  for (unsigned i = 0; i < chunkElements; ++i)
    integers.push_back(b.clamp(b.toInteger(nearestEven(b, b.extract(chunk, i))), b.i32(-largest), b.i32(largest)));
  return packBytes(b, integers);
}

} // namespace sluice

//===- CacheTypes.cpp - the types of caches that an append_step writes ----------------------------------===//
#include "cache_ops/CacheTypes.h"

#include "cache_ops/Fp8Chunks.h"
#include "cache_ops/IntegerChunks.h"

using namespace mlir;

namespace sluice {

template <Fp8 type> static Value toFp8(CacheOpEmitter &b, Value chunk, Value scale, Value isUnscaled) {
  Value quotients = b.branch(
      isUnscaled, [&] { return chunk; }, [&] { return quotientsToRound(b, dividendOf(b, chunk, scale)); });
  return roundToFp8(b, quotients, type);
}

static Value toI8(CacheOpEmitter &b, Value chunk, Value scale, Value isUnscaled) {
  return b.branch(
      isUnscaled, [&] { return roundToI8(b, chunk); }, [&] { return divideToI8(b, chunk, scale); });
}

const CacheType &findCacheType(const CacheOpVariant &variant) {
  static const CacheType source = {.name = "", .mayHaveColumns = true};
  static const CacheType types[] = {
      {.name = "e4m3fnuz",
       .mayHaveColumns = true,
       .convert = toFp8<Fp8::e4m3fnuz>,
       .largest = largestOf(Fp8::e4m3fnuz)},
      {.name = "e4m3fn", .convert = toFp8<Fp8::e4m3fn>, .largest = largestOf(Fp8::e4m3fn)},
      {.name = "e5m2fnuz", .convert = toFp8<Fp8::e5m2>, .largest = largestOf(Fp8::e5m2)},
      {.name = "e5m2", .convert = toFp8<Fp8::e5m2>, .largest = largestOf(Fp8::e5m2)},
      {.name = "i8", .convert = toI8, .largest = 127},
      {.name = "q8_0", .storeGrouped = storeQ8},
      {.name = "q4_0", .storeGrouped = storeQ4},
      {.name = "u4", .storeGrouped = storeU4, .hasScaleArray = true},
  };
  if (variant.to == variant.from) return source;
  const CacheType *found =
      llvm::find_if(types, [&](const CacheType &type) { return type.name == variant.to; });
  assert(found != std::end(types) && "not a type of caches");
  return *found;
}

} // namespace sluice

//===- IntegerChunks.h - chunks of integers of 8 and 4 bits -----------------------------------*- C++ -*-===//
//
// F32 numbers become integers in one conversion, which truncates: what is added before decides how they are
// rounded. NaN becomes 0.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include "cache_ops/CacheOpEmitter.h"

namespace sluice {

/// Eight integers from -127 to 127 in two words: the nearest to the numbers of the chunk, of F32, ties to
/// even.
mlir::Value roundToI8(CacheOpEmitter &b, mlir::Value chunk);

} // namespace sluice

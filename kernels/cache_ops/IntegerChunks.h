//===- IntegerChunks.h - chunks of integers of 8 and 4 bits -----------------------------------*- C++ -*-===//
//
// F32 numbers become integers in one conversion, which truncates: what is added before decides how they are
// rounded. NaN becomes 0.
//
// A group is 32 or 64 neighbouring elements of a row with a common scale: four or eight neighbouring lanes
// have a chunk of it each, and find its extremes together. All of them are active. If a number of the group
// is not finite, the scale is NaN, and the integers follow from that.
//
// Q8_0 and Q4_0 follow ggml's quantize_row_q8_0_ref and quantize_row_q4_0_ref step by step in F32, so that
// the bytes are the same.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include "cache_ops/CacheOpEmitter.h"

namespace sluice {

/// Eight integers from -127 to 127 in two words: the nearest to the numbers of the chunk, of F32, ties to
/// even.
mlir::Value roundToI8(CacheOpEmitter &b, mlir::Value chunk);

/// The same for the numbers divided by the scale.
mlir::Value divideToI8(CacheOpEmitter &b, mlir::Value chunk, mlir::Value scale);

/// A chunk's part of a group.
struct GroupedChunk {
  mlir::Value scale; // F16, the same in all lanes
  mlir::Value zero;  // U4: an F16 number to subtract from the integers
  mlir::Value bytes; // two words; U4: one
};

/// The 8 bytes of the chunk.
GroupedChunk toQ8(CacheOpEmitter &b, mlir::Value chunk);

/// In the first two lanes of the four the 8 bytes that have their integers in the lower halves, and those of
/// the lane two further in the upper halves; in the others nothing. `place`: the lane's number among the
/// four.
GroupedChunk toQ4(CacheOpEmitter &b, mlir::Value chunk, mlir::Value place);

/// Unsigned integers of 4 bits, the first in the lowest bits. With `hasZero` the group's smallest number
/// becomes 0 and the largest 15, otherwise 0 becomes 8. `isWide`: the group has eight lanes.
GroupedChunk toU4(CacheOpEmitter &b, mlir::Value chunk, mlir::Value isWide, mlir::Value hasZero);

/// Eight F32 numbers: the signed integers of the bytes of two words.
llvm::SmallVector<mlir::Value> numbersOfI8(CacheOpEmitter &b, mlir::Value words);

/// The same of halves of the bytes, the upper ones if `isUpper`, minus 8: a chunk of Q4_0.
llvm::SmallVector<mlir::Value> numbersOfQ4(CacheOpEmitter &b, mlir::Value words, mlir::Value isUpper);

/// A chunk of numbers that round to the same numbers of fewer bits as the integers of U4 in a word, minus
/// `zero`, times `scale`, both of F16. Products of two of F16 and 4-bit integers are exact in F32.
mlir::Value differencesOfU4(CacheOpEmitter &b, mlir::Value word, mlir::Value scale, mlir::Value zero);

} // namespace sluice

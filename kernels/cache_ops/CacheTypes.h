//===- CacheTypes.h - the types of caches that an append_step writes --------------------------*- C++ -*-===//
#pragma once

#include "cache_ops/RowGroups.h"

namespace sluice {

/// Eight bytes, in two words, of a chunk of a row with a scale.
using ConvertChunk = mlir::Value (*)(CacheOpEmitter &b, mlir::Value chunk, mlir::Value scale,
                                     mlir::Value isUnscaled);

/// A type, and how its elements are made from those of F32. Elements of the source's type are stored as they
/// are.
struct CacheType {
  llvm::StringRef name; // in a variant's name
  /// V may be by columns: attention reads the type so.
  bool mayHaveColumns = false;
  /// Of a type of a byte, whose rows have scales, and the largest of its numbers.
  ConvertChunk convert = nullptr;
  double largest = 0;
  /// Of a type whose groups have scales, and whether these have an array of their own.
  StoreGroupedChunk storeGrouped = nullptr;
  bool hasScaleArray = false;

  bool hasRowScales() const { return convert != nullptr; }
  bool hasGroups() const { return storeGrouped != nullptr; }
  bool isConverted() const { return hasRowScales() || hasGroups(); }
};

const CacheType &findCacheType(const CacheOpVariant &variant);

} // namespace sluice

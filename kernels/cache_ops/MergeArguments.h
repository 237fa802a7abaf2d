//===- MergeArguments.h - the arguments of a merge --------------------------------------------*- C++ -*-===//
#pragma once

#include "cache_ops/CacheOpEmitter.h"

namespace sluice {

using MergeEmitter = CacheOpEmitterOf<package::merge_kernarg_fields>;

/// The arguments that every merge reads, loaded on entry. Those of merge_specially only are loaded where they
/// are used.
class MergeArguments {
public:
  using Value = mlir::Value;
  using Name = MergeEmitter::Name;

  MergeArguments(MergeEmitter &b, mlir::gpu::GPUFuncOp kernel) : b(b), values(load(b, kernel)) {}

  Value operator[](Name name) const { return values[name.index]; }

  /// Whether one of these bits of MergeMode is set.
  Value may(uint32_t mode) const;

private:
  using Values = std::array<Value, package::merge_kernarg_fields.size()>;
  static Values load(MergeEmitter &b, mlir::gpu::GPUFuncOp kernel);

  MergeEmitter &b;
  const Values values;
};

/// Names the arguments of a tensor of the parts ...
struct PartTensor {
  MergeArguments::Name start, partStride, tokenStride, headStride;
  MergeArguments::Name distances; // the first of merge_listed_parts
};
/// ... and of a tensor of the result.
struct ResultTensor {
  MergeArguments::Name start, batchStride, tokenStride, headStride;
};

inline constexpr PartTensor partialRows = {"partial", "partial_part_stride", "partial_token_stride",
                                           "partial_head_stride", "partial_distance_0"};
inline constexpr PartTensor partialLses = {"partial_lse", "partial_lse_part_stride",
                                           "partial_lse_token_stride", "partial_lse_head_stride",
                                           "partial_lse_distance_0"};
inline constexpr ResultTensor resultRows = {"o", "o_batch_stride", "o_token_stride", "o_head_stride"};
inline constexpr ResultTensor resultLses = {"lse", "lse_batch_stride", "lse_token_stride", "lse_head_stride"};

} // namespace sluice

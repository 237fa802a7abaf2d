//===- RowNorm.h - the norm of a row that an append_step appends ------------------------------*- C++ -*-===//
#pragma once

#include "cache_ops/LaneChunks.h"

namespace sluice {

/// The row, of F32, divided by the root of the mean of its squares, and times `weights`; without its tail,
/// which stays as it is. `source`: the type of weights that are not F32.
ChunkValues normalize(const WorkgroupSection &section, const LaneChunks &lane, mlir::Type source,
                      const ChunkValues &wide, mlir::Value weights);

} // namespace sluice

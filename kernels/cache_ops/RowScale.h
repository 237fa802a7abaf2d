//===- RowScale.h - the scale by which an append_step divides a row ---------------------------*- C++ -*-===//
#pragma once

#include "cache_ops/AppendPlaces.h"
#include "cache_ops/LaneChunks.h"

namespace sluice {

/// Where the scale of a place and a head is in the array `scale`, or those of a row's groups begin.
mlir::Value findScale(const WorkgroupSection &section, const AppendPlace &place, mlir::Value head);

/// The scale of the head, or 1 if it has none. It does not depend on the page, so it can be loaded long
/// before it is needed.
mlir::Value loadHeadScale(const WorkgroupSection &section, mlir::Value head);

/// The scale of the page and the head if pages have scales, else `headScale`.
mlir::Value loadPageScale(const WorkgroupSection &section, const AppendPlace &place, mlir::Value head,
                          mlir::Value headScale);

/// If rows have scales, the one with which the row's largest finite number becomes `largest`, which is
/// stored. Else `given`.
mlir::Value computeRowScale(const WorkgroupSection &section, const LaneChunks &lane, const ChunkValues &wide,
                            double largest, const AppendPlace &place, mlir::Value head, mlir::Value given);

} // namespace sluice

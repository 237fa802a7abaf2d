//===- RowRotation.h - the rotation of a row that an append_step appends ----------------------*- C++ -*-===//
#pragma once

#include "cache_ops/LaneChunks.h"

namespace sluice {

/// Eight of each for the lane's chunks. Pairs: four for each chunk.
struct Angles {
  mlir::Value cosines, sines;
};
Angles loadAngles(const WorkgroupSection &section, const LaneChunks &lane, mlir::Value position);

/// The chunks, of F32, of a lane that has rotated ones.
ChunkValues rotate(const WorkgroupSection &section, const ChunkValues &wide, const Angles &angles);

} // namespace sluice

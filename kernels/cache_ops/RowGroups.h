//===- RowGroups.h - the groups of a row that an append_step appends --------------------------*- C++ -*-===//
//
// Chunks of a group are to be in neighbouring lanes. Where the halves of a rotation are not whole groups,
// they are not after the rotation, and go to other lanes of the row: lane n then has chunk n, and the chunk
// that comes as many later as the row has lanes with chunks.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include "cache_ops/LaneChunks.h"

namespace sluice {

struct RowGroups {
  ChunkValues numbers;  // of the chunks that are stored, or -1
  mlir::Value regroups; // ... are others than those that are computed
};
RowGroups findGroups(const WorkgroupSection &section, const LaneChunks &lane);

/// The chunks that are stored, from the lanes that have them.
ChunkValues regroup(const WorkgroupSection &section, const LaneChunks &lane, const RowGroups &groups,
                    const ChunkValues &wide);

/// Where a row's groups go.
struct GroupPlace {
  mlir::Value begin;      // in bytes
  mlir::Value firstScale; // if scales have an array of their own
};

/// Stores a chunk of a group. The group's chunks are here together, in lanes whose numbers end like theirs.
using StoreGroupedChunk = void (*)(const WorkgroupSection &section, mlir::Value chunk, mlir::Value number,
                                   const GroupPlace &place);
void storeQ8(const WorkgroupSection &section, mlir::Value chunk, mlir::Value number, const GroupPlace &place);
void storeQ4(const WorkgroupSection &section, mlir::Value chunk, mlir::Value number, const GroupPlace &place);
void storeU4(const WorkgroupSection &section, mlir::Value chunk, mlir::Value number, const GroupPlace &place);

void storeGroups(const WorkgroupSection &section, const RowGroups &groups, const ChunkValues &values,
                 const GroupPlace &place, StoreGroupedChunk store);

} // namespace sluice

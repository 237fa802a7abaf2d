//===- MergeWays.h - two ways to merge a row --------------------------------------------------*- C++ -*-===//
#pragma once

#include "cache_ops/MergeParts.h"

namespace sluice {

/// Merges contiguous rows, with `count` parts in each lane: all their reads are in flight before anything is
/// waited for.
void mergeAtOnce(const MergeRow &row, MergeCode code, unsigned count);

/// Merges any rows, with `depth` parts of a lane in flight.
void mergeStepByStep(const MergeRow &row, MergeCode code, unsigned depth);

} // namespace sluice

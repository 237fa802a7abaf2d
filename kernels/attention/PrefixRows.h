//===- PrefixRows.h - which rows of a prefix belong to a sequence -----------------------------*- C++ -*-===//
//
// The rows that see a shared prefix are found by their numbers among all rows of q. Between sequences there
// may be rows that belong to none, whose memory was perhaps never written: they are not read. Their results
// are garbage that no merge reads.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include "attention/Arguments.h"

namespace sluice {

/// What the lane reads as its row of q: `row`, or zeros if the launch is for prefixes and the row, by its
/// number in q, is of no sequence. For any starts and lengths, nothing is read out of bounds.
mlir::Value readableRow(Emitter &b, const Arguments &arguments, mlir::Value number, mlir::Value row,
                        unsigned rowBytes);

} // namespace sluice

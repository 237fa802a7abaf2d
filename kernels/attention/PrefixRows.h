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

/// The columns of the lane's row of q that may be read: `columns`, or none if the launch is for prefixes and
/// the row, by its number in q, is of no sequence. For any starts and lengths, nothing is read out of bounds.
mlir::Value readableColumns(Emitter &b, const Arguments &arguments, mlir::Value number, mlir::Value columns);

} // namespace sluice

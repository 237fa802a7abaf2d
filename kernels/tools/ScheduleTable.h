//===- ScheduleTable.h - kernels with their own choices for the final order -------------------*- C++ -*-===//
#pragma once

#include "target/ScheduleChoices.h"

#include "llvm/ADT/StringMap.h"
#include "llvm/Support/Error.h"

namespace sluice {

using ScheduleTable = llvm::StringMap<ScheduleChoices>;

/// A table with one kernel on each line, "NAME WINDOW WAITS-APART READS-BEFORE"; lines that begin with # are
/// comments.
llvm::Expected<ScheduleTable> parseScheduleTable(llvm::StringRef text);

} // namespace sluice

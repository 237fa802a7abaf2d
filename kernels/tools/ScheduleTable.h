//===- ScheduleTable.h - kernels with choices of their own for their last order ---------------*- C++ -*-===//
#pragma once

#include "target/ScheduleChoices.h"

#include "llvm/ADT/StringMap.h"
#include "llvm/Support/Error.h"

namespace sluice {

using ScheduleTable = llvm::StringMap<ScheduleChoices>;

/// A table with one kernel on each line, "NAME WINDOW WAITS-APART READS-BEFORE"; what begins with # is a
/// comment.
llvm::Expected<ScheduleTable> parseScheduleTable(llvm::StringRef text);

} // namespace sluice

//===- ScheduleTable.h - kernels with schedules of their own ----------------------------------*- C++ -*-===//
#pragma once

#include "llvm/ADT/StringMap.h"
#include "llvm/Support/Error.h"

#include <string>

namespace sluice {

/// By kernel: "name=value" of each part that is not the usual one, with spaces in between. Parts are those of
/// the final order (target/ScheduleChoices.h) and of attention kernels (attention/Schedule.h).
using ScheduleTable = llvm::StringMap<std::string>;

/// A table with one kernel on each line, "NAME PART=VALUE ..."; what follows # is a comment.
llvm::Expected<ScheduleTable> parseScheduleTable(llvm::StringRef text);

/// Why these are no parts of a kernel's schedule; empty if they are.
std::string refuseParts(llvm::StringRef kernel, llvm::StringRef parts);

} // namespace sluice

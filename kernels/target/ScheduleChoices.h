//===- ScheduleChoices.h - what the model behind the last order does not decide ---------------*- C++ -*-===//
#pragma once

#include "llvm/ADT/StringRef.h"

#include <optional>
#include <string>

namespace sluice {

/// Of ScheduleMachineCode.cpp. A kernel may have its own, which a search has found
/// (kernels/tools/schedules.txt).
struct ScheduleChoices {
  /// How far an instruction may be taken up in front of the first one that has not issued: 1 or more.
  unsigned window = 8;
  /// Two waits for LDS become one if they are at most `waitsApart` instructions apart (0: never) and the read
  /// that is then waited for earlier was issued at least `readsBefore` instructions before.
  unsigned waitsApart = 20, readsBefore = 30;

  /// The function's attribute that has them as text.
  static constexpr llvm::StringLiteral attribute = "sluice-schedule";

  /// Of "8 20 30".
  static std::optional<ScheduleChoices> parse(llvm::StringRef text) {
    ScheduleChoices choices;
    for (unsigned *choice : {&choices.window, &choices.waitsApart, &choices.readsBefore})
      if (text = text.ltrim(); text.consumeInteger(10, *choice)) return std::nullopt;
    if (!text.empty() || choices.window == 0) return std::nullopt;
    return choices;
  }

  std::string text() const {
    return std::to_string(window) + " " + std::to_string(waitsApart) + " " + std::to_string(readsBefore);
  }
};

} // namespace sluice

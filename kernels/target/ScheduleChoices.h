//===- ScheduleChoices.h - what the final scheduler's cost model leaves open ------------------*- C++ -*-===//
#pragma once

#include "llvm/ADT/StringRef.h"

#include <optional>
#include <string>

namespace sluice {

/// Choices of ScheduleMachineCode.cpp. A kernel may have its own, found by a search
/// (kernels/tools/schedules.txt).
struct ScheduleChoices {
  /// How far ahead of the first unissued instruction an instruction may be taken: 1 or more.
  unsigned window = 8;
  /// Two waits for LDS become one if they are at most `waitsApart` instructions apart (0: never) and the read
  /// that is then waited for earlier was issued at least `readsBefore` instructions before.
  unsigned waitsApart = 20, readsBefore = 30;

  /// The function attribute that holds them as text.
  static constexpr llvm::StringLiteral attribute = "sluice-schedule";

  /// Parses text such as "8 20 30".
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

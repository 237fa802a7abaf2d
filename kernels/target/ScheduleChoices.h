//===- ScheduleChoices.h - what the final scheduler's cost model leaves open ------------------*- C++ -*-===//
#pragma once

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringRef.h"

#include <string>

namespace sluice {

/// Hands over the parts of a schedule's text, "name=value" with spaces in between. Returns the first that
/// `set` does not take, or nothing.
inline llvm::StringRef setParts(llvm::StringRef text,
                                llvm::function_ref<bool(llvm::StringRef name, llvm::StringRef value)> set) {
  while (!(text = text.ltrim()).empty()) {
    llvm::StringRef part;
    std::tie(part, text) = text.split(' ');
    auto [name, value] = part.split('=');
    if (!set(name, value)) return part;
  }
  return {};
}

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

  /// False if there is no such choice, or it cannot have the value.
  bool set(llvm::StringRef name, llvm::StringRef value) {
    unsigned *const choice = name == "window"         ? &window
                             : name == "waits_apart"  ? &waitsApart
                             : name == "reads_before" ? &readsBefore
                                                      : nullptr;
    return choice && !value.getAsInteger(10, *choice) && window != 0;
  }

  /// The choices in a schedule's text, which may have other parts.
  static ScheduleChoices in(llvm::StringRef text) {
    ScheduleChoices choices;
    setParts(text, [&](llvm::StringRef name, llvm::StringRef value) {
      choices.set(name, value);
      return true;
    });
    return choices;
  }

  std::string text() const {
    return "window=" + std::to_string(window) + " waits_apart=" + std::to_string(waitsApart) +
           " reads_before=" + std::to_string(readsBefore);
  }
};

} // namespace sluice

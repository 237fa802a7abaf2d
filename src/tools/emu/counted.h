//===- counted.h - "1 byte", "2 bytes" ------------------------------------------------------------------===//
#pragma once

#include <cstdint>
#include <fmt/format.h>
#include <string>
#include <string_view>

namespace sluice::tools::emu {

inline std::string counted(uint64_t count, std::string_view what, std::string_view several) {
  return fmt::format("{} {}", count, count == 1 ? what : several);
}

inline std::string counted(uint64_t count, std::string_view what) {
  return counted(count, what, std::string(what) + "s");
}

/// "1 report", "3 reports, 2 of them warnings"
inline std::string reports_text(uint64_t reports, uint64_t warnings) {
  const std::string text = counted(reports, "report");
  return warnings == 0 ? text
         : warnings == reports
             ? text + (reports == 1 ? ", a warning" : ", all of them warnings")
             : fmt::format("{}, {} of them {}", text, warnings, warnings == 1 ? "a warning" : "warnings");
}

} // namespace sluice::tools::emu

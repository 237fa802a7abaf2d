//===- counted.h - "1 byte", "2 bytes" -----------------------------------------------------------------===//
#pragma once

#include <cstdint>
#include <fmt/format.h>
#include <string>
#include <string_view>

namespace sluice::tools::emu {

inline std::string counted(uint64_t count, std::string_view what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

} // namespace sluice::tools::emu

//===- hex.h - numbers as messages show them ------------------------------------------------------------===//
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>

namespace sluice::support {

inline std::string hex(uint64_t value) {
  char text[32];
  std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(value));
  return text;
}

} // namespace sluice::support

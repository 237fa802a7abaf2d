//===- name_parts.h - parts of a case's name ------------------------------------------------------------===//
#pragma once

#include <cstddef>
#include <cstdio>
#include <string>

namespace sluice::conformance {

template <typename Enum, size_t count> std::string text(Enum value, const char *const (&names)[count]) {
  return names[size_t(value)];
}

template <typename... Values> std::string format(const char *pattern, Values... values) {
  char part[256];
  std::snprintf(part, sizeof part, pattern, values...);
  return part;
}

} // namespace sluice::conformance

//===- failure.cpp - failures with their reasons --------------------------------------------------------===//
#include "support/failure.h"

#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include <locale.h>

namespace sluice::support {

Failure::Failure(Status status, std::string field, std::string message, int32_t hip_code)
    : code(status), hip(hip_code), name(std::move(field)), text(std::move(message)) {}

namespace detail {
namespace {

template <typename Number> void append_number(std::string &out, Number value, auto... format) {
  char digits[32];
  const auto end = std::to_chars(digits, digits + sizeof digits, value, format...).ptr;
  out.append(digits, end);
}

} // namespace

void append(std::string &out, std::string_view piece) {
  out.append(piece);
}
void append(std::string &out, const char *piece) {
  out.append(piece);
}
void append(std::string &out, char piece) {
  out.push_back(piece);
}
void append(std::string &out, double piece) {
  // std::to_chars of a double is newer than the oldest libstdc++ that the library runs with.
  static const locale_t plain = newlocale(LC_ALL_MASK, "C", nullptr);
  const locale_t own = uselocale(plain);
  char digits[32];
  constexpr int least = 6, enough = 17; // digits; 17 are enough to read every number back
  for (int precision = least; precision <= enough; ++precision) {
    std::snprintf(digits, sizeof digits, "%.*g", precision, piece);
    if (std::strtod(digits, nullptr) == piece) break;
  }
  uselocale(own);
  out.append(digits);
}
void append(std::string &out, int64_t piece) {
  append_number(out, piece);
}
void append(std::string &out, uint64_t piece) {
  append_number(out, piece);
}

} // namespace detail

std::string hexadecimal(uint64_t value) {
  std::string out = "0x";
  detail::append_number(out, value, 16);
  return out;
}

} // namespace sluice::support

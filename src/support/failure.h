//===- failure.h - failures with their reasons ----------------------------------------------------------===//
//
// Inside the library a request that cannot be served is an exception; the C boundary turns it into a status
// and a filled-in sluice_error. The successful path of a run never builds one.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include <cstdint>
#include <exception>
#include <string>
#include <string_view>

namespace sluice::support {

/// The values are those of the C ABI's status codes.
enum class Status : int32_t {
  ok = 0,
  invalid_argument = 1,
  unsupported = 2,
  newer_struct = 3,
  no_device = 4,
  wrong_arch = 5,
  hip = 6,
  pack_corrupt = 7,
  workspace_too_small = 8,
  out_of_memory = 9,
  internal = 10,
};

class Failure : public std::exception {
public:
  Failure(Status status, std::string field, std::string message, int32_t hip_code = 0);

  Status status() const { return code; }
  const std::string &field() const { return name; }
  const std::string &message() const { return text; }
  int32_t hip_code() const { return hip; }
  const char *what() const noexcept override { return text.c_str(); }

private:
  Status code;
  int32_t hip;
  std::string name;
  std::string text;
};

namespace detail {
void append(std::string &out, std::string_view piece);
void append(std::string &out, const char *piece);
void append(std::string &out, char piece);
void append(std::string &out, double piece);
void append(std::string &out, int64_t piece);
void append(std::string &out, uint64_t piece);
inline void append(std::string &out, int piece) {
  append(out, int64_t{piece});
}
inline void append(std::string &out, unsigned piece) {
  append(out, uint64_t{piece});
}
inline void append(std::string &out, float piece) {
  append(out, double{piece});
}
inline void append(std::string &out, const std::string &piece) {
  append(out, std::string_view(piece));
}
} // namespace detail

/// Joins the pieces; numbers in decimal, floating point with the fewest digits that read back exactly.
template <typename... Pieces> std::string text(const Pieces &...pieces) {
  std::string out;
  (detail::append(out, pieces), ...);
  return out;
}

/// `0x` and at most sixteen digits.
std::string hexadecimal(uint64_t value);

} // namespace sluice::support

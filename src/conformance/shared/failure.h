//===- failure.h - the library's refusals and errors ----------------------------------------------------===//
#pragma once

#include <sluice/sluice.h>

#include <stdexcept>
#include <string>

namespace sluice::conformance {

/// The library returned SLUICE_UNSUPPORTED.
class Refused : public std::runtime_error {
public:
  Refused(std::string refused_field, const std::string &message)
      : std::runtime_error(message), field(std::move(refused_field)) {}
  std::string field; // of the problem or the call
};

inline sluice_error make_error() {
  sluice_error error;
  sluice_error_init(&error, sizeof error);
  return error;
}

[[noreturn]] inline void fail(const std::string &what, sluice_status status, const sluice_error &error) {
  throw std::runtime_error(what + ": " + sluice_status_name(status) + " [" + error.field + "] " +
                           error.message);
}

[[noreturn]] inline void fail_or_refuse(const std::string &what, sluice_status status,
                                        const sluice_error &error) {
  if (status == SLUICE_UNSUPPORTED) throw Refused(error.field, error.message);
  fail(what, status, error);
}

} // namespace sluice::conformance

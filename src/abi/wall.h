//===- wall.h - where exceptions end --------------------------------------------------------------------===//
#pragma once

#include "abi/sized.h"

#include <exception>
#include <new>

namespace sluice::abi {

static_assert(int32_t(support::Status::internal) == SLUICE_INTERNAL);

inline sluice_status report(sluice_error *error, support::Status status, std::string_view field,
                            std::string_view message, int32_t hip_code = 0) noexcept {
  if (error != nullptr) {
    error->code = sluice_status(status);
    error->hip_code = hip_code;
    copy_text(error->field, field);
    copy_text(error->message, message);
  }
  return sluice_status(status);
}

/// Runs the body of an entry point; turns an exception into a status and, if the caller wants it, an error.
template <typename Body> sluice_status wall(sluice_error *error, Body &&body) noexcept {
  if (error != nullptr && !is_size<sluice_error>(error->struct_size)) return SLUICE_INVALID_ARGUMENT;
  try {
    body();
    return SLUICE_OK;
  } catch (const support::Failure &failure) {
    return report(error, failure.status(), failure.field(), failure.message(), failure.hip_code());
  } catch (const std::bad_alloc &) {
    return report(error, support::Status::out_of_memory, "", "host memory ran out");
  } catch (const std::exception &unexpected) {
    return report(error, support::Status::internal, "", unexpected.what());
  } catch (...) {
    return report(error, support::Status::internal, "", "an exception of unknown type");
  }
}

} // namespace sluice::abi

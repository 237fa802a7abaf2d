//===- refused.h - the refusal of a check ---------------------------------------------------------------===//
#pragma once

#include "support/failure.h"

#include <string>

namespace sluice::test {

/// "field: message" of an invalid argument, after the status if it is any other; "" if nothing is refused.
template <typename Call> std::string refused(Call &&call) {
  try {
    call();
  } catch (const support::Failure &failure) {
    std::string status;
    if (failure.status() == support::Status::unsupported) status = "unsupported ";
    if (failure.status() == support::Status::newer_struct) status = "newer_struct ";
    if (failure.status() == support::Status::workspace_too_small) status = "workspace_too_small ";
    return status + failure.field() + ": " + failure.message();
  }
  return "";
}

} // namespace sluice::test

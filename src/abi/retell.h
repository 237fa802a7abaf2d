//===- retell.h - failures in the words of the caller's structs -----------------------------------------===//
#pragma once

#include "support/failure.h"

#include <span>
#include <string_view>
#include <utility>

namespace sluice::abi {

/// A member or an enumerator, and its path or name for the caller.
struct Renamed {
  std::string_view from, to;
};
using Names = std::span<const Renamed>;

/// The failure with each name replaced: in its field, at the start of its message, and everywhere else in the
/// message where the name cannot be an English word.
support::Failure retold(const support::Failure &failure, Names names);

/// Runs `body`; its failures become retold ones.
template <typename Body> decltype(auto) retelling(Names names, Body &&body) {
  try {
    return body();
  } catch (const support::Failure &failure) {
    throw retold(failure, names);
  }
}

} // namespace sluice::abi

//===- error.h - how the HIP functions fail -------------------------------------------------------------===//
//
// Internally a failure is an exception. Every HIP function runs inside `call`, which turns exceptions into
// codes and remembers the calling thread's last error as HIP 7 does: success leaves it unchanged.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include <exception>
#include <source_location>

#include "emulator/hip/types.h"

namespace sluice::emulator::hip {

class Failure : public std::exception {
public:
  explicit Failure(hipError_t error) : code(error) {}
  hipError_t error() const { return code; }
  const char *what() const noexcept override;

private:
  hipError_t code;
};

inline void require(bool condition, hipError_t otherwise) {
  if (!condition) throw Failure(otherwise);
}

/// The error code for the exception being handled.
hipError_t error_of_current_exception();

hipError_t last_error();
hipError_t take_last_error();

/// From now on, a process forked from this one is orphaned: it lacks the threads of the streams, and their
/// locks may be held for ever.
void orphan_forks();
/// In an orphaned process no state of the device may be touched, not even by waiting for a lock.
bool is_orphaned();

/// False in a thread without memory for the exceptions that it would throw.
bool may_throw() noexcept;

/// One call of a HIP function. Those that it makes itself are parts of it.
class Call {
public:
  explicit Call(const char *name) noexcept;
  ~Call();
  Call(const Call &) = delete;
  Call &operator=(const Call &) = delete;
  /// What it returns; remembers it.
  hipError_t result(hipError_t error) const noexcept;

private:
  const char *const function;
  const bool outermost;
};

/// Runs `body`, which returns nothing or a hipError_t.
template <typename Body>
hipError_t call(Body &&body, const std::source_location &place = std::source_location::current()) {
  const Call current(place.function_name());
  if (is_orphaned()) return current.result(hipErrorNotInitialized);
  if (!may_throw()) return current.result(hipErrorOutOfMemory);
  try {
    if constexpr (std::is_void_v<decltype(body())>) {
      body();
      return hipSuccess;
    } else {
      return current.result(body());
    }
  } catch (...) {
    return current.result(error_of_current_exception());
  }
}

} // namespace sluice::emulator::hip

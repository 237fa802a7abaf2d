//===- thread_state.cpp - thread-local state ------------------------------------------------------------===//
#include "emulator/hip/thread_state.h"

#include <cstdlib>

#include <cxxabi.h>

namespace sluice::emulator::hip {

namespace {

// Much more than the C++ library's variables, and the table that finds them, need.
constexpr size_t probe_bytes = 4096;

} // namespace

constinit thread_local ThreadState thread_state;

// Exceptions use thread-local variables of the C++ library. In a program without C++ they are allocated on
// first use. Memory that was just freed is available for them, unless other threads take all of it at once.
bool may_throw() noexcept {
  if (thread_state.may_throw) return true;
  void *volatile const probe = std::malloc(probe_bytes);
  if (probe == nullptr) return false;
  std::free(probe);
  const void *volatile const globals = __cxxabiv1::__cxa_get_globals();
  static_cast<void>(globals);
  return thread_state.may_throw = true;
}

} // namespace sluice::emulator::hip

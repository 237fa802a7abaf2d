//===- error.cpp - names of errors, and each thread's last one ------------------------------------------===//
//
// hipErrorNotReady is an answer rather than an error: it is returned but not remembered.
//
//===----------------------------------------------------------------------------------------------------===//
#include "emulator/hip/error.h"

#include <atomic>
#include <new>
#include <system_error>
#include <utility>

#include <pthread.h>

#include "emulator/hip/functions.h"
#include "emulator/hip/program_end.h"
#include "emulator/hip/thread_state.h"

namespace sluice::emulator::hip {

namespace {

std::atomic<bool> orphaned = false;

} // namespace

void orphan_forks() {
  static const int registered = pthread_atfork(nullptr, nullptr, [] { orphaned = true; });
  require(registered == 0, hipErrorOutOfMemory);
}

bool is_orphaned() {
  return orphaned.load(std::memory_order_relaxed);
}

const char *Failure::what() const noexcept {
  return hipGetErrorString(code);
}

hipError_t error_of_current_exception() {
  try {
    throw;
  } catch (const Failure &failure) {
    return failure.error();
  } catch (const std::bad_alloc &) {
    return hipErrorOutOfMemory;
  } catch (const std::system_error &) { // no thread could be created
    return hipErrorOutOfMemory;
  } catch (...) {
    return hipErrorUnknown;
  }
}

Call::Call(const char *name) noexcept : function(name), outermost(thread_state.open_calls++ == 0) {}

Call::~Call() {
  --thread_state.open_calls;
}

hipError_t Call::result(hipError_t error) const noexcept {
  if (error == hipSuccess || error == hipErrorNotReady) return error;
  thread_state.last_error = error;
  if (outermost) error_returned(function, error);
  return error;
}

hipError_t last_error() {
  return thread_state.last_error;
}

hipError_t take_last_error() {
  return std::exchange(thread_state.last_error, hipSuccess);
}

namespace {

bool is_known(hipError_t error) {
  switch (error) {
#define SLUICE_ERROR(name, number, text) case name:
    SLUICE_HIP_ERRORS(SLUICE_ERROR)
#undef SLUICE_ERROR
    return true;
  }
  return false;
}

hipError_t give_text(hipError_t error, const char **out, const char *(*text)(hipError_t)) {
  return call([&] {
    require(out != nullptr, hipErrorInvalidValue);
    *out = nullptr;
    require(is_known(error), hipErrorInvalidValue);
    *out = text(error);
  });
}

} // namespace

hipError_t hipDrvGetErrorName(hipError_t error, const char **name) {
  return give_text(error, name, hipGetErrorName);
}

hipError_t hipDrvGetErrorString(hipError_t error, const char **text) {
  return give_text(error, text, hipGetErrorString);
}

const char *hipGetErrorName(hipError_t error) {
  error_seen(error);
  switch (error) {
#define SLUICE_ERROR(name, number, text)                                                                     \
  case name:                                                                                                 \
    return #name;
    SLUICE_HIP_ERRORS(SLUICE_ERROR)
#undef SLUICE_ERROR
  }
  return "hipErrorUnknown";
}

const char *hipGetErrorString(hipError_t error) {
  error_seen(error);
  switch (error) {
#define SLUICE_ERROR(name, number, text)                                                                     \
  case name:                                                                                                 \
    return text;
    SLUICE_HIP_ERRORS(SLUICE_ERROR)
#undef SLUICE_ERROR
  }
  return "unknown error";
}

} // namespace sluice::emulator::hip

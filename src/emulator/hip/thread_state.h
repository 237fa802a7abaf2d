//===- thread_state.h - thread-local state --------------------------------------------------------------===//
//
// A thread that has just started may find no memory left, and its first call must then return an error.
// Instead, the dynamic linker ends the process if it cannot allocate thread-local variables on their first
// use, and so does glibc if it cannot register one with a destructor. So small state is in the block that a
// thread gets at its creation (the initial-exec model: a few bytes of the 1664 that glibc keeps for libraries
// opened later). Larger state is allocated with checks, by PerThread.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include <memory>

#include <pthread.h>

#include "emulator/hip/error.h"

namespace sluice::emulator::hip {

struct WorkIdentity;

struct ThreadState {
  hipError_t last_error = hipSuccess;
  hipStreamCaptureMode capture_mode = hipStreamCaptureModeGlobal;
  int device = 0;
  int open_calls = 0;     // HIP functions that have not returned
  bool may_throw = false; // see may_throw()
  bool on_worker = false; // this thread runs the work of streams
  /// Set while this thread runs a piece of work whose memory is compared; else null.
  const WorkIdentity *work = nullptr;
};
extern constinit thread_local ThreadState thread_state __attribute__((tls_model("initial-exec")));

/// An object per thread that needs one, created on first use and destroyed when its thread ends.
template <typename Object> class PerThread {
public:
  PerThread() : usable(pthread_key_create(&key, destroy) == 0) {}
  PerThread(const PerThread &) = delete;
  PerThread &operator=(const PerThread &) = delete;

  /// Throws Failure(hipErrorOutOfMemory).
  Object &get() {
    require(usable, hipErrorOutOfMemory);
    if (void *const known = pthread_getspecific(key)) return *static_cast<Object *>(known);
    auto fresh = std::make_unique<Object>();
    require(pthread_setspecific(key, fresh.get()) == 0, hipErrorOutOfMemory);
    return *fresh.release();
  }

private:
  static void destroy(void *object) { delete static_cast<Object *>(object); }

  pthread_key_t key = 0;
  const bool usable;
};

} // namespace sluice::emulator::hip

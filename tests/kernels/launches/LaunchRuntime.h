//===- LaunchRuntime.h - the runtime that lowered host programs call --------------------------*- C++ -*-===//
//
// The functions that launch-to-runtime emits calls to, over a HIP table. Only the first failure counts: after
// it, HIP is only asked to complete and release live objects, and the program runs to its end on null streams
// and events, which every function accepts.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include "runtime/device.h"
#include "support/failure.h"

#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringMap.h"

#include <map>
#include <optional>
#include <string>
#include <utility>

namespace sluice {

class LaunchRuntime {
public:
  /// At most one exists at a time: the functions have no context argument. Throws support::Failure. HIP call
  /// number `failingCall`, counted from 0, fails; for tests.
  LaunchRuntime(runtime::Device device, const runtime::HipSource &source,
                std::optional<uint64_t> failingCall);
  /// Releases everything left.
  ~LaunchRuntime();
  LaunchRuntime(const LaunchRuntime &) = delete;
  LaunchRuntime &operator=(const LaunchRuntime &) = delete;

  /// Releases everything left. That is normal for modules; a stream, event or registration is a failure of
  /// the program, unless there was one before.
  void finish();

  /// The first failure, or nothing.
  const std::string &failure() const { return firstFailure; }
  uint64_t hipCalls() const { return callCount; }

  /// Names and addresses of the functions.
  static llvm::StringMap<void *> symbols();

  // The functions, described by their names.
  void *createStream();
  void synchronizeStream(void *stream);
  void destroyStream(void *stream); // completes its work first
  void *createEvent();
  void recordEvent(void *event, void *stream);
  void waitForEvent(void *stream, void *event);
  void synchronizeEvent(void *event);
  void destroyEvent(void *event);
  void launch(const void *codeObject, const char *kernel, const uint64_t (&grid)[3],
              const uint64_t (&block)[3], uint32_t ldsBytes, void *stream, void **parameters);
  void registerHost(void *memory, size_t bytes);
  void unregisterHost(void *memory);

private:
  template <typename Function, typename... Arguments>
  bool call(const char *name, Function function, Arguments... arguments);
  template <typename Function, typename... Arguments>
  void release(const char *name, Function function, Arguments... arguments);
  bool injected() { return callCount++ == failingCall; }
  void note(const char *name, runtime::HipError error);
  void fail(std::string message);
  void *kernelOf(const void *codeObject, const char *kernel);

  runtime::Device device;
  runtime::CurrentDevice current;
  std::optional<uint64_t> failingCall;
  uint64_t callCount = 0;
  std::string firstFailure;

  llvm::SetVector<void *> streams, events, registered;
  std::map<const void *, void *> modules;
  std::map<std::pair<const void *, std::string>, void *> kernels;

  // Missing from the product's table.
  runtime::HipError (*hipStreamCreateWithFlags)(void **stream, unsigned flags);
  runtime::HipError (*hipStreamSynchronize)(void *stream);
  runtime::HipError (*hipStreamDestroy)(void *stream);
  runtime::HipError (*hipEventCreateWithFlags)(void **event, unsigned flags);
  runtime::HipError (*hipEventSynchronize)(void *event);
  runtime::HipError (*hipEventDestroy)(void *event);
  runtime::HipError (*hipHostRegister)(void *memory, size_t bytes, unsigned flags);
  runtime::HipError (*hipHostUnregister)(void *memory);
};

} // namespace sluice

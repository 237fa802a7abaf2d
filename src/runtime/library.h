//===- library.h - finding HIP, the emulator and roctx at run time --------------------------------------===//
//
// None is ever closed again: streams, events and memory of the caller come from the same runtime.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include "runtime/hip_table.h"

#include <string>

namespace sluice::runtime {

/// A resolver and its origin, for messages.
struct HipSource {
  HipResolver resolver = nullptr;
  void *user = nullptr;
  std::string origin;
};

/// The libamdhip64 that is already in the process, of any version; else libamdhip64.so.7, .6 or .5 by
/// soname. Throws support::Failure (no_device) if none is found.
HipSource find_hip();

/// libsluice_emulator.so.1 by soname, else beside the file of libsluice.so; only by soname in a program that
/// libsluice.a is linked into. Never in a program with more rights than its user (AT_SECURE). Throws
/// support::Failure (no_device) naming the file.
HipSource find_emulator();

/// Of roctx: open a range on the calling thread, and close its innermost one.
struct RangeFunctions {
  int (*push)(const char *) = nullptr;
  int (*pop)() = nullptr;
};

/// roctxRangePushA and roctxRangePop of the process, else of librocprofiler-sdk-roctx.so.1 or libroctx64.so.4
/// by soname; only those of the process in a program with more rights than its user. Throws support::Failure
/// (unsupported), naming the places.
RangeFunctions find_ranges();

} // namespace sluice::runtime

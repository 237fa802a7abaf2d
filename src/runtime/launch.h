//===- launch.h - enqueueing work: its dependencies, the kernel, and the signal -------------------------===//
#pragma once

#include "runtime/device.h"

#include <sluice/sluice.h>

#include <array>
#include <cstddef>
#include <cstdint>

namespace sluice::runtime {

using Grid = std::array<uint32_t, 3>;

/// A loaded kernel and its workgroups; `kernargs` is its argument block.
struct Work {
  void *function;
  Grid grid;
  uint32_t threads;
  void *kernargs;
  size_t kernarg_bytes;
};

/// Whether a stream records what is enqueued on it. Throws support::Failure (hip).
bool is_capturing(const HipTable &hip, void *stream, const char *field);

/// Makes launch.stream wait for the launch's dependencies. Throws support::Failure: hip, or, before any
/// effect, invalid_argument for a dependency that capture does not allow.
void wait_for_dependencies(const HipTable &hip, const sluice_launch &launch);

/// Enqueues the kernel. Throws support::Failure (hip).
void enqueue(const HipTable &hip, const Work &work, void *stream);

/// A launch without work: waits for the dependencies and signals. Throws support::Failure as these do.
void enqueue_nothing(const HipTable &hip, const sluice_launch &launch);

/// Records launch.signal_event after all work, if it is given. Throws support::Failure (hip).
void signal(const HipTable &hip, const sluice_launch &launch);

} // namespace sluice::runtime

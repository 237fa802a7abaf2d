//===- launch.cpp - enqueueing work: its dependencies, the kernel, and the signal -----------------------===//
#include "runtime/launch.h"

#include "support/failure.h"

namespace sluice::runtime {

using support::Failure;
using support::Status;
using support::text;

bool is_capturing(const HipTable &hip, void *stream, const char *field) {
  // The default stream cannot be captured, and querying it fails while another stream is being captured.
  if (stream == nullptr) return false;
  int status = hip_capture_status_none;
  check_hip(hip, hip.hipStreamIsCapturing(stream, &status), "hipStreamIsCapturing", field);
  return status != hip_capture_status_none;
}

void wait_for_dependencies(const HipTable &hip, const sluice_launch &launch) {
  // First all checks, then all effects.
  for (uint32_t i = 0; i < launch.dependency_count; ++i) {
    const sluice_dependency &dependency = launch.dependencies[i];
    if (dependency.kind == SLUICE_DEPENDS_ON_STREAM && is_capturing(hip, launch.stream, "dependencies") &&
        !is_capturing(hip, dependency.stream, "dependencies")) {
      throw Failure(Status::invalid_argument, text("dependencies[", i, "].stream"),
                    text("launch.stream is capturing, but dependencies[", i,
                         "].stream is not, so it cannot join the capture"));
    }
  }
  for (uint32_t i = 0; i < launch.dependency_count; ++i) {
    const sluice_dependency &dependency = launch.dependencies[i];
    if (dependency.kind == SLUICE_DEPENDS_ON_STREAM) {
      check_hip(hip, hip.hipEventRecord(dependency.event, dependency.stream), "hipEventRecord",
                "dependencies");
    }
    check_hip(hip, hip.hipStreamWaitEvent(launch.stream, dependency.event, 0), "hipStreamWaitEvent",
              "dependencies");
  }
}

void enqueue(const HipTable &hip, const Work &work, void *stream) {
  size_t kernarg_bytes = work.kernarg_bytes;
  void *extra[] = {reinterpret_cast<void *>(hip_launch_buffer_pointer), work.kernargs,
                   reinterpret_cast<void *>(hip_launch_buffer_size), &kernarg_bytes,
                   reinterpret_cast<void *>(hip_launch_end)};
  check_hip(hip,
            hip.hipModuleLaunchKernel(work.function, work.grid[0], work.grid[1], work.grid[2], work.threads,
                                      1, 1, 0, stream, nullptr, extra),
            "hipModuleLaunchKernel");
}

void enqueue_nothing(const HipTable &hip, const sluice_launch &launch) {
  wait_for_dependencies(hip, launch);
  signal(hip, launch);
}

void signal(const HipTable &hip, const sluice_launch &launch) {
  if (launch.signal_event != nullptr) {
    check_hip(hip, hip.hipEventRecord(launch.signal_event, launch.stream), "hipEventRecord", "signal_event");
  }
}

} // namespace sluice::runtime

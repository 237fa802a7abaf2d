//===- stream_functions.cpp - HIP's functions about streams and events ----------------------------------===//
//
// An event that was never recorded is complete. As in HIP, waiting for an event waits for its latest
// recording at the time of the call.
//
//===----------------------------------------------------------------------------------------------------===//
#include <algorithm>
#include <array>
#include <bit>

#include "emulator/hip/capture.h"
#include "emulator/hip/device.h"
#include "emulator/hip/error.h"
#include "emulator/hip/events.h"
#include "emulator/hip/functions.h"
#include "emulator/hip/handles.h"
#include "emulator/hip/operations.h"
#include "emulator/hip/scheduler.h"
#include "emulator/hip/streams.h"
#include "emulator/hip/thread_state.h"

namespace sluice::emulator::hip {

namespace {

using StreamHandles = Handles<hipStream_t, Stream>;
using EventHandles = Handles<hipEvent_t, Event>;

/// hipStreamPerThread, by device. Closed when the thread ends.
class ThreadStreams {
public:
  ~ThreadStreams() {
    if (is_orphaned()) return;
    for (const std::shared_ptr<Stream> &stream : streams)
      if (stream) Scheduler::get().close(stream);
  }
  const std::shared_ptr<Stream> &get() {
    std::shared_ptr<Stream> &stream = streams[size_t(current_device())];
    if (!stream) stream = Scheduler::get().create(current_device(), 0, 0);
    return stream;
  }

private:
  std::array<std::shared_ptr<Stream>, MemoryBlock::most_devices> streams;
};
PerThread<ThreadStreams> thread_streams;

void create_stream(hipStream_t *stream, unsigned flags, int priority) {
  require(stream != nullptr, hipErrorInvalidValue);
  require(flags == 0 || flags == hipStreamNonBlocking, hipErrorInvalidValue);
  *stream = StreamHandles::get().add(Scheduler::get().create(
      current_device(), flags, std::clamp(priority, greatest_stream_priority, least_stream_priority)));
}

} // namespace

std::shared_ptr<Stream> find_stream(hipStream_t stream) {
  const auto number = reinterpret_cast<uintptr_t>(stream);
  if (number == 0 || number == stream_legacy) return Scheduler::get().null_stream(current_device());
  if (number == stream_per_thread) return thread_streams.get().get();
  return StreamHandles::get().find(stream);
}

std::shared_ptr<Stream> work_stream(hipStream_t handle) {
  std::shared_ptr<Stream> stream = find_stream(handle);
  if (stream->null) refuse_implicit_dependency();
  return stream;
}

std::shared_ptr<Event> find_event(hipEvent_t event) {
  return EventHandles::get().find(event);
}

void destroy_streams(int device) {
  for (const std::shared_ptr<Stream> &stream : StreamHandles::get().remove_all(
           [device](const Stream &candidate) { return candidate.device == device; }))
    Scheduler::get().close(stream);
}

uint64_t live_streams() {
  return StreamHandles::get().count();
}

uint64_t live_events() {
  return EventHandles::get().count();
}

hipError_t hipStreamCreate(hipStream_t *stream) {
  return call([&] { create_stream(stream, 0, 0); });
}

hipError_t hipStreamCreateWithFlags(hipStream_t *stream, unsigned flags) {
  return call([&] { create_stream(stream, flags, 0); });
}

hipError_t hipStreamCreateWithPriority(hipStream_t *stream, unsigned flags, int priority) {
  return call([&] { create_stream(stream, flags, priority); });
}

hipError_t hipStreamDestroy(hipStream_t stream) {
  return call([&] {
    const std::shared_ptr<Stream> removed = StreamHandles::get().remove(stream);
    leave_capture(removed);
    Scheduler::get().close(removed);
  });
}

hipError_t hipStreamSynchronize(hipStream_t stream) {
  return call([&] {
    const std::shared_ptr<Stream> found = work_stream(stream);
    refuse_while_capturing(found);
    Scheduler::get().wait(found);
    Scheduler::get().require_no_fault(found->device);
  });
}

hipError_t hipStreamQuery(hipStream_t stream) {
  return call([&] {
    const std::shared_ptr<Stream> found = work_stream(stream);
    refuse_while_capturing(found);
    Scheduler::get().require_no_fault(found->device);
    if (Scheduler::get().idle(found)) return hipSuccess;
    Scheduler::get().advance();
    return hipErrorNotReady;
  });
}

hipError_t hipStreamWaitEvent(hipStream_t stream, hipEvent_t event, unsigned flags) {
  return call([&] {
    require(flags <= hipEventWaitExternal, hipErrorInvalidValue);
    const std::shared_ptr<Stream> found = work_stream(stream);
    const std::shared_ptr<Event> awaited = find_event(event);
    if (flags == hipEventWaitExternal && capture(found, EventWait{awaited})) return;
    if (capture_wait(found, *awaited)) return;
    const std::shared_ptr<EventRecord> record = awaited->latest();
    Scheduler::get().require_no_fault(found->device);
    if (record) Scheduler::get().enqueue(found, [] {}, true, {record->ticket});
  });
}

hipError_t hipStreamGetDevice(hipStream_t stream, hipDevice_t *device) {
  return call([&] {
    require(device != nullptr, hipErrorInvalidValue);
    *device = find_stream(stream)->device;
  });
}

hipError_t hipStreamGetFlags(hipStream_t stream, unsigned *flags) {
  return call([&] {
    require(flags != nullptr, hipErrorInvalidValue);
    *flags = find_stream(stream)->flags;
  });
}

hipError_t hipStreamGetPriority(hipStream_t stream, int *priority) {
  return call([&] {
    require(priority != nullptr, hipErrorInvalidValue);
    *priority = find_stream(stream)->priority;
  });
}

hipError_t hipLaunchHostFunc(hipStream_t stream, hipHostFn_t function, void *user) {
  return call([&] {
    require(function != nullptr, hipErrorInvalidValue);
    submit(work_stream(stream), HostCall{function, user});
  });
}

hipError_t hipStreamAddCallback(hipStream_t stream, hipStreamCallback_t callback, void *user,
                                unsigned flags) {
  return call([&] {
    require(callback != nullptr && flags == 0, hipErrorInvalidValue);
    const std::shared_ptr<Stream> found = work_stream(stream);
    refuse_while_capturing(found);
    Scheduler::get().require_no_fault(found->device);
    // Runs after a fault too, and receives the error.
    Scheduler::get().enqueue_host_call(
        found, [=] { callback(stream, Scheduler::get().fault(found->device), user); }, true);
  });
}

hipError_t hipEventCreate(hipEvent_t *event) {
  return hipEventCreateWithFlags(event, 0);
}

hipError_t hipEventCreateWithFlags(hipEvent_t *event, unsigned flags) {
  return call([&] {
    require(event != nullptr, hipErrorInvalidValue);
    constexpr unsigned known = event_release_bits | hipEventBlockingSync | hipEventDisableTiming;
    require((flags & ~(known | hipEventInterprocess)) == 0, hipErrorInvalidValue);
    require(std::popcount(flags & event_release_bits) <= 1, hipErrorInvalidValue);
    require((flags & hipEventInterprocess) == 0, hipErrorNotSupported);
    *event = EventHandles::get().add(std::make_shared<Event>(current_device(), flags));
  });
}

hipError_t hipEventDestroy(hipEvent_t event) {
  return call([&] { EventHandles::get().remove(event); });
}

hipError_t hipEventRecord(hipEvent_t event, hipStream_t stream) {
  return hipEventRecordWithFlags(event, stream, 0);
}

hipError_t hipEventRecordWithFlags(hipEvent_t event, hipStream_t stream, unsigned flags) {
  return call([&] {
    require(flags <= hipEventRecordExternal, hipErrorInvalidValue);
    const std::shared_ptr<Event> found = find_event(event);
    const std::shared_ptr<Stream> queue = work_stream(stream);
    require(found->device == queue->device, hipErrorInvalidHandle);
    // In a capture an external record is a node, which records the event each time that the graph runs.
    if (flags == hipEventRecordExternal && capture(queue, EventMark{found})) return;
    if (capture_record(queue, *found)) return;
    Scheduler::get().require_no_fault(queue->device);
    found->set({Scheduler::get().record(queue), nullptr, {}});
  });
}

hipError_t hipEventQuery(hipEvent_t event) {
  return call([&] {
    const std::shared_ptr<Event> found = find_event(event);
    const std::shared_ptr<EventRecord> record = found->latest();
    Scheduler::get().require_no_fault(found->device);
    if (!record || Scheduler::get().complete(record->ticket)) return hipSuccess;
    Scheduler::get().advance();
    return hipErrorNotReady;
  });
}

hipError_t hipEventSynchronize(hipEvent_t event) {
  return call([&] {
    const std::shared_ptr<Event> found = find_event(event);
    const std::shared_ptr<EventRecord> record = found->latest();
    if (record) Scheduler::get().wait(record->ticket);
    Scheduler::get().require_no_fault(found->device);
  });
}

hipError_t hipEventElapsedTime(float *milliseconds, hipEvent_t start, hipEvent_t stop) {
  return call([&] {
    require(milliseconds != nullptr, hipErrorInvalidValue);
    const std::shared_ptr<Event> first = find_event(start);
    const std::shared_ptr<Event> second = find_event(stop);
    require(first->device == second->device, hipErrorInvalidHandle); // each device has its own timer
    require(((first->flags | second->flags) & hipEventDisableTiming) == 0, hipErrorInvalidHandle);
    const std::shared_ptr<EventRecord> from = first->latest();
    const std::shared_ptr<EventRecord> to = second->latest();
    require(from && to, hipErrorInvalidHandle);
    if (!Scheduler::get().complete(from->ticket) || !Scheduler::get().complete(to->ticket))
      return hipErrorNotReady;
    *milliseconds = std::chrono::duration<float, std::milli>(to->time - from->time).count();
    return hipSuccess;
  });
}

} // namespace sluice::emulator::hip
